#include "store/native/resp_call.h"

#include <string>
#include <utility>

#include "store/native/scan_cursor.h"
#include "store/native/turn_watch.h"
#include "transport/native/decimal.h"

namespace kvstrata {

namespace {

constexpr std::string_view kPoolDropped = "ERR the pool was dropped";
constexpr size_t kKeptBytes = 4096;
constexpr size_t kKeptParts = 16;

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
  if (work.phase == Phase::Reserve) {
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
  if (command->id == RespCommandId::Exec) {
    for (Part& part : parts) part.done = true;
    if (partition != nullptr) {
      run_transaction(store, *partition);
    } else {
      RespWriter(reply.bytes(), version).error(kPoolDropped);
    }
    return Status::Ok;
  }
  if (command->id == RespCommandId::Watch && partition != nullptr) {
    RespArguments keys = arguments_of(parts[0]);
    for (size_t index = 1; index < keys.size(); ++index) {
      watches.push_back(watch_of(store, *partition, keys[index]));
    }
    RespWriter(parts[0].reply.bytes(), version).ok();
    parts[0].done = true;
    return Status::Ok;
  }
  for (Part& part : parts) {
    if (part.shard != shard || part.done) continue;
    if (partition == nullptr) {
      RespWriter(part.reply.bytes(), version).error(kPoolDropped);
      part.done = true;
      continue;
    }
    Status status = run(store, *partition, &part, true);
    if (status == Status::Busy) return status;
    part.done = !walks(part.command->id) || part.cursor == 0;
  }
  return Status::Ok;
}

Status RespCall::run(ObjectStore& store, Partition& partition, Part* part, bool may_wait) {
  RespExecution execution{store, partition, part->shard, part->command, arguments_of(*part)};
  execution.version = version;
  execution.reply = &part->reply;
  execution.open = &part->open;
  execution.open_status = part->open_status;
  execution.value_bytes = value_bytes;
  execution.cursor = &part->cursor;
  execution.count = &part->count;
  execution.touches = touches;
  execution.may_wait = may_wait;
  uint64_t begin_ns = TurnWatch::monotonic_ns();
  Status status = execute(execution);
  execution_ns += TurnWatch::monotonic_ns() - begin_ns;
  return status;
}

// All of it in one go, so that nobody sees a part of it: what there is no memory for at once is
// refused by itself.
void RespCall::run_transaction(ObjectStore& store, Partition& partition) {
  if (has_changed(store, partition)) {
    RespWriter(reply.bytes(), version).null_array();
    return;
  }
  if (crosses_slots) {
    RespWriter(reply.bytes(), version).error(kCrossSlot);
    return;
  }
  for (Part& part : parts) {
    if (!part.is_of_connection) run(store, partition, &part, false);
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
    if (part.open != 0) store.abort(std::exchange(part.open, 0));
    part.open_status = Status::NoSpace;
    if (part.done || work.phase == Phase::Reserve) continue;
    RespWriter(part.reply.bytes(), version)
        .error("OOM command not allowed when used memory > 'maxmemory'.");
    part.done = true;
  }
}

std::vector<RespPiece> RespCall::keep(const RespArguments& arguments) {
  std::vector<RespPiece> pieces;
  pieces.reserve(arguments.size());
  for (size_t index = 0; index < arguments.size(); ++index) {
    Bytes argument = arguments[index];
    pieces.push_back({bytes_.size(), argument.size()});
    bytes_.append(argument);
  }
  return pieces;
}

RespCall::Part& RespCall::add_part(const RespCommand* part_command, uint32_t shard) {
  Part& part = parts.emplace_back();
  part.command = part_command;
  part.shard = shard;
  return part;
}

void RespCall::join_parts(uint32_t shard_count) {
  if (!reply.empty()) return;
  RespWriter writer(reply.bytes(), version);
  int64_t sum = 0;
  Part* chosen = nullptr;
  ScanCursor cursor;
  switch (join) {
    case RespJoin::Only:
      if (!parts.empty()) reply.append(&parts[0].reply);
      return;
    case RespJoin::Array:
      writer.array(parts.size());
      for (Part& part : parts) reply.append(&part.reply);
      return;
    case RespJoin::Arrays:
      for (const Part& part : parts) sum += static_cast<int64_t>(part.count);
      writer.array(static_cast<uint64_t>(sum));
      for (Part& part : parts) reply.append(&part.reply);
      return;
    case RespJoin::Sum:
    case RespJoin::AllOk:
      for (Part& part : parts) {
        int64_t number = 0;
        Bytes bytes = part.reply.bytes()->view();
        if (is_error(bytes)) chosen = chosen == nullptr ? &part : chosen;
        if (read_integer(bytes, &number)) sum += number;
      }
      if (chosen != nullptr) {
        reply.append(&chosen->reply);
      } else if (join == RespJoin::Sum) {
        writer.integer(sum);
      } else {
        writer.ok();
      }
      return;
    case RespJoin::AnyOne:
      for (Part& part : parts) {
        if (chosen == nullptr || !is_null(part.reply.bytes()->view())) chosen = &part;
      }
      reply.append(&chosen->reply);
      return;
    case RespJoin::Scan:
      // An error of its options is all there is.
      if (is_error(parts[0].reply.bytes()->view())) {
        reply.append(&parts[0].reply);
        return;
      }
      cursor = {parts[0].shard, parts[0].cursor};
      writer.array(2);
      writer.bulk_string(as_bytes(std::to_string(cursor.next(shard_count))));
      writer.array(parts[0].count);
      reply.append(&parts[0].reply);
  }
}

void RespCall::discard(std::vector<OwnedExtent>* released) {
  reply.discard(released);
  for (Part& part : parts) part.reply.discard(released);
}

void RespCall::reset() noexcept {
  session = nullptr;
  command = nullptr;
  join = RespJoin::Only;
  touches = true;
  crosses_slots = false;
  done = false;
  is_silent = false;
  value_bytes = 0;
  execution_ns = 0;
  pending = 0;
  awaited_bytes = 0;
  admin_call = 0;
  next = nullptr;
  watches.clear();
  parts.clear();
  if (parts.capacity() > kKeptParts) parts = std::vector<Part>();
  if (bytes_.capacity() > kKeptBytes) {
    bytes_.release_memory();
  } else {
    bytes_.clear();
  }
}

}  // namespace kvstrata
