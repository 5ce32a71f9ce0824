// Commands of a Valkey client on their way through the node, with their arguments and replies.
//
// What one shard can answer alone is one part. Such commands travel together, as many as came at
// once, whichever shards they go to. A command of several keys that lie on several shards is one
// part a key, each the command that does the same for one key; their replies are joined. What
// speaks for the whole node is one part a shard.
//
// A shard carries its parts out in order and writes all their replies into one queue, its own until
// the call is home again.
#pragma once

#include <vector>

#include "store/native/errand.h"
#include "store/native/resp_execution.h"

namespace kvstrata {

// How the parts' replies become one.
enum class RespJoin : uint8_t {
  Only,    // There is one.
  Each,    // Each is a reply: of commands that travel together.
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
    const RespCommand* command =
        nullptr;  // Null: replies that the connection's shard made at once.
    uint32_t shard = 0;
    uint32_t first_argument = 0;  // Of the call's.
    uint32_t argument_count = 0;
    bool done = false;
    bool is_of_connection = false;    // Carried out where the client is.
    Status open_status = Status::Ok;  // Why there is no `open`.
    Location open = 0;                // Of a value that streams in, or waits for memory.
    uint64_t cursor = 0;              // Of a walk through the shard's keys: 0 at either end.
    uint64_t count = 0;               // Elements of an array that grows in steps.
    uint64_t execution_ns = 0;        // What it took, without the way there and back.
    OutputQueue::Mark reply_end;      // Its reply begins where that of the part before it ends.
  };

  // Everything that the shard owns of it and that is not done. Reserve and Abort are for the first
  // part's value.
  Status perform(ObjectStore& store, Partition* partition, uint32_t shard,
                 const Work& work) override;
  void give_up(ObjectStore& store, const Work& work) noexcept override;

  // Its arguments are those that are added before the next part; they are copied.
  Part& add_part(const RespCommand* command, uint32_t shard);
  void add_argument(Bytes argument);
  void add_arguments(const RespArguments& arguments);
  // Others instead of those of the last part.
  void replace_arguments(const RespArguments& arguments);
  RespArguments arguments_of(const Part& part) const noexcept {
    return {std::span(arguments_).subspan(part.first_argument, part.argument_count), 0, nullptr,
            bytes_.data()};
  }
  // Of what the shard carries out. Must be there before the call travels to it.
  OutputQueue& replies_of_shard(uint32_t shard);
  OutputQueue& replies_of_connection() noexcept { return replies_of_connection_; }
  // The latter, for replies that come behind those of the parts so far, until there is another.
  OutputQueue& replies_made_at_once();
  // The reply of the part ends here.
  void end_reply(Part* part) noexcept { part->reply_end = replies_of(*part).end(); }
  // The reply of the next part.
  void take_reply(const Part& part, OutputQueue* output);
  // Makes one reply of those of all parts.
  void join_parts(uint32_t shard_count, OutputQueue* output);
  void discard(std::vector<OwnedExtent>* released);
  uint64_t execution_ns() const noexcept;
  // Further commands are for another call.
  bool is_full() const noexcept;
  bool is(RespCommandId id) const noexcept { return command != nullptr && command->id == id; }
  void reset() noexcept;

  const RespCommand* command = nullptr;  // Null: each part is one that the client gave.
  RespVersion version = RespVersion::Resp2;
  RespJoin join = RespJoin::Only;
  bool touches = true;
  bool crosses_slots = false;  // A transaction, which is not carried out then.
  bool is_refused = false;     // As a whole: the one reply is in the queue of its shard.
  bool done = false;           // All replies are there.
  bool is_silent = false;      // The client wants no reply.
  uint32_t command_count = 1;  // That the client gave.
  uint64_t value_bytes = 0;    // Of a value that streams in.
  std::vector<Part> parts;
  std::vector<RespWatch> watches;  // Of a transaction, whose commands are the parts.
  RespCall* next = nullptr;        // In the order of the replies.

 private:
  OutputQueue& replies_of(const Part& part) noexcept {
    return part.is_of_connection ? replies_of_connection_ : replies_[part.shard];
  }
  bool ends_with_replies_made_at_once() const noexcept;
  Bytes take_short_reply(const Part& part) noexcept;
  Status perform_parts(ObjectStore& store, Partition* partition, uint32_t shard);
  Status reserve(ObjectStore& store, Partition* partition);
  void refuse(uint32_t shard, std::string_view error);
  size_t look_ahead(ObjectStore& store, const Partition& partition, size_t begin) const noexcept;
  Status run(ObjectStore& store, Partition& partition, Part* part, bool may_wait,
             uint64_t* clock_ns);
  bool has_changed(ObjectStore& store, Partition& partition) const;
  void run_transaction(ObjectStore& store, Partition* partition, uint32_t shard);
  size_t memory_bytes() const noexcept;

  std::vector<RespPiece> arguments_;  // In `bytes_`.
  ByteBuffer bytes_;
  std::vector<OutputQueue> replies_;  // By shard.
  OutputQueue replies_of_connection_;
};

// Commands that look at every key of a shard, in steps.
bool walks(RespCommandId id) noexcept;

inline constexpr std::string_view kCrossSlot =
    "CROSSSLOT Keys in request don't hash to the same slot";

// What EXEC compares.
RespWatch watch_of(ObjectStore& store, Partition& partition, Bytes key);

}  // namespace kvstrata
