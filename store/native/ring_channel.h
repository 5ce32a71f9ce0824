// A session's rings in memory shared with its client. Looked at by the shard's loop while they are
// in use; else they sleep, and the client rings.
#pragma once

#include <memory>

#include "store/native/channel.h"
#include "transport/native/ring_stream.h"

namespace kvstrata {

class RingChannel final : public Channel {
 public:
  RingChannel(Session* session, std::unique_ptr<RingStream> stream) noexcept;

  void handle(const IoEvent& event) override;
  void watch(Input input, bool output) noexcept override;
  void remove() noexcept override;
  bool takes_output() override;
  bool holds_memory() const noexcept override;

  // The next descriptor that the client has sent; empty if there is none.
  Socket take_descriptor() noexcept { return rings_->take_descriptor(); }

  // For the poller: whether there is something to do, and what is done then.
  bool has_work() noexcept;
  void work();
  // True if it need not be looked at any more: the client will ring.
  bool may_sleep() noexcept { return rings_->may_sleep(receives_, sends_); }

  // The poller's.
  bool is_polled = false;
  uint64_t worked_ns = 0;

 private:
  void watch_descriptor() noexcept;

  RingStream* rings_;       // The stream, as what it is.
  bool is_shared_ = false;  // The client has been given the rings.
  bool receives_ = false;
  bool sends_ = false;
};

}  // namespace kvstrata
