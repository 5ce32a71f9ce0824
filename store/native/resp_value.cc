#include "store/native/resp_value.h"

#include <string>
#include <utility>

#include "transport/native/checksum.h"

namespace kvstrata {

namespace {

// How often room is made for a write that may not wait: some milliseconds of evicting.
constexpr uint32_t kRoomTries = 500;
// With the longest key and all else, such a value fits inside a record.
constexpr size_t kSmallBytesMax = limits::kRecordBytesInlineMax - limits::kKeyBytesMax - 64;

uint64_t ttl_for(const ObjectStore& store, uint64_t expiry_ms) noexcept {
  if (expiry_ms == kExpiryOfPool) return 0;
  if (expiry_ms == RecordView::kNoExpiry) return kTtlNever;
  // What ends in the past is stored first and deleted then, as anybody who looks would find.
  return expiry_ms > store.now_ms() ? expiry_ms - store.now_ms() : 1;
}

void fill(ObjectStore& store, Location location, Bytes value) noexcept {
  for (uint64_t at = 0; at < value.size();) {
    auto index = static_cast<uint32_t>(at / limits::kChunkBytes);
    MutableBytes target = store.piece(location, index);
    std::memcpy(target.data(), value.data() + at, target.size());
    store.set_checksum(location, index, chunk_checksum(target));
    at += target.size();
  }
}

// Into the execution's open record, if it is not in there already, and visible. Busy: call again.
Status put(RespExecution& execution, const WriteRequest& request, Bytes value, uint64_t expiry_ms) {
  ObjectStore& store = execution.store;
  Partition& partition = execution.partition;
  Location* open = execution.open;
  CommitOutcome outcome;
  bool is_small = *open == 0 && value.size() <= kSmallBytesMax;
  bool is_filled = *open != 0 && value.empty();  // It streamed in.
  Status status = Status::Ok;
  if (is_small) {
    Location present = store.find(partition, request.hash, request.key);
    status = store.put_small(partition, request, present, value, open, &outcome);
  } else if (is_filled) {
    // Chunked records have the field.
    if (expiry_ms != kExpiryOfPool) store.view(*open).set_expiry_ms(expiry_ms);
  } else {
    status = store.reserve(partition, request, open, &outcome);
    if (status == Status::Ok) fill(store, *open, value);
  }
  if (status != Status::Ok) return status;
  if (!is_small) {
    outcome = store.commit(partition, std::exchange(*open, 0), request.hash, false);
  }
  if (outcome.status == Status::Ok) partition.statistics->put_bytes.add(outcome.value_length);
  return outcome.status;
}

}  // namespace

void reply_with_value(RespExecution& execution, Location location, uint64_t begin, uint64_t end) {
  ObjectStore& store = execution.store;
  RecordView record = store.view(location);
  RespWriter writer = execution.writer();
  execution.partition.statistics->get_bytes.add(end - begin);
  if (!record.has(kIsChunked)) {
    writer.bulk_string(Bytes(record.inline_value()).subspan(begin, end - begin));
    return;
  }
  writer.begin_bulk_string(end - begin);
  while (begin < end) {
    auto index = static_cast<uint32_t>(begin / limits::kChunkBytes);
    uint64_t skip = begin % limits::kChunkBytes;
    uint64_t length = std::min(end - begin, record.chunk_length(index) - skip);
    Extent extent = record.extent(index);
    store.retain(extent);
    execution.reply->add_piece(store.at(extent.offset) + skip, {extent, skip, length},
                               execution.shard);
    begin += length;
  }
  writer.end_bulk_string();
}

void reply_with_value(RespExecution& execution, Location location) {
  reply_with_value(execution, location, 0, execution.store.view(location).value_length());
}

bool value_equals(const ObjectStore& store, Location location, Bytes bytes) noexcept {
  RecordView record = store.view(location);
  if (record.value_length() != bytes.size()) return false;
  for (uint64_t at = 0; at < bytes.size();) {
    Bytes piece = store.piece(location, static_cast<uint32_t>(at / limits::kChunkBytes));
    if (!equal(piece, bytes.subspan(at, piece.size()))) return false;
    at += piece.size();
  }
  return true;
}

Location look_up(RespExecution& execution, Bytes key) noexcept {
  ObjectStore& store = execution.store;
  uint64_t hash = store.hash(key);
  return execution.touches ? store.read(execution.partition, hash, key)
                           : store.find(execution.partition, hash, key);
}

Status store_value(RespExecution& execution, Bytes key, Bytes value, uint64_t expiry_ms,
                   bool* stored) {
  ObjectStore& store = execution.store;
  Partition& partition = execution.partition;
  uint64_t hash = store.hash(key);
  *stored = false;
  if (execution.open_status != Status::Ok) {
    reply_with_refusal(execution, execution.open_status, execution.value_bytes);
    return Status::Ok;
  }
  WriteRequest request{key, {}, hash, value.size(), ttl_for(store, expiry_ms), false};
  Status status = Status::Busy;
  for (uint32_t tries = 0; status == Status::Busy && tries < kRoomTries; ++tries) {
    status = put(execution, request, value, expiry_ms);
    if (status == Status::Busy && execution.may_wait) return status;
  }
  if (status != Status::Ok) {
    abandon_open(execution);
    partition.statistics->put_refusals.add();
    reply_with_refusal(execution, status, value.size());
    return Status::Ok;
  }
  if (expiry_ms != kExpiryOfPool && expiry_ms <= store.now_ms()) {
    store.remove(partition, hash, key);
  }
  *stored = true;
  return Status::Ok;
}

void abandon_open(RespExecution& execution) noexcept {
  if (*execution.open != 0) execution.store.abort(std::exchange(*execution.open, 0));
}

bool remove_key(RespExecution& execution, Bytes key) noexcept {
  return execution.store.remove(execution.partition, execution.store.hash(key), key);
}

void reply_with_refusal(RespExecution& execution, Status status, uint64_t value_bytes) {
  std::string text;
  switch (status) {
    case Status::Immutable:
    case Status::Exists:
      text =
          "IMMUTABLE this pool is immutable: the value of an existing key stays as it is; "
          "delete the key first, or store under NX what is not there yet";
      break;
    case Status::TooLarge:
      text = "ERR the value of " + std::to_string(value_bytes) +
             " bytes is larger than this pool can hold";
      break;
    case Status::Corrupt:
      text = "ERR the value did not match its checksum and was dropped";
      break;
    case Status::Denied:
      text = "ERR the pool was dropped";
      break;
    case Status::Mismatch:
      text = "ERR the value changed meanwhile; try again";
      break;
    case Status::NoSpace:
    default:
      text = "OOM command not allowed when used memory > 'maxmemory'.";
  }
  execution.writer().error(text);
}

}  // namespace kvstrata
