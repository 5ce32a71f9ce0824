// A command on its way through the node: one capsule, its entries as tasks, each done by the shard
// that owns its key.
//
// A command lives on the shard of its connection. Its tasks may be worked on by other shards in the
// meantime: a Work travels there and back through the shards' mailboxes, so no two threads ever
// touch one task at the same time.
#pragma once

#include <cstdint>
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

// One entry's work and what came of it.
struct Task {
  Entry entry;
  uint64_t hash = 0;
  uint32_t shard = 0;  // The owner.
  Status status = Status::Ok;
  WriteResult result = WriteResult::Nothing;
  uint8_t place = 0;
  uint32_t chunk_count = 0;
  uint64_t value_length = 0;
  uint64_t version = 0;
  uint64_t ttl_left_ms = kTtlNever;
  uint64_t cursor = 0;
  Location location = 0;  // The open record of a write.
  ByteBuffer checksums;   // Reads: of the pieces; scans: unused.
  ByteBuffer attributes;  // Reads, Stat.
  ByteBuffer
      bytes;  // Reads: an inline value. Small writes for another shard: the value. Scans: the keys.
  std::vector<PinnedPiece> pieces;  // Reads of chunked values.
  uint32_t key_count = 0;           // Scans.

  void reset() noexcept;
};

enum class Phase : uint8_t {
  Execute,  // Everything but writes, all the command's tasks of one shard at once.
  Reserve,  // Writes: memory for the value.
  Commit,   // Writes: the value is there; make it visible.
  Write,    // Writes of small values for another shard: all in one step, from the task's bytes.
  Abort,    // Writes: give the memory back.
};

constexpr uint32_t kAllTasks = UINT32_MAX;

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
  uint32_t pending = 0;       // Works under way elsewhere, or waiting for memory.
  uint32_t window_begin = 0;  // Reads: outcomes before this one were answered.
  uint32_t window_end = 0;
  uint32_t receiving = 0;   // Writes: the task whose data are due next.
  ByteBuffer body;          // A copy, where the command outlives the read buffer.
  std::vector<Task> tasks;  // Reused: only the first `task_count` are alive.
  uint32_t task_count = 0;

  Task& add_task();
  // `keeps_tasks`: for the next batch; hundreds of them take some 200 KiB.
  void reset(bool keeps_tasks) noexcept;
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
