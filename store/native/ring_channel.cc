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
  if (has_work()) work();
  if (session_->closed()) return;
  if (event.hung_up) session_->on_hang_up();
  if (!session_->closed()) watch_descriptor();
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
