#include "store/native/ring_channel.h"

#include "store/native/session.h"
#include "store/native/shard.h"

namespace kvstrata {

RingChannel::RingChannel(Session* session, std::unique_ptr<RingStream> stream) noexcept
    : Channel(session, std::move(stream)), rings_(static_cast<RingStream*>(stream_.get())) {}

// The client has rung, or it is gone.
void RingChannel::handle(const IoEvent& event) {
  rings_->wake();
  session_->shard().rings().add(this);
  if (rings_->ended() || event.hung_up) {
    // Nobody is there to be answered. What copiers are at, they finish.
    session_->close();
    if (!session_->closed()) remove();
    return;
  }
  if (has_work()) work();
  if (!session_->closed()) watch_descriptor();
}

// The client takes the end of the socket as a sign that its memory is its own again.
bool RingChannel::holds_memory() const noexcept { return session_->is_copying(); }

bool RingChannel::has_work() noexcept {
  if (session_->is_gone()) return false;
  return (receives_ && rings_->has_input()) || (sends_ && rings_->has_room());
}

void RingChannel::work() {
  session_->shard().note_served(session_);
  if (sends_ && rings_->has_room()) session_->flush();
  if (!session_->closed() && receives_ && rings_->has_input()) session_->on_readable();
}

// What comes first is the answer to the hello. It goes over the socket, and brings the rings along,
// unless it is a refusal.
bool RingChannel::takes_output() {
  OutputQueue& output = session_->output();
  if (is_shared_ || output.empty()) return false;
  is_shared_ = true;
  ByteBuffer answer;
  output.take(&answer);
  if (!rings_->share(answer.view(), !session_->closing())) session_->close();
  return true;
}

void RingChannel::watch(Input input, bool output) noexcept {
  receives_ = input != Input::None;
  sends_ = output;
  if (receives_ || sends_) session_->shard().rings().add(this);
  watch_descriptor();
}

// Once its socket has ended it would be readable for ever.
void RingChannel::watch_descriptor() noexcept {
  Input input = rings_->ended() ? Input::None : Input::Ready;
  session_->shard().reactor().watch(&watch_, input, false);
}

void RingChannel::remove() noexcept {
  session_->shard().rings().remove(this);
  session_->shard().reactor().remove(&watch_);
}

}  // namespace kvstrata
