// What Python sees of a request: its arguments held, cut into transfers, its outcomes collected.
//
// Constructors and finish() run with the GIL, provide_sinks() and ended() on the same thread
// without it.
#pragma once

#include <nanobind/nanobind.h>

#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "store/native/bind_buffers.h"
#include "transport/native/initiator.h"
#include "transport/native/transfer.h"

namespace kvstrata {

class Operation : public TransferOwner {
 public:
  Operation() = default;
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  // Raises ValueError: an operation is executed once.
  void begin(uint32_t deadline_ms);
  void submit(Initiator* initiator);
  bool finished() const noexcept { return begun_ && open_transfer_count_ == 0; }
  // Lets go of keys and buffers and makes the outcomes visible.
  void finish() noexcept;
  // Raises, once, what making memory for a value raised.
  void raise_error();

  bool done() const noexcept { return done_; }
  bool unsent() const noexcept;
  virtual Status status() const noexcept;
  const std::string& message() const noexcept;
  nanobind::list statuses() const;
  // Bit n is set if some key's status is n.
  uint64_t status_set() const noexcept;

  void provide_sinks(Transfer& transfer, size_t first, size_t count) noexcept override;
  void ended(Transfer& transfer) noexcept override;

 protected:
  // How many items will be added.
  void expect(size_t item_count);
  // Appends one item, in a new transfer when the last one is full: by count, by size of its capsule
  // or of its data.
  TransferItem& add_item(Opcode opcode, Bytes key, uint64_t data_bytes);
  Transfer& only_transfer() noexcept { return transfers_.front(); }
  const Transfer& only_transfer() const noexcept { return transfers_.front(); }
  const TransferItem& only_item() const noexcept { return transfers_.front().items.front(); }
  virtual void collect() {}
  void keep_error() noexcept { error_ = std::current_exception(); }

  HeldBuffers buffers_;
  std::vector<Transfer>
      transfers_;  // All are there before the initiator is given pointers to them.

 private:
  const Transfer* first_failed() const noexcept;

  size_t expected_count_ = 1;
  size_t body_bytes_ = 0;    // Of the last transfer, estimated from above;
  uint64_t data_bytes_ = 0;  // and its data.
  size_t open_transfer_count_ = 0;
  bool begun_ = false;
  bool done_ = false;
  std::exception_ptr error_;
};

// Outcome of one key, without a status of the whole beside it.
class SingleOperation : public Operation {
 public:
  Status status() const noexcept override { return only_item().status; }
  uint64_t value_length() const noexcept { return only_item().value_length; }
  uint64_t version() const noexcept { return only_item().version; }
  nanobind::bytes reply() const;
};

}  // namespace kvstrata
