// Random work on an object store under tight memory, compared with a map.
//
// The store may forget what its pools may evict, so a missing object is checked against the count
// of evictions: every one that the map has and the store has not must have been counted.
#include <doctest/doctest.h>

#include <deque>
#include <random>

#include "tests/native/store/store_fixture.h"

namespace kvstrata {
namespace {

struct Expected {
  Value value;
  uint64_t expiry_ms = UINT64_MAX;
  uint64_t hard_until_ms = 0;  // It may not be evicted before.
};

struct Retained {
  PoolId id;
  uint64_t number;
  bool is_hard;
};

struct PoolModel {
  PoolId id = 0;  // Another one whenever the pool was dropped and is made again.
  EvictionKind eviction = EvictionKind::Lru;
  uint64_t quota_bytes = 0;
  bool immutable = false;
  bool dropped = false;
  std::map<std::string, Expected> objects = {};
  uint64_t lost = 0;  // Gone without a word.

  bool may_evict() const { return eviction != EvictionKind::None; }
};

struct Writer {
  PoolModel* pool;
  PoolId id;  // When it began.
  OpenWrite write;
};

// References on an object's chunks, and what must lie there until they are given back.
struct Reader {
  std::vector<Extent> extents;
  std::vector<Value> chunks;
};

class Model {
 public:
  Model(uint64_t memory_bytes, uint64_t seed) : store_(memory_bytes), random_(seed) {
    models_ = {{.id = 0, .eviction = EvictionKind::Lru},
               {.id = 1, .eviction = EvictionKind::S3Fifo},
               {.id = 2, .eviction = EvictionKind::None, .quota_bytes = memory_bytes / 4},
               {.id = 3, .quota_bytes = memory_bytes / 8, .immutable = true},
               {.id = 4, .eviction = EvictionKind::None},
               {.id = 5, .eviction = EvictionKind::S3Fifo, .quota_bytes = memory_bytes / 8}};
    for (const PoolModel& pool : models_) add_pool(pool);
    // Writes under way may fill a quota alone, or the memory together with readers: they end at
    // last.
    store_.while_busy = [this] {
      if (store_.busy_count > 10 && !writers_.empty()) abort_write();
      if (store_.busy_count > 100) end_read();
      if (store_.busy_count > 200) release_all();
    };
  }

  void step() {
    PoolModel& pool = models_[random_() % models_.size()];
    if (random_() % 200 == 0) drop(pool);
    if (pool.dropped) {
      make_again(pool);
      return;
    }
    Partition& partition = *store_.store.partition(pool.id);
    std::string key = "key" + std::to_string(random_() % 200);
    uint32_t dice = random_() % 19;
    if (dice < 5) put(pool, partition, key);
    if (dice == 5) append(pool, partition, key);
    if (dice >= 6 && dice < 9) check_value(pool, partition, key);
    if (dice == 9) remove(pool, partition, key);
    if (dice == 10) expire(pool, partition, key);
    if (dice == 11) begin_write(pool, key);
    if (dice == 12) end_write();
    if (dice == 13) begin_read(partition, key);
    if (dice == 14) end_read();
    if (dice == 15) pass_time();
    if (dice == 16 || dice == 17) retain(pool, partition);
    if (dice == 18) extend_or_release();
    check_books();
  }

  // With writes and readers out of the way, what is used is what the pools say.
  void check_quiet() {
    while (!writers_.empty()) end_write();
    while (!readers_.empty()) end_read();
    CHECK(store_.used_bytes() == store_.pool_bytes());
    CHECK(store_.store.reserved_bytes() == 0);
    for (PoolModel& pool : models_) {
      if (!pool.dropped) check_pool(pool);
    }
  }

  void check_removed() {
    check_quiet();
    for (PoolModel& pool : models_) {
      for (uint32_t turn = 0; pool.dropped; ++turn) {
        REQUIRE(turn < 1000);
        make_again(pool);
      }
      Partition& partition = *store_.store.partition(pool.id);
      for (const auto& [key, expected] : pool.objects) store_.remove(partition, key);
      CHECK(partition.index.size() == 0);
      CHECK(partition.expiring_count == 0);
      CHECK(partition.reserved_bytes == 0);
      CHECK(partition.usage->bytes.load() == 0);
      CHECK(partition.usage->retained_bytes_hard.load() == 0);
      CHECK(partition.retentions.record_count() == 0);
    }
    CHECK(!store_.store.has_expiring());
    release_all();
    while (store_.store.maintain()) continue;
    store_.check_empty();
  }

