#include "store/native/bind_buffers.h"

#include <cstring>

#include "store/limits.h"

namespace nb = nanobind;

namespace kvstrata {

const Py_buffer& HeldBuffers::get(nb::handle object, int flags, const char* what) {
  const char* type = Py_TYPE(object.ptr())->tp_name;
  if (!PyObject_CheckBuffer(object.ptr())) {
    throw nb::type_error(
        (std::string(what) + " must be bytes or another buffer, not '" + type + "'").c_str());
  }
  Py_buffer view;
  if (PyObject_GetBuffer(object.ptr(), &view, flags | PyBUF_ND | PyBUF_FORMAT) != 0) {
    nb::python_error cause;
    const char* wanted = flags == PyBUF_WRITABLE ? "writable and contiguous" : "contiguous";
    nb::raise_from(cause, PyExc_BufferError, "%s must be %s memory, and this '%s' is not", what,
                   wanted, type);
  }
  views_.push_back(view);
  // Objects of Python are pointers: worthless elsewhere, and deadly when they are overwritten.
  if (view.format != nullptr && std::strchr(view.format, 'O') != nullptr) {
    throw nb::type_error((std::string(what) + " must hold plain bytes, and this '" + type +
                          "' may hold Python objects")
                             .c_str());
  }
  return views_.back();
}

Bytes HeldBuffers::hold(nb::handle object, const char* what) {
  if (PyBytes_CheckExact(object.ptr())) {
    objects_.push_back(nb::borrow(object));
    return {reinterpret_cast<const std::byte*>(PyBytes_AS_STRING(object.ptr())),
            static_cast<size_t>(PyBytes_GET_SIZE(object.ptr()))};
  }
  const Py_buffer& view = get(object, PyBUF_SIMPLE, what);
  return {static_cast<const std::byte*>(view.buf), static_cast<size_t>(view.len)};
}

// Python keeps the UTF-8 form inside the string, so nothing is copied here either.
Bytes HeldBuffers::hold_text(nb::handle text) {
  Py_ssize_t size = 0;
  const char* data = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
  if (data == nullptr) throw nb::python_error();
  objects_.push_back(nb::borrow(text));
  return {reinterpret_cast<const std::byte*>(data), static_cast<size_t>(size)};
}

MutableBytes HeldBuffers::hold_writable(nb::handle object, const char* what) {
  const Py_buffer& view = get(object, PyBUF_WRITABLE, what);
  return {static_cast<std::byte*>(view.buf), static_cast<size_t>(view.len)};
}

Bytes HeldBuffers::hold_key(nb::handle object) {
  bool is_text = PyUnicode_Check(object.ptr());
  if (!is_text && !PyBytes_Check(object.ptr())) {
    throw nb::type_error(
        (std::string("a key must be bytes or str, not '") + Py_TYPE(object.ptr())->tp_name + "'")
            .c_str());
  }
  Bytes key = is_text ? hold_text(object) : hold(object, "a key");
  if (key.size() <= limits::kKeyBytesMax) return key;
  throw nb::value_error(("a key of " + std::to_string(key.size()) + " bytes is too long: at most " +
                         std::to_string(limits::kKeyBytesMax) + " are allowed")
                            .c_str());
}

void HeldBuffers::release() noexcept {
  for (Py_buffer& view : views_) PyBuffer_Release(&view);
  views_.clear();
  objects_.clear();
}

}  // namespace kvstrata
