// A command of a Valkey client on its way through the node, with its arguments and its reply.
//
// What one shard can answer alone is one part. A command of several keys that lie on several shards
// is one part a key, each the command that does the same for one key; their replies are joined.
// What speaks for the whole node is one part a shard.
#pragma once

#include <vector>

#include "store/native/errand.h"
#include "store/native/resp_execution.h"

namespace kvstrata {

// How the parts' replies become one.
enum class RespJoin : uint8_t {
  Only,    // There is one.
  Array,   // Each is an element.
  Arrays,  // Each is an array: all their elements in one.
  Sum,     // Of integers.
  AllOk,   // The first error, else OK.
  AnyOne,  // One that is not null, if there is one.
  Scan,    // The keys of one step, and the cursor for the next.
};

// A key that a transaction depends on, as it was when it was watched.
struct RespWatch {
  std::vector<std::byte> key;
  uint64_t version = 0;  // 0: there was none.
  uint64_t expiry_ms = 0;
  uint64_t next_version = 0;  // Of what was written later.
};

class RespCall final : public Errand {
 public:
  struct Part {
    std::vector<RespPiece> arguments;  // In the call's bytes.
    const RespCommand* command = nullptr;
    uint32_t shard = 0;
    bool done = false;
    bool is_of_connection = false;    // Of a transaction: carried out where the client is.
    Location open = 0;                // Of a value that streams in, or waits for memory.
    Status open_status = Status::Ok;  // Why there is none.
    uint64_t cursor = 0;              // Of a walk through the shard's keys: 0 at either end.
    uint64_t count = 0;               // Elements of an array that grows in steps.
    OutputQueue reply;
  };

  // Everything that the shard owns of it and that is not done. Reserve and Abort are for the first
  // part's value.
  Status perform(ObjectStore& store, Partition* partition, uint32_t shard,
                 const Work& work) override;
  void give_up(ObjectStore& store, const Work& work) noexcept override;

  // Copies the arguments, of which the parts' are pieces. Returns all of them.
  std::vector<RespPiece> keep(const RespArguments& arguments);
  Part& add_part(const RespCommand* command, uint32_t shard);
  RespArguments arguments_of(const Part& part) const noexcept {
    return {part.arguments, 0, nullptr, bytes_.data()};
  }
  // Makes `reply` of the parts', unless it is there already.
  void join_parts(uint32_t shard_count);
  void discard(std::vector<OwnedExtent>* released);
  void reset() noexcept;

  const RespCommand* command = nullptr;
  RespVersion version = RespVersion::Resp2;
  RespJoin join = RespJoin::Only;
  bool touches = true;
  bool crosses_slots = false;  // A transaction, which is not carried out then.
  bool done = false;           // `reply` is whole.
  bool is_silent = false;      // The client wants no reply.
  uint64_t value_bytes = 0;    // Of a value that streams in.
  uint64_t execution_ns = 0;   // What carrying it out took, without the way there and back.
  std::vector<Part> parts;
  std::vector<RespWatch> watches;  // Of a transaction, whose commands are the parts.
  OutputQueue reply;
  RespCall* next = nullptr;  // In the order of the replies.

 private:
  Status run(ObjectStore& store, Partition& partition, Part* part, bool may_wait);
  bool has_changed(ObjectStore& store, Partition& partition) const;
  void run_transaction(ObjectStore& store, Partition& partition);

  ByteBuffer bytes_;
};

// Commands that look at every key of a shard, in steps.
bool walks(RespCommandId id) noexcept;

inline constexpr std::string_view kCrossSlot =
    "CROSSSLOT Keys in request don't hash to the same slot";

// What EXEC compares.
RespWatch watch_of(ObjectStore& store, Partition& partition, Bytes key);

}  // namespace kvstrata
