#include "store/native/bind_region.h"

#include <string>

#include "store/native/bind.h"
#include "store/native/bind_gil.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace kvstrata {

PythonRegion::PythonRegion(const PythonRegions& regions, uint64_t bytes, nb::callable closed)
    : set_(regions.set), closed_(std::move(closed)) {
  if (bytes == 0) throw nb::value_error("a region has at least one byte, not 0");
  std::string error;
  {
    WithoutGil without_gil;  // Its pages are had here, all of them.
    region_ = set_->allocate(bytes, &error);
  }
  if (region_ != nullptr) return;
  PyErr_SetString(PyExc_MemoryError, error.c_str());
  throw nb::python_error();
}

void PythonRegion::close() {
  if (is_closed()) return;
  if (view_count_ != 0) {
    throw nb::buffer_error(("the region is in use: " + std::to_string(view_count_) +
                            " views of it, such as arrays, are to go first")
                               .c_str());
  }
  set_->close(region_);
  nb::callable closed = std::move(closed_);
  closed();
}

int PythonRegion::get_buffer(PyObject* self, Py_buffer* view, int flags) noexcept {
  auto* region = nb::inst_ptr<PythonRegion>(nb::handle(self));
  if (region->is_closed()) {
    view->obj = nullptr;
    PyErr_SetString(PyExc_BufferError, "the region is closed");
    return -1;
  }
  MutableBytes bytes = region->region_->bytes();
  auto size = static_cast<Py_ssize_t>(bytes.size());
  int failed = PyBuffer_FillInfo(view, self, bytes.data(), size, 0, flags);
  if (failed == 0) ++region->view_count_;
  return failed;
}

void PythonRegion::release_buffer(PyObject* self, Py_buffer*) noexcept {
  --nb::inst_ptr<PythonRegion>(nb::handle(self))->view_count_;
}

void bind_region(nb::module_& module) {
  static PyType_Slot slots[] = {
      {Py_bf_getbuffer, reinterpret_cast<void*>(PythonRegion::get_buffer)},
      {Py_bf_releasebuffer, reinterpret_cast<void*>(PythonRegion::release_buffer)},
      {0, nullptr},
  };
  nb::class_<PythonRegions>(module, "Regions", nb::is_final()).def(nb::init<>());
  nb::class_<PythonRegion>(module, "Region", nb::is_final(), nb::type_slots(slots))
      .def(nb::init<const PythonRegions&, uint64_t, nb::callable>(), "regions"_a, "nbytes"_a,
           "closed"_a)
      .def_prop_ro("nbytes", &PythonRegion::size)
      .def_prop_ro("closed", &PythonRegion::is_closed)
      .def("__len__", &PythonRegion::size)
      .def("close", &PythonRegion::close)
      .def("__enter__", [](nb::handle self) { return nb::borrow(self); })
      .def("__exit__", [](PythonRegion& self, const nb::args&) { self.close(); });
}

}  // namespace kvstrata
