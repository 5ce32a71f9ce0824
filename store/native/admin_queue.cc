#include "store/native/admin_queue.h"

#include <sys/eventfd.h>
#include <unistd.h>

namespace kvstrata {

// A semaphore: one read takes one call.
AdminQueue::AdminQueue() : fd_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC | EFD_SEMAPHORE)) {}

AdminQueue::~AdminQueue() { ::close(fd_); }

bool AdminQueue::push(AdminCall call) {
  std::lock_guard lock(mutex_);
  if (calls_.size() >= kWaitingMax) return false;
  calls_.push_back(std::move(call));
  uint64_t one = 1;
  return ::write(fd_, &one, sizeof one) == sizeof one;
}

std::optional<AdminCall> AdminQueue::pop() {
  uint64_t one = 0;
  if (::read(fd_, &one, sizeof one) != sizeof one) return std::nullopt;
  std::lock_guard lock(mutex_);
  if (calls_.empty()) return std::nullopt;
  AdminCall call = std::move(calls_.front());
  calls_.pop_front();
  return call;
}

}  // namespace kvstrata
