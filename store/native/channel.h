// How a session's bytes come and go: over a socket, or through rings in memory shared with the
// client. Knows the reactor, and nothing of what the bytes mean.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "transport/native/reactor.h"
#include "transport/native/stream.h"

namespace kvstrata {

class Session;

class Channel {
 public:
  Channel(Session* session, std::unique_ptr<Stream> stream) noexcept
      : session_(session), stream_(std::move(stream)), watch_(stream_->fd(), session) {}
  virtual ~Channel() = default;
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  Stream& stream() noexcept { return *stream_; }
  const Stream& stream() const noexcept { return *stream_; }
  Watch* io_watch() noexcept { return &watch_; }
  // Nothing of it is under way in the kernel.
  bool is_quiet() const noexcept { return watch_.is_quiet(); }

  // Tells the session what an event of the descriptor means.
  virtual void handle(const IoEvent& event) = 0;
  // What the session waits for from now on.
  virtual void watch(Input input, bool output) noexcept = 0;
  // Nothing of it is to be reported any more.
  virtual void remove() noexcept = 0;

  // Takes from the session what is next to be sent, or to be received, and does it by other means
  // than its stream: the session is told when it is done.
  virtual bool takes_output() { return false; }
  virtual bool takes_input() { return false; }
  // What it has taken and not sent: whether there is any, and how much, as far as it is a copy.
  virtual bool is_sending() const noexcept { return false; }
  virtual uint64_t sending_bytes() const noexcept { return 0; }
  // What it has taken and not received.
  virtual bool is_receiving() const noexcept { return false; }
  // Memory of the session, or of its client, is being read or written by others.
  virtual bool holds_memory() const noexcept { return false; }
  // They are to end soon.
  virtual void hasten_end() noexcept {}

 protected:
  Session* session_;
  std::unique_ptr<Stream> stream_;
  Watch watch_;
};

}  // namespace kvstrata
