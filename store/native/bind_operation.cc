#include "store/native/bind_operation.h"

#include <algorithm>
#include <utility>

#include "store/limits.h"

namespace nb = nanobind;

namespace kvstrata {

namespace {

// Capsules of this size are long enough to hide the way to the node and back, and short enough that
// their credits and the memory behind them keep flowing.
constexpr size_t kDataItemsMax = 128;
constexpr uint64_t kDataBytesMax = 4 << 20;
// Header, descriptor and fields of the largest entry without its checksums.
constexpr size_t kEntryBytesMax = 64;
constexpr size_t kChecksumBytes = 8;
constexpr uint64_t kPieceBytesMin =
    64 * 1024;  // Smallest chunk size that the estimate of the checksums allows for.

}  // namespace

void Operation::begin(uint32_t deadline_ms) {
  if (begun_) throw nb::value_error("an operation is executed once: make a new one");
  begun_ = true;
  open_transfer_count_ = transfers_.size();
  for (Transfer& transfer : transfers_) transfer.deadline_ms = deadline_ms;
}

void Operation::submit(Initiator* initiator) {
  for (Transfer& transfer : transfers_) initiator->submit(&transfer);
}

void Operation::finish() noexcept {
  done_ = true;
  buffers_.release();
  try {
    if (!error_) collect();
  } catch (...) {
    keep_error();
  }
}

void Operation::raise_error() {
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void Operation::expect(size_t item_count) {
  expected_count_ = item_count;
  buffers_.reserve(item_count);
}

TransferItem& Operation::add_item(Opcode opcode, Bytes key, uint64_t data_bytes) {
  bool moves_data = opcode_reads(opcode) || opcode_writes(opcode);
  size_t item_count_max = moves_data ? kDataItemsMax : limits::kCapsuleEntryCountMax;
  size_t entry_bytes = kEntryBytesMax + key.size();
  if (opcode_writes(opcode)) {
    entry_bytes += (data_bytes / kPieceBytesMin + 1) * kChecksumBytes;
  }
  if (transfers_.empty() || transfers_.back().items.size() == item_count_max ||
      body_bytes_ + entry_bytes > limits::kCapsuleBodyBytesMax ||
      data_bytes_ + data_bytes > kDataBytesMax) {
    transfers_.emplace_back(this, opcode);
    transfers_.back().items.reserve(std::min(expected_count_, item_count_max));
    body_bytes_ = 0;
    data_bytes_ = 0;
  }
  body_bytes_ += entry_bytes;
  data_bytes_ += data_bytes;
  TransferItem& item = transfers_.back().items.emplace_back();
  item.key = key;
  return item;
}

const Transfer* Operation::first_failed() const noexcept {
  for (const Transfer& transfer : transfers_) {
    if (transfer.status != Status::Ok) return &transfer;
  }
  return nullptr;
}

Status Operation::status() const noexcept {
  const Transfer* failed = first_failed();
  return failed == nullptr ? Status::Ok : failed->status;
}

const std::string& Operation::message() const noexcept {
  static const std::string kNone;
  const Transfer* failed = first_failed();
  return failed == nullptr ? kNone : failed->message;
}

bool Operation::unsent() const noexcept {
  for (const Transfer& transfer : transfers_) {
    if (transfer.begun) return false;
  }
  return true;
}

nb::list Operation::statuses() const {
  nb::list list;
  for (const Transfer& transfer : transfers_) {
    for (const TransferItem& item : transfer.items) list.append(static_cast<int>(item.status));
  }
  return list;
}

uint64_t Operation::status_set() const noexcept {
  uint64_t set = 0;
  for (const Transfer& transfer : transfers_) {
    for (const TransferItem& item : transfer.items) {
      set |= uint64_t{1} << static_cast<int>(item.status);
    }
  }
  return set;
}

void Operation::provide_sinks(Transfer&, size_t, size_t) noexcept {}

void Operation::ended(Transfer&) noexcept { --open_transfer_count_; }

nb::bytes SingleOperation::reply() const {
  const std::string& reply = only_transfer().reply;
  return nb::bytes(reply.data(), reply.size());
}

}  // namespace kvstrata
