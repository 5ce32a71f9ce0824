// Commands that change values: numbers in text, and bytes added at the end.
#include <array>
#include <charconv>
#include <limits>

#include "store/native/resp_value.h"
#include "transport/native/checksum.h"
#include "transport/native/decimal.h"

namespace kvstrata {

namespace {

constexpr size_t kNumberBytesMax = 20;
constexpr uint32_t kAppendTries = 500;

// The number that a key holds; 0 without a value. False if it holds something else.
bool read_number(const ObjectStore& store, Location location, int64_t* number) noexcept {
  *number = 0;
  if (location == 0) return true;
  uint64_t length = store.view(location).value_length();
  if (length == 0 || length > kNumberBytesMax) return false;
  return parse_decimal(as_text(store.piece(location, 0)), number);
}

Status add(RespExecution& execution, int64_t amount) {
  ObjectStore& store = execution.store;
  Bytes key = execution.arguments[1];
  // Its room was reserved for what the number was before it waited.
  abandon_open(execution);
  Location present = store.find(execution.partition, store.hash(key), key);
  int64_t number = 0;
  if (!read_number(store, present, &number)) {
    execution.writer().error(resp_error::kNotInteger);
    return Status::Ok;
  }
  if (__builtin_add_overflow(number, amount, &number)) {
    execution.writer().error("ERR increment or decrement would overflow");
    return Status::Ok;
  }
  std::array<char, kNumberBytesMax> text;
  auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), number);
  std::string_view digits(text.data(), static_cast<size_t>(end - text.data()));
  uint64_t expiry_ms = present == 0 ? kExpiryOfPool : store.view(present).expiry_ms();
  bool stored = false;
  Status status = store_value(execution, key, as_bytes(digits), expiry_ms, &stored);
  if (stored) execution.writer().integer(number);
  return status;
}

Status add_argument(RespExecution& execution, bool negate) {
  int64_t amount = 0;
  if (!parse_decimal(execution.text(2), &amount)) {
    execution.writer().error(resp_error::kNotInteger);
    return Status::Ok;
  }
  if (negate && amount == std::numeric_limits<int64_t>::min()) {
    execution.writer().error("ERR decrement would overflow");
    return Status::Ok;
  }
  return add(execution, negate ? -amount : amount);
}

// Fills an open append from byte `at` of the object on.
void fill_append(ObjectStore& store, Location location, uint64_t at, Bytes bytes) noexcept {
  while (!bytes.empty()) {
    auto index = static_cast<uint32_t>(at / limits::kChunkBytes);
    MutableBytes target = store.piece(location, index).subspan(at % limits::kChunkBytes);
    size_t count = std::min(target.size(), bytes.size());
    std::memcpy(target.data(), bytes.data(), count);
    store.set_checksum(location, index, chunk_checksum(target.first(count)));
    at += count;
    bytes = bytes.subspan(count);
  }
}

Status append(RespExecution& execution) {
  ObjectStore& store = execution.store;
  Partition& partition = execution.partition;
  Bytes key = execution.arguments[1];
  Bytes bytes = execution.arguments[2];
  uint64_t hash = store.hash(key);
  for (uint32_t tries = 0;; ++tries) {
    Location present = store.find(partition, hash, key);
    uint64_t at = present == 0 ? 0 : store.view(present).value_length();
    if (bytes.empty() && present != 0) {
      abandon_open(execution);
      store.renew(present);
      store.view(present).header().was_appended = true;
      execution.writer().integer(static_cast<int64_t>(at));
      return Status::Ok;
    }
    Location location = std::exchange(*execution.open, 0);
    CommitOutcome outcome;
    WriteRequest request{key, {}, hash, bytes.size(), 0, false};
    Status status = store.reserve_append(partition, request, at, &location, &outcome);
    if (status == Status::Busy && execution.may_wait) {
      *execution.open = location;
      return status;
    }
    if (status == Status::Busy && tries < kAppendTries) {
      *execution.open = location;
      continue;
    }
    bool changed = status == Status::Mismatch;  // Evicted, or written, while there was no room.
    if (status == Status::Ok) {
      fill_append(store, location, at, bytes);
      outcome = store.commit_append(partition, location, hash, at);
      status = outcome.status;
    } else if (location != 0) {
      store.abort(location);
    }
    if (changed && tries < kAppendTries) continue;
    if (status == Status::Ok) {
      partition.statistics->put_bytes.add(bytes.size());
      execution.writer().integer(static_cast<int64_t>(outcome.value_length));
    } else {
      reply_with_refusal(execution, status, at + bytes.size());
    }
    return Status::Ok;
  }
}

void delete_if_equal(RespExecution& execution) {
  ObjectStore& store = execution.store;
  Bytes key = execution.arguments[1];
  Location present = store.find(execution.partition, store.hash(key), key);
  bool matches = present != 0 && value_equals(store, present, execution.arguments[2]);
  if (matches) remove_key(execution, key);
  execution.writer().integer(matches ? 1 : 0);
}

}  // namespace

Status execute_number(RespExecution& execution) {
  switch (execution.command->id) {
    case RespCommandId::Incr:
      return add(execution, 1);
    case RespCommandId::Decr:
      return add(execution, -1);
    case RespCommandId::Incrby:
      return add_argument(execution, false);
    case RespCommandId::Decrby:
      return add_argument(execution, true);
    case RespCommandId::Append:
      return append(execution);
    default:
      delete_if_equal(execution);
      return Status::Ok;
  }
}

}  // namespace kvstrata
