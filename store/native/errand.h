// What a session has a shard do: a step of a command, on the shard that owns the keys it names.
//
// An errand lives on the shard of its session. Works of it travel to other shards and back through
// their mailboxes; each names a part of the errand that is its owner's alone meanwhile, so no two
// threads ever touch one part at the same time.
#pragma once

#include <cstdint>

#include "store/native/object_store.h"

namespace kvstrata {

class Session;

enum class Phase : uint8_t {
  Execute,  // Everything but writes whose values come in pieces.
  Reserve,  // Such writes: memory for the value.
  Commit,   // The value is there; make it visible.
  Write,    // Writes of small values for another shard: all in one step.
  Abort,    // Give the memory back.
  Copy,     // Between memory of the client and its own: by copiers, for no shard.
};

class Errand;

// A part of an errand, and what is to be done with it.
struct Work {
  Errand* errand = nullptr;
  uint32_t part = 0;
  Phase phase = Phase::Execute;
};

class Errand {
 public:
  virtual ~Errand() = default;

  // On the owner's shard; `partition` is null if the pool was dropped. Returns Busy when it has to
  // wait for memory: call again later, with the same work.
  virtual Status perform(ObjectStore& store, Partition* partition, uint32_t shard,
                         const Work& work) = 0;
  // It has waited for memory for too long.
  virtual void give_up(ObjectStore& store, const Work& work) noexcept = 0;

  Session* session = nullptr;
  PoolId pool = 0;
  uint16_t home_shard = 0;
  // What waits for memory is not overtaken by later works of its session.
  bool keeps_order = false;
  uint32_t pending = 0;  // Works under way elsewhere, or waiting for memory.
  uint64_t begin_ns = 0;
  uint64_t deadline_ns = 0;
  uint64_t admin_call = 0;
  uint64_t awaited_bytes = 0;  // What works may bring home: counted with the session meanwhile.
};

}  // namespace kvstrata
