// A queue between threads: anyone posts, the owner takes everything at once. The owner is woken
// through an eventfd, and only when it sleeps.
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <iterator>
#include <mutex>
#include <utility>
#include <vector>

namespace kvstrata {

template <typename Owner>
class Mailbox {
 public:
  using Letter = std::function<void(Owner&)>;

  Mailbox() : fd_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}
  ~Mailbox() { ::close(fd_); }
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

  int fd() const noexcept { return fd_; }

  void post(Letter letter) {
    {
      std::lock_guard lock(mutex_);
      letters_.push_back(std::move(letter));
    }
    wake_if_asleep();
  }

  // As if they were posted one by one. Leaves none.
  void post_all(std::vector<Letter>* letters) {
    {
      std::lock_guard lock(mutex_);
      if (letters_.empty()) letters_.swap(*letters);
      std::move(letters->begin(), letters->end(), std::back_inserter(letters_));
    }
    letters->clear();
    wake_if_asleep();
  }

  // The owner's.
  bool has_letters() const noexcept {
    return next_ != taken_.size() || waiting_.load(std::memory_order_seq_cst);
  }

  // The owner's: true if it may sleep now, on the descriptor among others; then call `awake`
  // afterwards.
  bool may_sleep() noexcept {
    sleeping_.store(true, std::memory_order_seq_cst);
    if (!has_letters()) return true;
    awake();
    return false;
  }
  void awake() noexcept { sleeping_.store(false, std::memory_order_relaxed); }
  void clear_wake() noexcept {
    uint64_t count = 0;
    [[maybe_unused]] auto read = ::read(fd_, &count, sizeof count);
  }

  // Handles what was there when it began, or what is left of it, in order; stops after the letter
  // that made `enough()` true.
  template <typename Enough>
  void deliver(Owner& owner, Enough enough) {
    if (next_ == taken_.size()) {
      taken_.clear();
      next_ = 0;
      std::lock_guard lock(mutex_);
      waiting_.store(false, std::memory_order_seq_cst);
      taken_.swap(letters_);
    }
    while (next_ != taken_.size()) {
      Letter letter = std::move(taken_[next_++]);
      letter(owner);
      if (enough()) return;
    }
  }

 private:
  // Who finds the owner asleep wakes it, nobody else.
  void wake_if_asleep() noexcept {
    waiting_.store(true, std::memory_order_seq_cst);
    if (!sleeping_.load(std::memory_order_seq_cst) || !sleeping_.exchange(false)) return;
    uint64_t one = 1;
    [[maybe_unused]] auto written = ::write(fd_, &one, sizeof one);
  }
  int fd_;
  std::mutex mutex_;
  std::vector<Letter> letters_;
  std::vector<Letter> taken_;  // The owner's, as is next_: its first that was not handled yet.
  size_t next_ = 0;
  std::atomic<bool> waiting_{false};
  std::atomic<bool> sleeping_{false};
};

}  // namespace kvstrata
