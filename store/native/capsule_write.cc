// Writes of a connection of the capsule protocol: values come in one after the other, each straight
// into the memory reserved for it.
//
// A value of this shard, or a large one of another, is received into its open record's chunks. A
// small value of another shard is received into the task and travels there whole, so that it costs
// one hop instead of two.
#include <algorithm>

#include "store/native/capsule_protocol.h"
#include "store/native/node.h"
#include "store/native/shard.h"

namespace kvstrata {

namespace {

constexpr uint64_t kWholeBytesMax = 64 * 1024;
// Of them on their way at any time; further ones wait for memory of their own.
constexpr uint64_t kTravellingBytesMax = 1 << 20;

uint64_t base_of(const Command& command, const Task& task) noexcept {
  return command.opcode == Opcode::Append ? task.detail->entry.at : 0;
}

}  // namespace

bool CapsuleProtocol::may_go_whole(const Task& task) const noexcept {
  return task.shard != shard_->index() && task.detail->entry.value_length <= kWholeBytesMax &&
         travelling_bytes_ + task.detail->entry.value_length <= kTravellingBytesMax;
}

// Goes on with the write's next value, as far as possible without waiting.
void CapsuleProtocol::next_value() {
  Command* command = write_;
  bool goes_on = true;
  while (goes_on && command->receiving < command->task_count()) {
    Task& task = command->tasks[command->receiving];
    if (task.status == Status::Ok && shard_->now_ns() > command->deadline_ns) {
      task.status = Status::Deadline;
    }
    goes_on = begin_value(task);
  }
  if (gathered_ != nullptr) copy_gathered(command);
  if (!goes_on) return;
  write_ = nullptr;
  state_ = State::Capsules;
  if (command->pending == 0) finish_write(command);
}

// True if the value is dealt with already, so that the next one can begin.
bool CapsuleProtocol::begin_value(Task& task) {
  Command* command = write_;
  goes_whole_ = may_go_whole(task);
  if (task.status == Status::Ok && !goes_whole_) {
    ++command->pending;
    Work reserve{command, command->receiving, Phase::Reserve};
    if (!shard_->begin_work(task.shard, reserve)) {
      state_ = State::Paused;
      return false;
    }
    --command->pending;
  }
  if (is_in_region(*command, task)) {
    gather_value();
    return true;
  }
  receive_value(task);
  if (value_.left() != 0) return false;
  finish_value();
  return true;
}

// Memory is there, or the value is refused: its bytes come next.
void CapsuleProtocol::receive_value(const Task& task) {
  uint64_t length = task.detail->entry.value_length;
  value_.begin(base_of(*write_, task), length);
  if (task.status != Status::Ok) {
    state_ = State::Discard;
    return;
  }
  state_ = State::Data;
  piece_ = 0;
  if (goes_whole_) task.detail->bytes.extend(length);
}

MutableBytes CapsuleProtocol::data_target() {
  if (state_ != State::Data) return {};
  Task& task = write_->tasks[write_->receiving];
  ByteBuffer& bytes = task.detail->bytes;
  if (goes_whole_) return {bytes.data() + bytes.size() - value_.left(), value_.piece_left()};
  return shard_->store()
      .piece(task.detail->location, value_.chunk())
      .subspan(value_.at() % limits::kChunkBytes, value_.piece_left());
}

// Data that came with other bytes, in the read buffer.
size_t CapsuleProtocol::consume_data(Bytes bytes) {
  auto count = static_cast<size_t>(std::min<uint64_t>(bytes.size(), value_.left()));
  if (state_ == State::Data) {
    count = std::min<size_t>(count, value_.piece_left());
    std::memcpy(data_target().data(), bytes.data(), count);
  }
  take_data(bytes.first(count));
  return count;
}

// `bytes` are where they belong: counts and hashes them, and goes on when they end a piece or the
// value.
void CapsuleProtocol::take_data(Bytes bytes) {
  if (bytes.empty()) return;
  if (state_ == State::Discard) {
    value_.skip(bytes.size());
    if (value_.left() == 0) finish_value_and_go_on();
    return;
  }
  Task& task = write_->tasks[write_->receiving];
  uint32_t chunk = value_.chunk();
  uint64_t checksum = 0;
  if (!value_.take(bytes, &checksum)) return;
  const ChecksumList& announced = task.detail->entry.checksums;
  if (announced.size() == 0) {
    task.detail->checksums.append_le(checksum);
  } else if (checksum != announced[piece_++]) {
    refuse_value(Status::Corrupt);
    return;
  }
  if (!goes_whole_) shard_->store().set_checksum(task.detail->location, chunk, checksum);
  if (value_.left() == 0) finish_value_and_go_on();
}

void CapsuleProtocol::finish_value_and_go_on() {
  if (write_ == nullptr) {
    state_ = State::Capsules;  // The data of a command that was refused whole.
    return;
  }
  finish_value();
  next_value();
}

void CapsuleProtocol::finish_value() {
  Command* command = write_;
  Task& task = command->tasks[command->receiving];
  uint32_t index = command->receiving++;
  if (task.status != Status::Ok) return;
  if (goes_whole_) travelling_bytes_ += task.detail->entry.value_length;
  if (task.detail->entry.checksums.size() == 0) {
    Bytes hashed = task.detail->checksums.view();
    task.detail->entry.checksums = {hashed.data(),
                                    static_cast<uint32_t>(hashed.size() / sizeof(uint64_t))};
  }
  ++command->pending;
  commits_.push_back({command, index, goes_whole_, 0});
  commit_ready();
}

// Makes values visible, in the order they were sent: one that is still copied holds up those
// behind.
void CapsuleProtocol::commit_ready() {
  while (!commits_.empty() && commits_.front().copying == 0) {
    auto [command, index, goes_whole, copying] = commits_.front();
    commits_.pop_front();
    --command->pending;
    Task& task = command->tasks[index];
    if (task.status == Status::Ok && session_->is_gone()) {
      abort_value(command, index);
    } else if (task.status == Status::Ok) {
      ++command->pending;
      Work work{command, index, goes_whole ? Phase::Write : Phase::Commit};
      if (shard_->begin_work(task.shard, work)) --command->pending;
    }
    if (command->pending == 0 && command != write_) finish_write(command);
  }
}

// The rest of the value is dropped.
void CapsuleProtocol::refuse_value(Status status) {
  Command* command = write_;
  Task& task = command->tasks[command->receiving];
  task.status = status;
  abort_value(command, command->receiving);
  state_ = State::Discard;
  if (value_.left() == 0) finish_value_and_go_on();
}

void CapsuleProtocol::abort_value(Command* command, uint32_t index) noexcept {
  Task& task = command->tasks[index];
  if (task.detail->location == 0) return;
  ++command->pending;
  if (shard_->begin_work(task.shard, {command, index, Phase::Abort})) --command->pending;
}

void CapsuleProtocol::write_work_done(const Work& work) {
  auto* command = static_cast<Command*>(work.errand);
  if (work.phase == Phase::Reserve) {
    const Task& task = command->tasks[work.part];
    if (session_->is_gone()) {
      abort_value(command, work.part);
    } else if (is_in_region(*command, task)) {
      gather_value();
      next_value();
      session_->resume();
      return;
    } else {
      receive_value(task);
      if (value_.left() == 0) finish_value_and_go_on();
      session_->resume();
      return;
    }
  }
  if (work.phase == Phase::Write) {
    travelling_bytes_ -= command->tasks[work.part].detail->entry.value_length;
    command->tasks[work.part].detail->bytes.release_memory();
  }
  if (command->pending == 0 && command != write_) finish_write(command);
}

void CapsuleProtocol::finish_write(Command* command) {
  if (!session_->is_gone()) encode_outcomes(command);
  end(command);
}

}  // namespace kvstrata
