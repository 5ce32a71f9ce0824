// Values that go straight between the arena and a region: memory of the client that this node has
// mapped. What takes long is copied by others than the shard's loop.
#include <algorithm>
#include <utility>

#include "store/native/capsule_protocol.h"
#include "store/native/node.h"
#include "store/native/ring_channel.h"
#include "store/native/shard.h"
#include "transport/native/pieces.h"

namespace kvstrata {

namespace {

// Up to here the loop copies by itself: it takes some 30 us, and to hand it over several as well.
constexpr uint64_t kCopyNowBytesMax = 256 * 1024;

uint64_t base_of(const Command& command, const Task& task) noexcept {
  return command.opcode == Opcode::Append ? task.detail->entry.at : 0;
}

}  // namespace

Status CapsuleProtocol::check_place(const Entry& entry, Opcode opcode) const noexcept {
  bool reads = opcode_reads(opcode);
  if (!reads && !opcode_writes(opcode)) return Status::Ok;
  if (entry.descriptor.kind == static_cast<uint8_t>(DescriptorKind::Stream)) return Status::Ok;
  if (entry.descriptor.kind != static_cast<uint8_t>(DescriptorKind::Region) ||
      regions_ == nullptr) {
    return Status::Unsupported;
  }
  uint32_t right = reads ? kRegionWrite : kRegionRead;
  return regions_->contains(entry.descriptor, right) ? Status::Ok : Status::Denied;
}

bool CapsuleProtocol::is_in_region(const Command& command, const Task& task) const noexcept {
  const Entry& entry = task.detail->entry;
  if (entry.descriptor.kind != static_cast<uint8_t>(DescriptorKind::Region)) return false;
  return opcode_writes(command.opcode) || entry.length > limits::kInCapsuleBytes;
}

void CapsuleProtocol::change_regions(Command* command) {
  auto& rings = static_cast<RingChannel&>(session_->channel());
  for (Task& task : command->tasks) {
    const Entry& entry = task.detail->entry;
    if (command->opcode == Opcode::AddRegion) {
      task.status = regions_->add(entry.descriptor.rkey, entry.flags, entry.descriptor.length,
                                  rings.take_descriptor());
      continue;
    }
    ClientRegions::Memory memory = regions_->remove(entry.descriptor.rkey);
    if (memory == nullptr) {
      task.status = Status::NotFound;
      continue;
    }
    ++command->pending;
    leaving_.push_back({std::move(memory), command});
  }
  if (command->pending == 0) {
    encode_outcomes(command);
    end(command);
  } else {
    settle_leaving();
  }
}

// Regions that no transfer uses any more are let go of, and who waits for that is told.
void CapsuleProtocol::settle_leaving() {
  for (size_t index = 0; index < leaving_.size();) {
    LeavingRegion& leaving = leaving_[index];
    if (leaving.memory.use_count() != 1) {
      ++index;
      continue;
    }
    Command* command = leaving.command;
    shard_->node().copiers().dispose(std::move(leaving.memory));
    leaving_.erase(leaving_.begin() + static_cast<ptrdiff_t>(index));
    if (--command->pending != 0) continue;
    if (!session_->is_gone()) encode_outcomes(command);
    end(command);
  }
}

// Copies the window's values into the regions they belong to. True if that is done already.
bool CapsuleProtocol::copy_window(Command* command) {
  auto job = std::make_shared<CopyJob>();
  for (Task& task : command->window()) {
    if (task.status != Status::Ok || !is_in_region(*command, task)) continue;
    TaskDetail& detail = *task.detail;
    ClientRegions::Memory memory;
    MutableBytes sink = regions_->find(detail.entry.descriptor, kRegionWrite, &memory);
    if (sink.size() < detail.entry.length) {
      task.status = Status::Denied;  // The client has removed it meanwhile.
      continue;
    }
    std::byte* to = sink.data();
    if (!detail.bytes.empty())
      job->pieces.push_back({to, detail.bytes.data(), detail.bytes.size()});
    for (const PinnedPiece& piece : detail.pieces) {
      const std::byte* from = shard_->store().at(piece.extent.offset) + piece.skip_bytes;
      job->pieces.push_back({to, from, piece.length_bytes});
      to += piece.length_bytes;
    }
    if (job->kept.empty() || job->kept.back() != memory) job->kept.push_back(std::move(memory));
  }
  return job->pieces.empty() || copy_now_or_start(job, {command, kAllTasks, Phase::Copy});
}

// True if it is done already.
bool CapsuleProtocol::copy_now_or_start(std::shared_ptr<CopyJob> job, const Work& work) {
  shard_->statistics().copied_bytes.add(job->bytes());
  if (job->bytes() <= kCopyNowBytesMax && !shard_->turn_is_long()) {
    for (const CopyPiece& piece : job->pieces) shard_->copier().copy(piece);
    return true;
  }
  ++work.errand->pending;
  session_->begin_copy();
  shard_->start_copy(std::move(job), work);
  return false;
}

void CapsuleProtocol::copy_done(const Work& work) {
  auto* command = static_cast<Command*>(work.errand);
  if (opcode_writes(command->opcode)) {
    values_copied(work.part);
  } else if (answer_window(command)) {
    run_windows(command);
  }
  settle_leaving();
  session_->end_copy();
}

// The next value of the write, whose memory is there or which is refused, lies in a region. What a
// command has of such values is copied by one job, as far as there is memory without waiting.
void CapsuleProtocol::gather_value() {
  Command* command = write_;
  uint32_t index = command->receiving++;
  Task& task = command->tasks[index];
  if (task.status != Status::Ok) return;
  if (gathered_ == nullptr) gathered_ = std::make_shared<CopyJob>();
  if (!lay_out_copy(*command, &task, gathered_.get())) {
    task.status = Status::Denied;
    abort_value(command, index);
    return;
  }
  ++command->pending;
  commits_.push_back({command, index, goes_whole_, job_number_});
}

void CapsuleProtocol::copy_gathered(Command* command) {
  std::shared_ptr<CopyJob> job = std::exchange(gathered_, nullptr);
  uint32_t number = job_number_;
  job_number_ = std::max(job_number_ + 1, uint32_t{1});
  if (job->pieces.empty()) return;
  if (copy_now_or_start(std::move(job), {command, number, Phase::Copy})) values_copied(number);
}

bool CapsuleProtocol::lay_out_copy(const Command& command, Task* task, CopyJob* job) {
  TaskDetail& detail = *task->detail;
  ClientRegions::Memory memory;
  MutableBytes source = regions_->find(detail.entry.descriptor, kRegionRead, &memory);
  if (source.empty()) return false;
  if (job->kept.empty() || job->kept.back() != memory) job->kept.push_back(std::move(memory));
  uint64_t at = base_of(command, *task);
  std::byte* checksum = detail.checksums.extend(
      piece_count(at, source.size(), limits::kChunkBytes) * sizeof(uint64_t));
  std::byte* whole = nullptr;
  if (goes_whole_) {
    whole = detail.bytes.extend(source.size());
    travelling_bytes_ += source.size();
  }
  for (uint64_t done = 0; done < source.size();) {
    uint64_t count = piece_length(at, source.size() - done, limits::kChunkBytes);
    auto chunk = static_cast<uint32_t>(at / limits::kChunkBytes);
    std::byte* to = goes_whole_ ? whole + done
                                : shard_->store().piece(detail.location, chunk).data() +
                                      at % limits::kChunkBytes;
    job->pieces.push_back({to, source.data() + done, count, checksum});
    checksum += sizeof(uint64_t);
    done += count;
    at += count;
  }
  return true;
}

void CapsuleProtocol::values_copied(uint32_t job) {
  for (PendingCommit& pending : commits_) {
    if (pending.copying != job) continue;
    pending.copying = 0;
    if (keep_checksums(pending)) continue;
    pending.command->tasks[pending.task].status = Status::Corrupt;
    abort_value(pending.command, pending.task);
  }
  commit_ready();
}

// The checksums of what was copied are the object's. False if others were announced.
bool CapsuleProtocol::keep_checksums(const PendingCommit& pending) {
  const Task& task = pending.command->tasks[pending.task];
  TaskDetail& detail = *task.detail;
  ChecksumList announced = detail.entry.checksums;
  auto count = static_cast<uint32_t>(detail.checksums.size() / sizeof(uint64_t));
  detail.entry.checksums = {detail.checksums.data(), count};
  if (announced.size() != 0 && !equal(announced.bytes(), detail.entry.checksums.bytes())) {
    return false;
  }
  auto chunk = static_cast<uint32_t>(base_of(*pending.command, task) / limits::kChunkBytes);
  for (uint32_t piece = 0; piece < count && !pending.goes_whole; ++piece) {
    shard_->store().set_checksum(detail.location, chunk + piece, detail.entry.checksums[piece]);
  }
  return true;
}

}  // namespace kvstrata