  uint64_t evictions() const {
    uint64_t sum = 0;
    for (const auto& [id, books] : store_.pools) sum += books->statistics.evictions.value();
    return sum;
  }
  uint64_t pools_made() const { return store_.pools.size(); }

 private:
  void add_pool(const PoolModel& pool) {
    store_.add_pool(pool.id, pool.eviction, pool.quota_bytes, pool.immutable);
  }

  void drop(PoolModel& pool) {
    store_.store.drop_pool(pool.id);
    REQUIRE(store_.store.partition(pool.id) == nullptr);
    pool.dropped = true;
    pool.objects.clear();
    pool.lost = 0;
  }

  // At the same place, once nothing of the dropped one is left there.
  void make_again(PoolModel& pool) {
    store_.store.maintain();
    const auto& books = *store_.pools.at(pool.id);
    bool writing =
        std::ranges::any_of(writers_, [&](const Writer& writer) { return writer.id == pool.id; });
    if (writing) REQUIRE(books.usage.use_count() > 1);
    if (books.usage.use_count() > 1) return;
    REQUIRE(books.usage->bytes.load() == 0);
    REQUIRE(books.statistics.objects.value() == 0);
    REQUIRE(books.statistics.bytes.value() == 0);
    pool.dropped = false;
    pool.id += limits::kPoolCountMax;
    add_pool(pool);
  }

  Value random_value() {
    static constexpr size_t kBoundaries[] = {
        0, 1, 4096, 8100, 8192, limits::kChunkBytes, 2 * limits::kChunkBytes};
    size_t length = random_() % 200;
    switch (random_() % 8) {
      case 0:
        length = random_() % 20'000;
        break;
      case 1:
        length = random_() % (3 * limits::kChunkBytes);
        break;
      case 2:
        length = kBoundaries[random_() % std::size(kBoundaries)] + random_() % 3;
        break;
      default:
        break;
    }
    return make_value(length, random_());
  }

  bool is_there(const PoolModel& pool, const std::string& key) const {
    auto found = pool.objects.find(key);
    return found != pool.objects.end() && found->second.expiry_ms > store_.store.now_ms();
  }

  // The store has no such object: the model forgets it too, and counts it unless it had expired.
  void note_absent(PoolModel& pool, const std::string& key) {
    if (is_there(pool, key)) {
      REQUIRE(pool.may_evict());
      REQUIRE(pool.objects[key].hard_until_ms <= store_.store.now_ms());
      ++pool.lost;
    }
    pool.objects.erase(key);
  }

  void put(PoolModel& pool, Partition& partition, const std::string& key) {
    PutOptions options;
    options.if_absent = random_() % 4 == 0;
    if (random_() % 4 == 0) options.ttl_ms = 1 + random_() % 5000;
    uint64_t expiry = options.ttl_ms == 0 ? UINT64_MAX : store_.store.now_ms() + options.ttl_ms;
    Value value = random_value();
    CommitOutcome outcome = store_.put(partition, key, value, options);
    settle(pool, key, outcome, {std::move(value), expiry}, options.if_absent);
  }

  void settle(PoolModel& pool, const std::string& key, const CommitOutcome& outcome,
              Expected expected, bool if_absent) {
    switch (outcome.status) {
      case Status::Ok:
        REQUIRE(outcome.value_length == expected.value.size());
        if (outcome.result == WriteResult::Created) note_absent(pool, key);
        if (outcome.result == WriteResult::Replaced) REQUIRE(is_there(pool, key));
        if (outcome.result == WriteResult::Replaced) REQUIRE(!pool.immutable);
        pool.objects[key] = std::move(expected);
        return;
      case Status::Exists:
        REQUIRE(if_absent);
        REQUIRE(is_there(pool, key));
        return;
      case Status::Immutable:
        REQUIRE(pool.immutable);
        REQUIRE(is_there(pool, key));
        return;
      default:
        REQUIRE((outcome.status == Status::NoSpace || outcome.status == Status::TooLarge));
    }
  }

