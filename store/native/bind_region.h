// Memory that nodes on the same host may reach, as Python holds it.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "transport/native/region_set.h"

namespace kvstrata {

// Those of a store, for its connections.
struct PythonRegions {
  std::shared_ptr<RegionSet> set = std::make_shared<RegionSet>();
};

// One of them, with the buffer protocol. It can be closed once nobody has a view of it.
class PythonRegion {
 public:
  // `closed` is called when the node is to be told. Raises MemoryError.
  PythonRegion(const PythonRegions& regions, uint64_t bytes, nanobind::callable closed);
  ~PythonRegion() { set_->close(region_); }
  PythonRegion(const PythonRegion&) = delete;
  PythonRegion& operator=(const PythonRegion&) = delete;

  uint64_t size() const noexcept { return region_->bytes().size(); }
  bool is_closed() const noexcept { return region_->is_closed(); }
  // Raises BufferError while there are views.
  void close();

  // The buffer protocol's.
  static int get_buffer(PyObject* self, Py_buffer* view, int flags) noexcept;
  static void release_buffer(PyObject* self, Py_buffer* view) noexcept;

 private:
  std::shared_ptr<RegionSet> set_;
  std::shared_ptr<Region> region_;
  nanobind::callable closed_;
  uint64_t view_count_ = 0;
};

}  // namespace kvstrata
