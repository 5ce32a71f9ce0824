// A command of the capsule protocol on its way through the node: one capsule, its entries as tasks,
// each done by the shard that owns its key.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "store/native/errand.h"
#include "transport/native/capsule.h"

namespace kvstrata {

// A reference on an extent, and the part of it that is to be sent.
struct PinnedPiece {
  Extent extent;
  uint64_t skip_bytes = 0;
  uint64_t length_bytes = 0;
};

// What an operation needs and yields beyond its key.
struct TaskDetail {
  Entry entry;
  WriteResult result = WriteResult::Nothing;
  uint8_t place = 0;
  uint32_t chunk_count = 0;
  uint64_t value_length = 0;
  uint64_t version = 0;
  uint64_t ttl_left_ms = kTtlNever;
  uint64_t cursor = 0;
  Location location = 0;  // The open record of a write.
  uint64_t handle = 0;    // Retain.
  ByteBuffer checksums;   // Of the pieces: reads; writes that bring none.
  ByteBuffer attributes;  // Reads, Stat.
  // Reads: an inline value. Small writes for another shard: the value. Scans: the keys.
  ByteBuffer bytes;
  std::vector<PinnedPiece> pieces;  // Reads of chunked values.
  uint32_t key_count = 0;           // Scans.

  void reset() noexcept;
};

// One entry's work and what came of it. Lean, since prefix look-ups bring hundreds at a time and
// need no more: `detail` is null where the opcode has none.
struct Task {
  Bytes key;
  uint64_t hash = 0;
  TaskDetail* detail = nullptr;
  uint32_t shard = 0;  // The owner.
  Status status = Status::Ok;
};

constexpr uint32_t kAllTasks = UINT32_MAX;
// A scan stops soon after it has collected so many bytes of keys.
constexpr size_t kScanBytesMax = 256 * 1024;

class Command final : public Errand {
 public:
  // A work's part is a task, or all tasks of the window that the shard owns.
  Status perform(ObjectStore& store, Partition* partition, uint32_t shard,
                 const Work& work) override;
  void give_up(ObjectStore& store, const Work& work) noexcept override;

  uint32_t id = 0;
  Opcode opcode = Opcode::Noop;
  uint32_t window_begin = 0;  // Reads: outcomes before this one were answered.
  uint32_t window_end = 0;
  uint32_t receiving = 0;  // Writes: the task whose data are due next.
  ByteBuffer body;         // A copy, where the command outlives the read buffer.
  std::vector<Task> tasks;

  uint32_t task_count() const noexcept { return static_cast<uint32_t>(tasks.size()); }
  std::span<Task> window() noexcept {
    return std::span(tasks).subspan(window_begin, window_end - window_begin);
  }
  uint64_t memory_bytes() const noexcept {
    return body.size() + tasks.size() * sizeof(Task) + details_.size() * sizeof(TaskDetail);
  }
  // Lays out that many fresh tasks of the opcode.
  void make_tasks(uint32_t count);
  // `keeps_memory`: for the next batch; hundreds of tasks take some 150 KiB.
  void reset(bool keeps_memory) noexcept;

 private:
  std::vector<TaskDetail> details_;  // Reused: only the first `tasks.size()` are alive.
};

}  // namespace kvstrata
