// Put and PutMany.
#pragma once

#include "store/native/bind_operation.h"

namespace kvstrata {

class Put final : public SingleOperation {
 public:
  Put(nanobind::handle key, nanobind::handle value, uint64_t ttl_ms, bool if_absent,
      std::optional<uint64_t> append_at, nanobind::bytes attributes);

  int result() const noexcept { return static_cast<int>(only_item().result); }
};

class PutMany final : public Operation {
 public:
  PutMany(nanobind::handle keys, nanobind::handle values, uint64_t ttl_ms, bool if_absent);

  nanobind::list results() const;
};

}  // namespace kvstrata
