#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "transport/native/reactor.h"

namespace kvstrata {

namespace {

constexpr size_t kEventCount = 64;

}  // namespace

class EpollReactor final : public Reactor {
 public:
  EpollReactor() : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {}
  ~EpollReactor() override { ::close(epoll_); }
  std::string_view name() const noexcept override { return "epoll"; }

  void watch(Watch* watch, Input input, bool output) noexcept override {
    bool wants_input = input != Input::None;
    if (watch->added_ && watch->watches_input_ == wants_input && watch->watches_output_ == output) {
      return;
    }
    watch->watches_input_ = wants_input;
    watch->watches_output_ = output;
    epoll_event event{};
    event.events = (wants_input ? uint32_t{EPOLLIN} : 0u) | (output ? uint32_t{EPOLLOUT} : 0u);
    event.data.ptr = watch;
    ::epoll_ctl(epoll_, watch->added_ ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, watch->fd(), &event);
    watch->added_ = true;
  }

  void remove(Watch* watch) noexcept override {
    if (watch->added_) ::epoll_ctl(epoll_, EPOLL_CTL_DEL, watch->fd(), nullptr);
    watch->added_ = false;
  }

  bool sends() const noexcept override { return false; }
  void send(Watch*, Bytes) noexcept override {}
  void send_bulk(Watch*, const msghdr*) noexcept override {}
  void receive_bulk(Watch*, MutableBytes) noexcept override {}
  void hurry() noexcept override {}

  size_t wait(std::span<IoEvent> events, int timeout_ms, bool) noexcept override {
    std::array<epoll_event, kEventCount> reported;
    int wanted = static_cast<int>(std::min(events.size(), reported.size()));
    int count = ::epoll_wait(epoll_, reported.data(), wanted, timeout_ms);
    for (int index = 0; index < count; ++index) {
      IoEvent& event = events[static_cast<size_t>(index)];
      uint32_t bits = reported[static_cast<size_t>(index)].events;
      event = IoEvent{};
      event.watch = static_cast<Watch*>(reported[static_cast<size_t>(index)].data.ptr);
      event.readable = (bits & EPOLLIN) != 0;
      event.writable = (bits & EPOLLOUT) != 0;
      event.hung_up = (bits & (EPOLLHUP | EPOLLERR)) != 0;
    }
    return count > 0 ? static_cast<size_t>(count) : 0;
  }

  void finish(const IoEvent&) noexcept override {}

 private:
  int epoll_;
};

std::unique_ptr<Reactor> make_epoll_reactor() { return std::make_unique<EpollReactor>(); }

}  // namespace kvstrata
