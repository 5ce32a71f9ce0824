#include "store/native/node.h"

#include <sys/random.h>

#include <algorithm>
#include <cassert>
#include <chrono>
#include <future>
#include <iterator>
#include <memory>
#include <thread>

#include "store/native/shard.h"
#include "tiering/native/machine_memory.h"

namespace kvstrata {

namespace {

constexpr int kBacklog = 1024;
// More fill the memory's bandwidth no better.
constexpr unsigned kCopierCountMax = 4;

// Compares in a time that does not tell how much of a secret was right.
bool secrets_equal(const std::string& left, const std::string& right) noexcept {
  if (left.size() != right.size()) return false;
  unsigned difference = 0;
  for (size_t index = 0; index < left.size(); ++index) {
    difference |=
        static_cast<unsigned char>(left[index]) ^ static_cast<unsigned char>(right[index]);
  }
  return difference == 0;
}

bool fill_random(void* bytes, size_t count) noexcept {
  return ::getrandom(bytes, count, 0) == static_cast<ssize_t>(count);
}

}  // namespace

Node::Node(const NodeOptions& options)
    : options_(options),
      region_bytes_max_(memory_limit_bytes()),
      copiers_(std::make_unique<Copiers>(
          std::clamp(std::thread::hardware_concurrency(), 1U, kCopierCountMax))) {}

std::unique_ptr<Node> Node::create(const NodeOptions& options, std::string* error) {
  if (options.shard_count == 0 || options.shard_count > limits::kShardCountMax) {
    *error = "a node has 1 to " + std::to_string(limits::kShardCountMax) + " shards, not " +
             std::to_string(options.shard_count);
    return nullptr;
  }
  std::unique_ptr<Node> node(new Node(options));
  if (!fill_random(node->node_id_.data(), node->node_id_.size()) ||
      !fill_random(&node->hash_seed_, sizeof node->hash_seed_)) {
    *error = "the kernel gives no random bytes";
    return nullptr;
  }
  node->listener_ = listen_tcp(options.host, options.port, kBacklog, error);
  if (!node->listener_) return nullptr;
  node->port_ = local_port(node->listener_);
  SegmentPoolOptions memory;
  memory.memory_bytes = options.memory_bytes;
  memory.populate_full = options.populate_full;
  memory.huge_pages = options.huge_pages;
  memory.lend_untouched = false;  // A shard's loop must not fault pages in.
  if (SegmentPool::create(memory, &node->segments_, error) != Status::Ok) return nullptr;
  if (node->segments_->segment_count() < 2 * options.shard_count) {
    *error = std::to_string(options.shard_count) + " shards need at least " +
             std::to_string(2 * options.shard_count * node->segments_->segment_bytes()) +
             " bytes of memory: give the node more memory or fewer shards";
    return nullptr;
  }
  for (uint32_t index = 0; index < options.shard_count; ++index) {
    node->shards_.push_back(std::make_unique<Shard>(node.get(), index));
  }
  return node;
}

Node::~Node() {
  stop(0);
  copiers_->stop();  // They tell the shards what they have done.
  shards_.clear();
}

std::string Node::listen_unix(const std::string& path) {
  assert(!started_);
  std::string error;
  unix_listener_ = UnixListener::listen(path, kBacklog, &error);
  return error;
}

void Node::start() {
  started_ = true;
  for (auto& shard : shards_) shard->start();
}

bool Node::stop(uint64_t timeout_ms) {
  if (!started_) return true;
  started_ = false;
  uint64_t deadline_ns = TurnWatch::monotonic_ns() + timeout_ms * 1'000'000;
  for (auto& shard : shards_) shard->begin_stop(deadline_ns);
  for (auto& shard : shards_) shard->join();
  listener_.close();
  unix_listener_.close();
  return std::ranges::all_of(shards_, [](const auto& shard) { return shard->stopped_cleanly(); });
}

std::shared_ptr<Node::Pool> Node::find_pool(const std::string& name) const noexcept {
  auto found = std::ranges::find_if(
      pools_, [&](const auto& pool) { return !pool->dropped && pool->settings.name == name; });
  return found == pools_.end() ? nullptr : *found;
}

// A pool at a place that was never used, or whose last pool is this node's alone: no shard has an
// object or an open record of it, and no letter is on its way. Null if there is no such place.
std::shared_ptr<Node::Pool> Node::add_pool() {
  auto free = std::ranges::find_if(
      pools_, [](const auto& pool) { return pool->dropped && pool.use_count() == 1; });
  if (free == pools_.end() && pools_.size() == limits::kPoolCountMax) return nullptr;
  auto pool = std::make_shared<Pool>();
  for (uint32_t shard = 0; shard < options_.shard_count; ++shard) {
    pool->by_shard.push_back(std::make_unique<PoolStatistics>());
  }
  if (free == pools_.end()) {
    pool->id = pools_.size();
    pools_.push_back(pool);
  } else {
    pool->id = (*free)->id + limits::kPoolCountMax;
    *free = pool;
  }
  return pool;
}

std::string Node::set_pool(const PoolSettings& settings) {
  std::lock_guard lock(pools_mutex_);
  std::shared_ptr<Pool> pool = find_pool(settings.name);
  if (pool == nullptr) {
    pool = add_pool();
    if (pool == nullptr) {
      return "this node has " + std::to_string(limits::kPoolCountMax) +
             " pools, which is the limit, or had them until now: drop one, or try again once what"
             " was dropped has given its memory back";
    }
  } else if (pool->settings.immutable != settings.immutable) {
    return "pool '" + settings.name + "' is " + (settings.immutable ? "mutable" : "immutable") +
           ", and a pool's kind never changes";
  }
  pool->settings = settings;
  for (auto& shard : shards_) {
    std::shared_ptr<PoolUsage> usage(pool, &pool->usage);
    PoolStatistics* statistics = pool->by_shard[shard->index()].get();
    shard->post([id = pool->id, settings, usage, statistics](Shard& target) {
      target.store().set_pool(id, settings, usage, statistics);
    });
  }
  return {};
}

std::string Node::drop_pool(const std::string& name) {
  std::lock_guard lock(pools_mutex_);
  std::shared_ptr<Pool> pool = find_pool(name);
  if (pool == nullptr) return "there is no pool '" + name + "'";
  if (name == "default") return "the pool 'default' exists always";
  pool->dropped = true;
  for (auto& shard : shards_) {
    shard->post([id = pool->id](Shard& target) { target.store().drop_pool(id); });
  }
  return {};
}

Status Node::authenticate(const std::string& pool, const std::string& secret, PoolId* id,
                          uint32_t* rights, std::string* message) const {
  std::lock_guard lock(pools_mutex_);
  *message = "wrong secret for pool '" + pool + "', or there is no such pool";
  std::shared_ptr<Pool> found = find_pool(pool);
  if (found == nullptr) return Status::Denied;
  const PoolSettings& settings = found->settings;
  uint32_t granted = secret.empty() ? settings.open_rights : 0;
  for (const PoolSecret& each : settings.secrets) {
    if (!secret.empty() && secrets_equal(each.text, secret)) granted |= each.rights;
  }
  if (granted == 0) {
    if (secret.empty()) *message = "pool '" + pool + "' needs a secret, or there is no such pool";
    return Status::Denied;
  }
  *id = found->id;
  *rights = granted;
  return Status::Ok;
}

bool Node::pool_is_immutable(PoolId id) const {
  std::lock_guard lock(pools_mutex_);
  const Pool& pool = *pools_[place_of(id)];
  return pool.id == id && pool.settings.immutable;
}

std::vector<Node::PoolReport> Node::pools() const {
  std::lock_guard lock(pools_mutex_);
  std::vector<PoolReport> reports;
  for (const auto& pool : pools_) {
    if (pool->dropped) continue;
    PoolReport report{pool->settings, {}};
    for (const auto& statistics : pool->by_shard) {
      report.by_shard.emplace_back(pool, statistics.get());  // Lives as long as the pool does.
    }
    reports.push_back(std::move(report));
  }
  return reports;
}

std::vector<const ShardStatistics*> Node::shards() const {
  std::vector<const ShardStatistics*> all;
  for (const auto& shard : shards_) all.push_back(&shard->statistics());
  return all;
}

void Node::complete_admin(const AdminCall& call, Status status, std::vector<std::byte> payload) {
  shards_[call.shard]->post([id = call.id, status, payload = std::move(payload)](Shard& shard) {
    shard.finish_admin(id, status, payload);
  });
}

// Asks every shard, and waits for the answers, at most so long.
template <typename Answer, typename Ask>
std::vector<Answer> Node::ask_shards(Ask ask) {
  constexpr auto kPatience = std::chrono::seconds(1);
  std::vector<std::future<Answer>> answers;
  for (auto& shard : shards_) {
    auto promise = std::make_shared<std::promise<Answer>>();
    answers.push_back(promise->get_future());
    shard->post([promise, ask](Shard& target) { promise->set_value(ask(target)); });
  }
  auto deadline = std::chrono::steady_clock::now() + kPatience;
  std::vector<Answer> all;
  for (auto& answer : answers) {
    if (answer.wait_until(deadline) == std::future_status::ready) all.push_back(answer.get());
  }
  return all;
}

std::vector<ConnectionReport> Node::connections() {
  using Reports = std::vector<ConnectionReport>;
  Reports all;
  for (Reports& reports :
       ask_shards<Reports>([](const Shard& shard) { return shard.connections(); })) {
    std::ranges::move(reports, std::back_inserter(all));
  }
  std::ranges::sort(all, {}, &ConnectionReport::client_id);
  return all;
}

uint64_t Node::kill_connections(const std::vector<uint64_t>& client_ids) {
  uint64_t count = 0;
  for (uint64_t killed :
       ask_shards<uint64_t>([client_ids](Shard& shard) { return shard.kill(client_ids); })) {
    count += killed;
  }
  return count;
}

bool Node::take_region_room(uint64_t bytes) noexcept {
  if (bytes > region_bytes_max_) return false;
  uint64_t before = region_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  if (before + bytes <= region_bytes_max_) return true;
  give_back_region_room(bytes);
  return false;
}

bool Node::rebuffer(uint64_t old_bytes, uint64_t new_bytes) noexcept {
  uint64_t change = new_bytes - old_bytes;
  uint64_t total = buffered_bytes_.fetch_add(change, std::memory_order_relaxed) + change;
  return new_bytes <= old_bytes || total <= options_.buffer_bytes_max;
}

}  // namespace kvstrata