  void append(PoolModel& pool, Partition& partition, const std::string& key) {
    bool there = is_there(pool, key);
    uint64_t length = there ? pool.objects[key].value.size() : 0;
    if (length > 4 * limits::kChunkBytes) return;
    uint64_t at = random_() % 8 == 0 ? length + 1 : length;
    Value value = random_value();
    CommitOutcome outcome = store_.append(partition, key, value, at);
    if (outcome.status == Status::Ok) {
      if (outcome.result == WriteResult::Created) {
        REQUIRE(at == 0);
        note_absent(pool, key);
        pool.objects[key] = {std::move(value)};
        return;
      }
      REQUIRE(there);
      REQUIRE(at == length);
      pool.objects[key].hard_until_ms = 0;
      Value& whole = pool.objects[key].value;
      whole.insert(whole.end(), value.begin(), value.end());
      REQUIRE(outcome.value_length == whole.size());
    } else if (outcome.status == Status::Mismatch) {
      bool evicted = store_.store.find(partition, store_.hash(key), as_bytes(key)) == 0;
      if (evicted) note_absent(pool, key);
      REQUIRE((evicted || at != length));
    } else {
      REQUIRE((outcome.status == Status::NoSpace || outcome.status == Status::TooLarge));
    }
  }

  void check_value(PoolModel& pool, Partition& partition, const std::string& key) {
    std::optional<Value> value = store_.get(partition, key);
    if (!value) {
      note_absent(pool, key);
      return;
    }
    REQUIRE(is_there(pool, key));
    REQUIRE(*value == pool.objects[key].value);
  }

  void remove(PoolModel& pool, Partition& partition, const std::string& key) {
    if (!store_.remove(partition, key)) {
      note_absent(pool, key);
      return;
    }
    REQUIRE(is_there(pool, key));
    pool.objects.erase(key);
  }

  void expire(PoolModel& pool, Partition& partition, const std::string& key) {
    uint64_t ttl_ms = random_() % 3 == 0 ? kTtlNever : 1 + random_() % 5000;
    Status status = store_.store.expire(partition, store_.hash(key), as_bytes(key), ttl_ms);
    if (status == Status::NotFound) {
      note_absent(pool, key);
      return;
    }
    REQUIRE(is_there(pool, key));
    if (status != Status::Ok) return;
    pool.objects[key].expiry_ms = ttl_ms == kTtlNever ? UINT64_MAX : store_.store.now_ms() + ttl_ms;
  }

  void retain(PoolModel& pool, Partition& partition) {
    bool is_hard = random_() % 2 == 0;
    uint64_t ttl_ms = 1 + random_() % 10'000;
    uint64_t number = 0;
    for (uint32_t count = 1 + random_() % 8; count != 0; --count) {
      std::string key = "key" + std::to_string(random_() % 200);
      Status status = store_.store.retain_object(partition, store_.hash(key), as_bytes(key), ttl_ms,
                                                 is_hard, &number);
      if (status == Status::NotFound) {
        note_absent(pool, key);
        continue;
      }
      REQUIRE(is_there(pool, key));
      REQUIRE((status == Status::Ok || (is_hard && status != Status::NoSpace)));
      if (status != Status::Ok || !is_hard) continue;
      uint64_t& until_ms = pool.objects[key].hard_until_ms;
      until_ms = std::max(until_ms, store_.store.now_ms() + ttl_ms);
    }
    if (number != 0) retained_.push_back({pool.id, number, is_hard});
  }

