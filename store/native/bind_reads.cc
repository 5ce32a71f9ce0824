#include "store/native/bind_reads.h"

#include "store/native/bind_gil.h"
#include "store/native/bind_sequence.h"

namespace nb = nanobind;

namespace kvstrata {

namespace {

// Up to here a second copy costs less than taking the GIL in the middle of a receive might.
constexpr uint64_t kScratchBytesMax = 64 * 1024;

}  // namespace

void FreshValues::provide(Transfer* transfer, size_t first, size_t count, size_t key) {
  uint64_t sum = 0;
  for (size_t i = first; i < first + count; ++i) sum += transfer->items[i].moved;
  if (sum <= kScratchBytesMax) {
    scratch_.push_back(std::make_unique_for_overwrite<std::byte[]>(sum));
    std::byte* next = scratch_.back().get();
    for (size_t i = first; i < first + count; ++i) {
      TransferItem& item = transfer->items[i];
      item.sink = {next, item.moved};
      next += item.moved;
    }
    return;
  }
  WithGil with_gil;
  for (size_t i = first; i < first + count; ++i) {
    TransferItem& item = transfer->items[i];
    if (item.status != Status::Ok) continue;
    PyObject* value = PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(item.moved));
    if (value == nullptr) throw nb::python_error();
    values_[key + i] = nb::steal(value);
    item.sink = {reinterpret_cast<std::byte*>(PyBytes_AS_STRING(value)), item.moved};
  }
}

nb::object FreshValues::take(size_t key, const TransferItem& item) {
  if (values_[key].is_valid()) return std::move(values_[key]);
  return nb::bytes(item.sink.data(), item.moved);
}

Get::Get(nb::handle key, nb::handle buffer, nb::handle allocate, uint64_t offset,
         std::optional<uint64_t> length) {
  bool ranged = offset != 0 || length.has_value();
  MutableBytes sink;
  if (!buffer.is_none()) sink = buffers_.hold_writable(buffer, "the buffer to read into");
  TransferItem& item =
      add_item(ranged ? Opcode::GetRange : Opcode::Get, buffers_.hold_key(key), sink.size());
  item.sink = sink;
  Transfer& transfer = only_transfer();
  transfer.offset = offset;
  transfer.length = length.value_or(UINT64_MAX);
  transfer.asks_sinks = buffer.is_none();
  fresh_.resize(1);
  if (allocate.is_none()) return;
  if (!buffer.is_none()) throw nb::value_error("give either a buffer or allocate, not both");
  allocate_ = nb::borrow(allocate);
}

void Get::provide_sinks(Transfer& transfer, size_t first, size_t count) noexcept {
  if (count == 0 || transfer.items[0].status != Status::Ok) return;
  try {
    if (allocate_.is_valid()) {
      provide_allocated(&transfer.items[0]);
    } else {
      fresh_.provide(&transfer, first, count, 0);
    }
  } catch (...) {
    keep_error();
  }
}

void Get::provide_allocated(TransferItem* item) {
  WithGil with_gil;
  nb::object memory = allocate_(item->moved);
  MutableBytes sink = buffers_.hold_writable(memory, "what allocate() returns");
  if (sink.size() < item->moved) {
    throw nb::buffer_error(("allocate() returned " + std::to_string(sink.size()) +
                            " bytes for a value of " + std::to_string(item->moved))
                               .c_str());
  }
  item->sink = sink;
  value_ = std::move(memory);
}

void Get::collect() {
  const TransferItem& item = only_item();
  if (item.status != Status::Ok) {
    value_ = nb::none();
  } else if (only_transfer().asks_sinks && !allocate_.is_valid()) {
    value_ = fresh_.take(0, item);
  }
  allocate_.reset();
}

GetMany::GetMany(nb::handle keys, nb::handle buffers) : fresh_wanted_(buffers.is_none()) {
  KeySequence key_sequence(keys, "keys");
  expect(key_sequence.size());
  if (fresh_wanted_) {
    fresh_.resize(key_sequence.size());
    for (size_t i = 0; i < key_sequence.size(); ++i) {
      add_item(Opcode::Get, buffers_.hold_key(key_sequence[i]), 0);
    }
    for (Transfer& transfer : transfers_) transfer.asks_sinks = true;
    return;
  }
  KeySequence sinks(buffers, "buffers");
  key_sequence.check_same_size(sinks);
  for (size_t i = 0; i < key_sequence.size(); ++i) {
    MutableBytes sink = buffers_.hold_writable(sinks[i], "a buffer to read into");
    add_item(Opcode::Get, buffers_.hold_key(key_sequence[i]), sink.size()).sink = sink;
  }
}

void GetMany::provide_sinks(Transfer& transfer, size_t first, size_t count) noexcept {
  size_t key = 0;
  for (const Transfer& each : transfers_) {
    if (&each == &transfer) break;
    key += each.items.size();
  }
  try {
    fresh_.provide(&transfer, first, count, key);
  } catch (...) {
    keep_error();
  }
}

void GetMany::collect() {
  if (!fresh_wanted_) return;
  size_t key = 0;
  for (const Transfer& transfer : transfers_) {
    for (const TransferItem& item : transfer.items) {
      values_.append(item.status == Status::Ok ? fresh_.take(key, item) : nb::none());
      ++key;
    }
  }
}

nb::list GetMany::lengths() const {
  nb::list list;
  for (const Transfer& transfer : transfers_) {
    for (const TransferItem& item : transfer.items) {
      if (item.status == Status::Ok || item.status == Status::TooSmall) {
        list.append(item.value_length);
      } else {
        list.append(nb::none());
      }
    }
  }
  return list;
}

}  // namespace kvstrata
