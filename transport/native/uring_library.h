// liburing, loaded when it is first needed: the package imports where it is missing.
#pragma once

#include <liburing.h>

namespace kvstrata {

struct UringLibrary {
  decltype(&io_uring_queue_init_params) queue_init_params = nullptr;
  decltype(&io_uring_queue_exit) queue_exit = nullptr;
  decltype(&io_uring_submit) submit = nullptr;
  decltype(&io_uring_submit_and_get_events) submit_and_get_events = nullptr;
  decltype(&io_uring_submit_and_wait_timeout) submit_and_wait_timeout = nullptr;
  decltype(&io_uring_register_buf_ring) register_buf_ring = nullptr;
  decltype(&io_uring_register_iowq_max_workers) register_iowq_max_workers = nullptr;

  // Null if it is missing, or older than 2.3. Lives as long as the process.
  static const UringLibrary* load() noexcept;
};

}  // namespace kvstrata
