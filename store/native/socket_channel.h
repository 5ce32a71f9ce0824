// A session's socket: where the reactor sends and receives by itself, it is given what is small,
// and what takes long.
#pragma once

#include <memory>

#include "store/native/channel.h"
#include "store/native/output_queue.h"

namespace kvstrata {

class SocketChannel final : public Channel {
 public:
  SocketChannel(Session* session, Socket socket);

  void handle(const IoEvent& event) override;
  void watch(Input input, bool output) noexcept override;
  void remove() noexcept override;
  bool takes_output() override { return hand_over_small() || hand_over_bulk(); }
  bool takes_input() override;
  bool is_sending() const noexcept override { return !in_flight_.empty() || batch_ != nullptr; }
  uint64_t sending_bytes() const noexcept override { return in_flight_.size(); }
  bool is_receiving() const noexcept override { return !direct_target_.empty(); }
  bool holds_memory() const noexcept override { return batch_ != nullptr || is_receiving(); }
  void hasten_end() noexcept override { stream_->end(); }

 private:
  bool hand_over_small();
  bool hand_over_bulk();
  void on_received(Bytes bytes, int32_t result);
  void on_sent(int32_t result);
  void on_batch_sent(int32_t result);
  Reactor& reactor() noexcept;

  ByteBuffer in_flight_;                // What the reactor sends, before all of the output.
  size_t in_flight_at_ = 0;             // Of it, already sent.
  std::unique_ptr<OutputBatch> batch_;  // Of the output, while others send it.
  MutableBytes direct_target_;          // Where others receive to; empty while they do not.
};

}  // namespace kvstrata
