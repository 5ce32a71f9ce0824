#include "transport/native/uring_library.h"

#include <dlfcn.h>

namespace kvstrata {

namespace {

template <typename Function>
bool find(void* library, const char* name, Function* function) noexcept {
  *function = reinterpret_cast<Function>(::dlsym(library, name));
  return *function != nullptr;
}

}  // namespace

const UringLibrary* UringLibrary::load() noexcept {
  static const UringLibrary* loaded = []() -> const UringLibrary* {
    void* library = ::dlopen("liburing.so.2", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return nullptr;
    static UringLibrary table;
    bool whole =
        find(library, "io_uring_queue_init_params", &table.queue_init_params) &&
        find(library, "io_uring_queue_exit", &table.queue_exit) &&
        find(library, "io_uring_submit", &table.submit) &&
        find(library, "io_uring_submit_and_get_events", &table.submit_and_get_events) &&
        find(library, "io_uring_submit_and_wait_timeout", &table.submit_and_wait_timeout) &&
        find(library, "io_uring_register_buf_ring", &table.register_buf_ring) &&
        find(library, "io_uring_register_iowq_max_workers", &table.register_iowq_max_workers);
    return whole ? &table : nullptr;
  }();
  return loaded;
}

}  // namespace kvstrata