  void extend_or_release() {
    if (retained_.empty()) return;
    std::swap(retained_.front(), retained_[random_() % retained_.size()]);
    auto [id, number, is_hard] = retained_.front();
    if (Partition* partition = store_.store.partition(id); partition != nullptr) {
      if (random_() % 2 == 0) {
        store_.store.extend_retention(*partition, number, is_hard, random_() % 10'000);
        return;
      }
      Status status = store_.store.release_retention(*partition, number, is_hard);
      if (is_hard && status == Status::Ok) forget_hard(id);
    }
    retained_.pop_front();
  }

  // As if all of the pool's had been released: the store keeps more than that promises.
  void forget_hard(PoolId id) {
    for (PoolModel& pool : models_) {
      if (pool.id != id) continue;
      for (auto& [key, expected] : pool.objects) expected.hard_until_ms = 0;
    }
  }

  void release_all() {
    while (!retained_.empty()) {
      auto [id, number, is_hard] = retained_.front();
      retained_.pop_front();
      Partition* partition = store_.store.partition(id);
      if (partition == nullptr) continue;
      store_.store.release_retention(*partition, number, is_hard);
      forget_hard(id);
    }
  }

  void begin_write(PoolModel& pool, const std::string& key) {
    if (writers_.size() >= 4) return;
    OpenWrite write{.key = key, .value = random_value()};
    Partition& partition = *store_.store.partition(pool.id);
    if (store_.open(partition, &write) != Status::Ok) return;
    writers_.push_back({&pool, pool.id, std::move(write)});
  }

  void end_write() {
    if (writers_.empty()) return;
    std::swap(writers_.front(), writers_[random_() % writers_.size()]);
    Partition* partition = store_.store.partition(writers_.front().id);
    if (partition == nullptr || random_() % 2 == 0) {
      abort_write();
      return;
    }
    auto [pool, id, write] = std::move(writers_.front());
    writers_.pop_front();
    CommitOutcome outcome = store_.commit(*partition, &write);
    settle(*pool, write.key, outcome, {std::move(write.value)}, false);
  }

  void abort_write() {
    store_.store.abort(writers_.front().write.location);
    writers_.pop_front();
  }

  void begin_read(Partition& partition, const std::string& key) {
    Location location = store_.store.find(partition, store_.hash(key), as_bytes(key));
    if (location == 0 || !store_.store.view(location).has(kIsChunked)) return;
    Reader reader;
    RecordView record = store_.store.view(location);
    for (uint32_t index = 0; index < record.chunk_count(); ++index) {
      Bytes piece = store_.store.piece(location, index);
      reader.extents.push_back(record.extent(index));
      reader.chunks.emplace_back(piece.begin(), piece.end());
      store_.store.retain(reader.extents.back());
    }
    readers_.push_back(std::move(reader));
    if (readers_.size() > 4) end_read();
  }

  void end_read() {
    if (readers_.empty()) return;
    const Reader& reader = readers_.front();
    for (size_t index = 0; index < reader.extents.size(); ++index) {
      Bytes now(store_.store.at(reader.extents[index].offset), reader.chunks[index].size());
      REQUIRE(equal(now, reader.chunks[index]));
      store_.store.release(reader.extents[index]);
    }
    readers_.pop_front();
  }

  void pass_time() {
    store_.store.set_clock(store_.store.now_ms() + random_() % 1000);
    store_.store.maintain();
  }

  void check_books() {
    for (PoolModel& pool : models_) {
      if (pool.dropped) continue;
      Partition& partition = *store_.store.partition(pool.id);
      const auto& books = *store_.pools.at(pool.id);
      REQUIRE(partition.index.size() == books.statistics.objects.value());
      uint64_t charged_bytes = books.usage->bytes.load();
      REQUIRE(charged_bytes == books.statistics.bytes.value() + partition.reserved_bytes);
      if (pool.quota_bytes != 0) REQUIRE(charged_bytes <= pool.quota_bytes);
      if (!pool.may_evict()) REQUIRE(books.statistics.evictions.value() == 0);
      check_retained(partition, books.statistics);
    }
    store_.check_charges();
    REQUIRE(store_.used_bytes() >= store_.pool_bytes());
  }

  void check_retained(const Partition& partition, const PoolStatistics& statistics) {
    uint64_t hard_bytes = statistics.retained_bytes_hard.value();
    REQUIRE(statistics.retained_objects.value() == partition.retentions.record_count());
    REQUIRE(partition.usage->retention_claims.load() == partition.retentions.claim_count());
    REQUIRE(partition.usage->retained_bytes_hard.load() == hard_bytes);
    REQUIRE(hard_bytes <= statistics.retained_bytes.value());
    REQUIRE(statistics.retained_bytes.value() <= statistics.bytes.value());
  }

  void check_pool(PoolModel& pool) {
    Partition& partition = *store_.store.partition(pool.id);
    const PoolStatistics& statistics = store_.pools.at(pool.id)->statistics;
    std::map<std::string, Expected> objects = pool.objects;
    for (const auto& [key, expected] : objects) check_value(pool, partition, key);
    CHECK(partition.index.size() == pool.objects.size());
    CHECK(pool.lost <= statistics.evictions.value());
    CHECK(statistics.corruptions.value() == 0);
  }

  StoreFixture store_;
  std::mt19937_64 random_;
  std::vector<PoolModel> models_;
  std::deque<Writer> writers_;
  std::deque<Reader> readers_;
  std::deque<Retained> retained_;
};

}  // namespace

TEST_CASE("random work on an object store agrees with a map") {
  for (uint64_t seed : {1, 2, 3, 4, 5, 6}) {
    CAPTURE(seed);
    Model model((seed % 2 + 1) * (16 << 20), seed);
    for (uint32_t step = 0; step < 3000; ++step) {
      CAPTURE(step);
      model.step();
      if (step % 500 == 499) model.check_quiet();
    }
    CHECK(model.evictions() > 50);
    CHECK(model.pools_made() > 10);
    model.check_removed();
  }
}

}  // namespace kvstrata
