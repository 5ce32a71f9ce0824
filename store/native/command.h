// A command on its way through the node: one capsule, its entries as tasks, each done by the shard
// that owns its key.
//
// A command lives on the shard of its connection. Its tasks may be worked on by other shards in the
// meantime: a Work travels there and back through the shards' mailboxes, so no two threads ever
// touch one task at the same time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "store/native/object_store.h"
#include "transport/native/capsule.h"

namespace kvstrata {

class Session;

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
  ByteBuffer checksums;   // Reads: of the pieces.
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

enum class Phase : uint8_t {
  Execute,  // Everything but writes, all the command's tasks of one shard at once.
  Reserve,  // Writes: memory for the value.
  Commit,   // Writes: the value is there; make it visible.
  Write,    // Writes of small values for another shard: all in one step, from the task's bytes.
  Abort,    // Writes: give the memory back.
};

constexpr uint32_t kAllTasks = UINT32_MAX;
// A scan stops soon after it has collected so many bytes of keys.
constexpr size_t kScanBytesMax = 256 * 1024;

struct Command {
  Session* session = nullptr;
  uint32_t id = 0;
  uint8_t raw_opcode = 0;
  Opcode opcode = Opcode::Noop;
  PoolId pool = 0;
  uint16_t home_shard = 0;
  uint64_t begin_ns = 0;
  uint64_t deadline_ns = 0;
  uint64_t admin_call = 0;
  uint32_t pending = 0;        // Works under way elsewhere, or waiting for memory.
  uint64_t awaited_bytes = 0;  // What they may bring home: counted with the session meanwhile.
  uint32_t window_begin = 0;   // Reads: outcomes before this one were answered.
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

struct Work {
  Command* command = nullptr;
  uint32_t task = kAllTasks;
  Phase phase = Phase::Execute;
};

// Runs on the owner's shard. Returns Busy when a write has to wait for memory: call again later.
Status perform(ObjectStore& store, Partition* partition, uint32_t shard, const Work& work);
// A write has waited for memory for too long: it ends as Busy.
void give_up(ObjectStore& store, const Work& work) noexcept;

}  // namespace kvstrata
