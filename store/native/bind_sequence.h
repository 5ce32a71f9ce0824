// An argument of Python that is a sequence: list or tuple in place, anything else copied into a
// list. Needs the GIL.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

namespace kvstrata {

class KeySequence {
 public:
  // Raises TypeError.
  KeySequence(nanobind::handle argument, const char* what) {
    bool text = PyUnicode_Check(argument.ptr()) || PyObject_CheckBuffer(argument.ptr());
    PyObject* fast = text ? nullptr : PySequence_Fast(argument.ptr(), "");
    if (fast == nullptr) {
      PyErr_Clear();
      throw nanobind::type_error((std::string(what) + " must be a sequence, not '" +
                                  Py_TYPE(argument.ptr())->tp_name + "'")
                                     .c_str());
    }
    sequence_ = nanobind::steal(fast);
  }

  size_t size() const noexcept {
    return static_cast<size_t>(PySequence_Fast_GET_SIZE(sequence_.ptr()));
  }
  nanobind::handle operator[](size_t index) const noexcept {
    return PySequence_Fast_GET_ITEM(sequence_.ptr(), static_cast<Py_ssize_t>(index));
  }
  // Raises ValueError.
  void check_same_size(const KeySequence& other) const {
    if (size() == other.size()) return;
    throw nanobind::value_error(("there are " + std::to_string(size()) + " keys, but " +
                                 std::to_string(other.size()) + " buffers for them")
                                    .c_str());
  }

 private:
  nanobind::object sequence_;
};

}  // namespace kvstrata
