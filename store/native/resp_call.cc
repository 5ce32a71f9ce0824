#include "store/native/resp_call.h"

#include <array>
#include <string>
#include <utility>

#include "store/native/scan_cursor.h"
#include "store/native/turn_watch.h"
#include "transport/native/decimal.h"

namespace kvstrata {

namespace {

constexpr std::string_view kPoolDropped = "ERR the pool was dropped";
// What a call may keep of its memory for the next commands.
constexpr size_t kKeptBytes = 16 * 1024;
// Commands that travel together: more would make too long a turn where they are carried out.
constexpr uint32_t kCommandsMax = 64;
constexpr size_t kArgumentBytesMax = 64 * 1024;
// As many misses as a core can have under way, and few enough that nothing is evicted before use.
constexpr size_t kLookAheadCount = 16;

// The number of ":5\r\n".
bool read_integer(Bytes reply, int64_t* number) noexcept {
  std::string_view text = as_text(reply);
  return text.size() > 3 && text[0] == ':' &&
         parse_decimal(text.substr(1, text.size() - 3), number);
}

bool is_error(Bytes reply) noexcept { return !reply.empty() && as_text(reply)[0] == '-'; }

bool is_null(Bytes reply) noexcept {
  std::string_view text = as_text(reply);
  return text.starts_with("$-1") || text.starts_with("_");
}

}  // namespace

bool walks(RespCommandId id) noexcept {
  return id == RespCommandId::Keys || id == RespCommandId::ClusterCountkeysinslot ||
         id == RespCommandId::ClusterGetkeysinslot;
}

RespWatch watch_of(ObjectStore& store, Partition& partition, Bytes key) {
  RespWatch watch;
  watch.key.assign(key.begin(), key.end());
  watch.next_version = store.next_version();
  Location location = store.find(partition, store.hash(key), key);
  if (location == 0) return watch;
  watch.version = store.view(location).header().version;
  watch.expiry_ms = store.view(location).expiry_ms();
  return watch;
}

Status RespCall::perform(ObjectStore& store, Partition* partition, uint32_t shard,
                         const Work& work) {
  if (work.phase == Phase::Abort) {
    if (parts[0].open != 0) store.abort(std::exchange(parts[0].open, 0));
    return Status::Ok;
  }
  if (work.phase == Phase::Reserve) return reserve(store, partition);
  if (is(RespCommandId::Exec)) {
    run_transaction(store, partition, shard);
    return Status::Ok;
  }
  if (is(RespCommandId::Watch) && partition != nullptr) {
    RespArguments keys = arguments_of(parts[0]);
    for (size_t index = 1; index < keys.size(); ++index) {
      watches.push_back(watch_of(store, *partition, keys[index]));
    }
    RespWriter(replies_[shard].bytes(), version).ok();
    end_reply(&parts[0]);
    parts[0].done = true;
    return Status::Ok;
  }
  return perform_parts(store, partition, shard);
}

Status RespCall::reserve(ObjectStore& store, Partition* partition) {
  Part& part = parts[0];
  Bytes key = arguments_of(part)[1];
  part.open_status = Status::Denied;
  if (partition == nullptr) return Status::Ok;
  CommitOutcome outcome;
  WriteRequest request{key, {}, store.hash(key), value_bytes, 0, false};
  part.open_status = store.reserve(*partition, request, &part.open, &outcome);
  if (part.open_status == Status::Busy) return Status::Busy;
  if (part.open_status != Status::Ok && part.open != 0) {
    store.abort(std::exchange(part.open, 0));
  }
  return Status::Ok;
}

Status RespCall::perform_parts(ObjectStore& store, Partition* partition, uint32_t shard) {
  uint64_t clock_ns = TurnWatch::monotonic_ns();
  size_t looked_ahead = 0;
  for (size_t index = 0; index < parts.size(); ++index) {
    Part& part = parts[index];
    if (part.shard != shard || part.done) continue;
    if (partition == nullptr) {
      RespWriter(replies_[shard].bytes(), version).error(kPoolDropped);
      end_reply(&part);
      part.done = true;
      continue;
    }
    if (index >= looked_ahead) looked_ahead = look_ahead(store, *partition, index);
    Status status = run(store, *partition, &part, true, &clock_ns);
    if (status == Status::Busy) return status;
    part.done = !walks(part.command->id) || part.cursor == 0;
  }
  return Status::Ok;
}

// Fetches the memory that the next parts of a shard, from `begin` on, will look at into the cache,
// all at once. Returns the first that it did not look at.
size_t RespCall::look_ahead(ObjectStore& store, const Partition& partition,
                            size_t begin) const noexcept {
  uint32_t shard = parts[begin].shard;
  std::array<uint64_t, kLookAheadCount> hashes;
  size_t count = 0;
  size_t index = begin;
  for (; index < parts.size() && count < kLookAheadCount; ++index) {
    const Part& part = parts[index];
    if (part.shard != shard || part.done || part.command->keys.step == 0) continue;
    size_t place = part.command->keys.first;
    if (place < part.argument_count) hashes[count++] = store.hash(arguments_of(part)[place]);
  }
  // One alone gains nothing.
  if (count > 1) store.prefetch(partition, std::span(hashes).first(count));
  return index;
}

// `clock_ns` is when it begins, then when it ends: which is when the next one begins.
Status RespCall::run(ObjectStore& store, Partition& partition, Part* part, bool may_wait,
                     uint64_t* clock_ns) {
  RespExecution execution{store, partition, part->shard, part->command, arguments_of(*part)};
  execution.version = version;
  execution.reply = &replies_[part->shard];
  execution.open = &part->open;
  execution.open_status = part->open_status;
  execution.value_bytes = value_bytes;
  execution.cursor = &part->cursor;
  execution.count = &part->count;
  execution.touches = touches;
  execution.may_wait = may_wait;
  Status status = execute(execution);
  uint64_t end_ns = TurnWatch::monotonic_ns();
  part->execution_ns += end_ns - std::exchange(*clock_ns, end_ns);
  end_reply(part);
  return status;
}

// All of it in one go, so that nobody sees a part of it: what there is no memory for at once is
// refused by itself.
void RespCall::run_transaction(ObjectStore& store, Partition* partition, uint32_t shard) {
  for (Part& part : parts) part.done = !part.is_of_connection;
  RespWriter writer(replies_[shard].bytes(), version);
  is_refused = true;
  if (partition == nullptr) {
    writer.error(kPoolDropped);
  } else if (has_changed(store, *partition)) {
    writer.null_array();
  } else if (crosses_slots) {
    writer.error(kCrossSlot);
  } else {
    is_refused = false;
    uint64_t clock_ns = TurnWatch::monotonic_ns();
    for (Part& part : parts) {
      if (!part.is_of_connection) run(store, *partition, &part, false, &clock_ns);
    }
  }
}

bool RespCall::has_changed(ObjectStore& store, Partition& partition) const {
  for (const RespWatch& watch : watches) {
    RespWatch present = watch_of(store, partition, watch.key);
    if (present.version != watch.version || present.expiry_ms != watch.expiry_ms) return true;
    // It may have been there in between.
    bool is_absent = present.version == 0;
    if (is_absent && store.has_removed(store.hash(watch.key), watch.next_version)) return true;
  }
  return false;
}

void RespCall::give_up(ObjectStore& store, const Work& work) noexcept {
  for (Part& part : parts) {
    if (part.shard != work.part || part.done) continue;
    if (part.open != 0) store.abort(std::exchange(part.open, 0));
    part.open_status = Status::NoSpace;
    if (work.phase == Phase::Reserve) continue;
    RespWriter(replies_of(part).bytes(), version)
        .error("OOM command not allowed when used memory > 'maxmemory'.");
    end_reply(&part);
    part.done = true;
  }
}

RespCall::Part& RespCall::add_part(const RespCommand* part_command, uint32_t shard) {
  if (ends_with_replies_made_at_once()) end_reply(&parts.back());
  Part& part = parts.emplace_back();
  part.command = part_command;
  part.shard = shard;
  part.first_argument = static_cast<uint32_t>(arguments_.size());
  replies_of_shard(shard);
  return part;
}

void RespCall::add_argument(Bytes argument) {
  arguments_.push_back({bytes_.size(), argument.size()});
  bytes_.append(argument);
  ++parts.back().argument_count;
}

void RespCall::add_arguments(const RespArguments& arguments) {
  for (size_t index = 0; index < arguments.size(); ++index) add_argument(arguments[index]);
}

void RespCall::replace_arguments(const RespArguments& arguments) {
  parts.back().first_argument = static_cast<uint32_t>(arguments_.size());
  parts.back().argument_count = 0;
  add_arguments(arguments);
}

bool RespCall::is_full() const noexcept {
  return command_count >= kCommandsMax || bytes_.size() >= kArgumentBytesMax;
}

uint64_t RespCall::execution_ns() const noexcept {
  uint64_t total_ns = 0;
  for (const Part& part : parts) total_ns += part.execution_ns;
  return total_ns;
}

OutputQueue& RespCall::replies_of_shard(uint32_t shard) {
  if (replies_.size() <= shard) replies_.resize(shard + 1);
  return replies_[shard];
}

bool RespCall::ends_with_replies_made_at_once() const noexcept {
  return !parts.empty() && parts.back().command == nullptr;
}

OutputQueue& RespCall::replies_made_at_once() {
  if (!ends_with_replies_made_at_once()) {
    Part& part = add_part(nullptr, home_shard);
    part.is_of_connection = true;
    part.done = true;
  }
  return replies_of_connection_;
}

void RespCall::take_reply(const Part& part, OutputQueue* output) {
  bool is_last = &part == &parts.back() && part.command == nullptr;
  OutputQueue& replies = replies_of(part);
  output->append(&replies, is_last ? replies.end() : part.reply_end);
}

Bytes RespCall::take_short_reply(const Part& part) noexcept {
  return replies_of(part).take(part.reply_end);
}

void RespCall::join_parts(uint32_t shard_count, OutputQueue* output) {
  RespWriter writer(output->bytes(), version);
  Bytes chosen;
  int64_t sum = 0;
  ScanCursor cursor;
  if (is_refused) {
    for (OutputQueue& replies : replies_) output->append(&replies);
    return;
  }
  switch (join) {
    case RespJoin::Array:
      writer.array(parts.size());
      break;
    case RespJoin::Arrays:
      for (const Part& part : parts) sum += static_cast<int64_t>(part.count);
      writer.array(static_cast<uint64_t>(sum));
      break;
    case RespJoin::Sum:
    case RespJoin::AllOk:
      for (const Part& part : parts) {
        int64_t number = 0;
        Bytes reply = take_short_reply(part);
        if (chosen.empty() && is_error(reply)) chosen = reply;
        if (read_integer(reply, &number)) sum += number;
      }
      if (!chosen.empty()) {
        output->bytes()->append(chosen);
      } else if (join == RespJoin::Sum) {
        writer.integer(sum);
      } else {
        writer.ok();
      }
      return;
    case RespJoin::AnyOne:
      for (const Part& part : parts) {
        Bytes reply = take_short_reply(part);
        if (chosen.empty() || is_null(chosen)) chosen = reply;
      }
      output->bytes()->append(chosen);
      return;
    case RespJoin::Scan:
      // An error of its options is all there is.
      if (is_error(replies_of(parts[0]).bytes()->view())) break;
      cursor = {parts[0].shard, parts[0].cursor};
      writer.array(2);
      writer.bulk_string(as_bytes(std::to_string(cursor.next(shard_count))));
      writer.array(parts[0].count);
      break;
    default:
      break;
  }
  for (const Part& part : parts) take_reply(part, output);
}

void RespCall::discard(std::vector<OwnedExtent>* released) {
  for (OutputQueue& replies : replies_) replies.discard(released);
  replies_of_connection_.discard(released);
}

size_t RespCall::memory_bytes() const noexcept {
  size_t bytes = bytes_.capacity() + arguments_.capacity() * sizeof(RespPiece) +
                 parts.capacity() * sizeof(Part) + replies_of_connection_.memory_bytes();
  for (const OutputQueue& replies : replies_) bytes += replies.memory_bytes();
  return bytes;
}

void RespCall::reset() noexcept {
  session = nullptr;
  command = nullptr;
  join = RespJoin::Only;
  touches = true;
  crosses_slots = false;
  is_refused = false;
  done = false;
  is_silent = false;
  command_count = 1;
  value_bytes = 0;
  pending = 0;
  awaited_bytes = 0;
  admin_call = 0;
  next = nullptr;
  watches.clear();
  parts.clear();
  arguments_.clear();
  bytes_.clear();
  for (OutputQueue& replies : replies_) replies.clear();
  replies_of_connection_.clear();
  if (memory_bytes() <= kKeptBytes) return;
  parts = std::vector<Part>();
  arguments_ = std::vector<RespPiece>();
  bytes_.release_memory();
  replies_.clear();
  replies_of_connection_ = OutputQueue();
}

}  // namespace kvstrata
