// Get and GetMany: into the caller's buffers, or into memory that is made once the sizes are known.
#pragma once

#include "store/native/bind_operation.h"

namespace kvstrata {

// New `bytes` objects for values whose size the node has just told.
class FreshValues {
 public:
  void resize(size_t key_count) { values_.resize(key_count); }
  // Sinks for the items [first, first + count) of a transfer whose first key has the number `key`.
  // Called without the GIL; small values do not take it. Throws what making them raises.
  void provide(Transfer* transfer, size_t first, size_t count, size_t key);
  // The value of an item that is OK; with the GIL.
  nanobind::object take(size_t key, const TransferItem& item);

 private:
  std::vector<nanobind::object> values_;  // Those received in place.
  std::vector<std::unique_ptr<std::byte[]>> scratch_;
};

class Get final : public SingleOperation {
 public:
  Get(nanobind::handle key, nanobind::handle buffer, nanobind::handle allocate, uint64_t offset,
      std::optional<uint64_t> length);

  // Raises what allocate() raised.
  nanobind::object value() {
    raise_error();
    return value_;
  }
  uint64_t length() const noexcept { return only_item().moved; }

  void provide_sinks(Transfer& transfer, size_t first, size_t count) noexcept override;

 private:
  void collect() override;
  void provide_allocated(TransferItem* item);

  nanobind::object allocate_;
  nanobind::object value_ = nanobind::none();
  FreshValues fresh_;
};

class GetMany final : public Operation {
 public:
  GetMany(nanobind::handle keys, nanobind::handle buffers);

  nanobind::list values() {
    raise_error();
    return values_;
  }
  nanobind::list lengths() const;

  void provide_sinks(Transfer& transfer, size_t first, size_t count) noexcept override;

 private:
  void collect() override;

  bool fresh_wanted_;
  FreshValues fresh_;
  nanobind::list values_;
};

}  // namespace kvstrata
