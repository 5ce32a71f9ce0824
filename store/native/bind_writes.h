// Put and PutMany, and the file that a Put may send.
#pragma once

#include <vector>

#include "store/native/bind_operation.h"

namespace kvstrata {

// Over a descriptor of its own, to the same open file. Raises OSError.
void construct_file_source(FileSource* self, int descriptor, uint64_t length,
                           std::vector<uint64_t> checksums);

class Put final : public SingleOperation {
 public:
  // `value` is a buffer or, but for an append, a FileSource.
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
