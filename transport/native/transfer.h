// A transfer is one command as its client sees it: a capsule of at most `kTransferItemsMax` keys or
// so, and its outcomes. It neither owns keys nor values: they stay in place until its owner has
// been told that it ended.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "transport/native/capsule.h"
#include "transport/native/client_status.h"
#include "transport/native/file_source.h"

namespace kvstrata {

class RegionTable;
class Transfer;

// Told of a transfer's progress by the initiator, on the thread that drives it.
class TransferOwner {
 public:
  virtual ~TransferOwner() = default;
  // Gives a sink of `moved` bytes to every item of [first, first + count) that is OK, now that a
  // read without sinks knows its sizes. An item left without one loses its data.
  virtual void provide_sinks(Transfer& transfer, size_t first, size_t count) noexcept = 0;
  // Keys, sources and sinks are not touched any more. The transfer may be destroyed after this
  // call, not in it.
  virtual void ended(Transfer& transfer) noexcept = 0;
};

struct TransferItem {
  Bytes key;
  Bytes source;                      // Put, Append.
  const FileSource* file = nullptr;  // Put: instead of `source`.
  MutableBytes sink;                 // Get, GetRange.
  uint64_t moved = 0;                // Bytes that a read put into the sink.
  uint64_t value_length = 0;
  uint64_t version = 0;
  uint64_t handle = 0;  // Retain.
  Status status = Status::Ok;
  WriteResult result = WriteResult::Nothing;
  // Source or sink are named to the node, which copies by itself what does not fit a capsule.
  bool in_region = false;

  uint64_t source_bytes() const noexcept {
    return file != nullptr ? file->length() : source.size();
  }
};

// Bytes of a completion's data that belong into one sink.
struct InboundRead {
  TransferItem* item;
  std::byte* sink;  // Null: the bytes are dropped.
  uint64_t offset;  // Of the object.
  uint64_t length;
};

// What was agreed with the node that a transfer goes to.
struct TransferTerms {
  uint32_t chunk_bytes = 0;
  uint64_t sink_bytes_max = 0;
  // Where memory is shared: what is longer may be in a region. The node hashes what it stores.
  uint32_t in_capsule_bytes = 0;
  const RegionTable* regions = nullptr;
};

class Transfer {
 public:
  Transfer(TransferOwner* its_owner, Opcode its_opcode) : owner(its_owner), opcode(its_opcode) {}

  // Appends the capsule. Sources are hashed here, in pieces of a chunk, where the node does not.
  // Returns the length of the capsule without its data; 0 when the body is larger than the protocol
  // allows.
  size_t encode(const TransferTerms& terms, ByteBuffer* buffer);

  // Takes over the outcomes of one completion whose command went well. `reads` and `checksums`
  // receive what must follow as data. Returns null, or what in the completion contradicts the
  // protocol or the request.
  const char* settle(const CompletionHeader& header, Bytes body, const TransferTerms& terms,
                     std::vector<InboundRead>* reads, std::vector<uint64_t>* checksums);

  // Gives `status` to the whole and to all items without an outcome.
  void fail(Status status, std::string why);

  bool all_settled() const noexcept;
  uint64_t data_bytes() const noexcept;  // Sources and sinks together.

  // The request.
  TransferOwner* owner;
  Opcode opcode;
  bool asks_sinks = false;   // Get, GetRange: the owner gives sinks once the sizes are known.
  uint32_t entry_flags = 0;  // Put, Append, Retain.
  uint32_t deadline_ms = 0;  // 0: the node's default.
  uint64_t ttl_ms = 0;       // Put, Append, Expire, Retain, Extend.
  uint64_t at = 0;           // Append.
  uint64_t offset = 0;       // GetRange.
  uint64_t length = 0;       // GetRange.
  uint64_t cursor = 0;       // Scan; afterwards the next one.
  uint32_t count_max = 0;    // Scan.
  Bytes attributes;          // Put.
  Bytes payload;             // Admin.
  Descriptor region;         // AddRegion, RemoveRegion.
  std::vector<TransferItem> items;

  // The outcome, beside those of the items.
  Status status = Status::Ok;
  std::string message;
  std::string reply;  // Object attributes of a single read or Stat; payload of Admin; the keys of
                      // Scan, as they travel.
  uint32_t prefix_length = 0;  // PrefixLength.
  uint32_t key_count = 0;      // Scan.
  StatOutcome stat;            // Its attributes lie in `reply`.

  // Kept by the initiator.
  uint32_t command_id = 0;
  bool begun = false;      // A byte of it has reached the socket.
  bool completed = false;  // Its last completion has come.
  uint32_t unsent_segment_count = 0;
  uint64_t in_flight_bytes = 0;  // Of sources and sinks, as far as known when it began.

 private:
  const char* settle_read(const ReadOutcome& outcome, const TransferTerms& terms,
                          TransferItem* item) const;
  const char* settle_reads(const CompletionHeader& header, OutcomeReader* reader,
                           const TransferTerms& terms, std::vector<InboundRead>* reads,
                           std::vector<uint64_t>* checksums);
  const char* settle_writes(const CompletionHeader& header, OutcomeReader* reader);
  const char* settle_retains(const CompletionHeader& header, OutcomeReader* reader);
  const char* settle_statuses(const CompletionHeader& header, OutcomeReader* reader);
  const char* settle_single(OutcomeReader* reader);
  bool settle_scan(OutcomeReader* reader);
  bool settle_admin(OutcomeReader* reader);

  size_t settled_count_ = 0;
};

}  // namespace kvstrata
