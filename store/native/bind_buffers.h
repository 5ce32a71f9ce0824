// Memory of Python objects, held so that native code can use it without the GIL. Everything here
// itself needs the GIL.
#pragma once

#include <nanobind/nanobind.h>

#include <vector>

#include "transport/native/bytes.h"

namespace kvstrata {

class HeldBuffers {
 public:
  HeldBuffers() = default;
  ~HeldBuffers() { release(); }
  HeldBuffers(const HeldBuffers&) = delete;
  HeldBuffers& operator=(const HeldBuffers&) = delete;

  void reserve(size_t count) { objects_.reserve(count); }
  // `what` names the argument in errors. Raises TypeError (no buffer), BufferError (not contiguous;
  // read-only).
  Bytes hold(nanobind::handle object, const char* what);
  MutableBytes hold_writable(nanobind::handle object, const char* what);
  // Like hold(), but takes str too, as UTF-8. Raises ValueError for a key longer than the protocol
  // takes, and for text that has no UTF-8 form.
  Bytes hold_key(nanobind::handle object);
  void keep(nanobind::handle object) { objects_.push_back(nanobind::borrow(object)); }
  void release() noexcept;

 private:
  const Py_buffer& get(nanobind::handle object, int flags, const char* what);
  Bytes hold_text(nanobind::handle text);

  std::vector<Py_buffer> views_;
  // bytes, str and what else does not move, and so needs no view.
  std::vector<nanobind::object> objects_;
};

}  // namespace kvstrata
