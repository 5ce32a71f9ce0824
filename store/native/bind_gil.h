// Letting go of the GIL and taking it back, so that the interpreter may end meanwhile.
//
// Up to version 3.13 Python ends a daemon thread that asks for the GIL of an interpreter that is
// going down by pthread_exit, which unwinds the stack; it would meet frames that must not throw,
// and the process would abort. Such a thread sleeps here instead until the process has ended, which
// is what Python itself does from 3.14 on.
#pragma once

#include <Python.h>
#include <cxxabi.h>
#include <unistd.h>

namespace kvstrata {

template <typename Take>
auto take_gil(Take take) noexcept {
  try {
    return take();
  } catch (abi::__forced_unwind&) {
    for (;;) ::pause();
  }
}

class WithoutGil {
 public:
  WithoutGil() : state_(PyEval_SaveThread()) {}
  ~WithoutGil() {
    take_gil([this] { PyEval_RestoreThread(state_); });
  }
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  PyThreadState* state_;
};

// On a thread that let go of it, or never had it.
class WithGil {
 public:
  WithGil() : state_(take_gil(PyGILState_Ensure)) {}
  ~WithGil() { PyGILState_Release(state_); }
  WithGil(const WithGil&) = delete;
  WithGil& operator=(const WithGil&) = delete;

 private:
  PyGILState_STATE state_;
};

}  // namespace kvstrata
