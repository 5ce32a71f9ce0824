// Capsules and completions as bytes (transport/PROTOCOL.md, sections 2 and 3). Knows nothing of
// what keys mean.
//
// Decoding never copies: an Entry points into the body it was read from. Every length is checked
// before it is used.
#pragma once

#include <cstdint>
#include <span>

#include "transport/native/bytes.h"
#include "transport/native/status.h"

namespace kvstrata {

enum class Opcode : uint8_t {
  Noop = 0,
  Get = 1,
  GetRange = 2,
  Put = 3,
  Append = 4,
  Exists = 16,
  PrefixLength = 17,
  Delete = 18,
  Expire = 19,
  Stat = 20,
  Scan = 24,
  Admin = 32,
  AddRegion = 40,
  RemoveRegion = 41,
  Retain = 64,
  Release = 65,
  Extend = 66,
};

constexpr uint8_t kCompletionBit = 0x80;
constexpr uint8_t kFlagMore = 1;       // Completion: further ones for this command follow.
constexpr uint32_t kFlagIfAbsent = 1;  // Write fields.
constexpr uint32_t kFlagHard = 1;      // Retain.
constexpr uint64_t kTtlNever = UINT64_MAX;
constexpr size_t kHeaderBytes = 32;

bool opcode_known(uint8_t opcode) noexcept;
constexpr bool opcode_reads(Opcode opcode) noexcept {
  return opcode == Opcode::Get || opcode == Opcode::GetRange;
}
constexpr bool opcode_writes(Opcode opcode) noexcept {
  return opcode == Opcode::Put || opcode == Opcode::Append;
}
// Its entries' keys are handles of retentions.
constexpr bool opcode_takes_handles(Opcode opcode) noexcept {
  return opcode == Opcode::Release || opcode == Opcode::Extend;
}
// About the client's memory instead of keys.
constexpr bool opcode_is_of_regions(Opcode opcode) noexcept {
  return opcode == Opcode::AddRegion || opcode == Opcode::RemoveRegion;
}

// What a node may do with a region: take sources of writes from it, put what is read there.
constexpr uint32_t kRegionRead = 1;
constexpr uint32_t kRegionWrite = 2;

struct RequestHeader {
  uint8_t opcode = 0;  // Raw: an unknown one must still be skipped by its lengths.
  uint8_t flags = 0;
  uint16_t entry_count = 0;
  uint32_t command_id = 0;
  uint32_t body_length = 0;
  uint64_t data_length = 0;
  uint32_t deadline_ms = 0;
  uint32_t attribute_length = 0;
};

struct CompletionHeader {
  uint8_t opcode = 0;  // Without the completion bit.
  uint8_t flags = 0;
  uint16_t outcome_count = 0;
  uint32_t command_id = 0;
  uint32_t body_length = 0;
  uint64_t data_length = 0;
  uint16_t first_outcome = 0;
  Status status = Status::Ok;
  uint32_t credits = 0;
};

enum class DescriptorKind : uint8_t { Stream = 0, InCapsule = 1, Region = 2 };

struct Descriptor {
  uint8_t kind = 0;
  uint32_t rkey = 0;
  uint64_t address = 0;
  uint64_t length = 0;
};

// Chunk checksums as they lie on the wire, unaligned.
class ChecksumList {
 public:
  ChecksumList() = default;
  ChecksumList(const std::byte* data, uint32_t count) : data_(data), count_(count) {}
  uint32_t size() const noexcept { return count_; }
  uint64_t operator[](uint32_t index) const noexcept {
    return load_le<uint64_t>(data_ + size_t{index} * sizeof(uint64_t));
  }
  Bytes bytes() const noexcept { return {data_, size_t{count_} * sizeof(uint64_t)}; }

 private:
  const std::byte* data_ = nullptr;
  uint32_t count_ = 0;
};

// One entry of a request; only the fields of its opcode are set.
struct Entry {
  Bytes key;
  Bytes attributes;
  uint32_t term = 0;
  uint32_t flags = 0;         // Put, Append, Retain; AddRegion: the rights.
  uint64_t value_length = 0;  // Put, Append.
  uint64_t ttl_ms = 0;        // Put, Append, Expire, Retain, Extend.
  uint64_t at = 0;            // Append.
  uint64_t offset = 0;        // GetRange.
  uint64_t length = 0;        // GetRange.
  Descriptor descriptor;      // Get, GetRange, Put, Append; the regions' commands.
  ChecksumList checksums;     // Put, Append.
  uint64_t cursor = 0;        // Scan.
  uint32_t count_max = 0;     // Scan.
  Bytes payload;              // Admin.
};

// Reads a header; false when a length or count is beyond the protocol's limits, which leaves the
// stream without meaning.
bool decode(const std::byte* from, RequestHeader* header) noexcept;
bool decode(const std::byte* from, CompletionHeader* header) noexcept;
// `capsule` is header and body, contiguous.
bool crc_matches(Bytes capsule) noexcept;

// Walks the entries of a request's body.
class EntryReader {
 public:
  // `body` excludes the command's own attributes.
  EntryReader(Opcode opcode, uint16_t entry_count, Bytes body) noexcept
      : opcode_(opcode), left_(entry_count), body_(body) {}
  // False at the end, or when the body does not hold what it says; `malformed()` tells which.
  bool next(Entry* entry) noexcept;
  bool malformed() const noexcept { return malformed_ || (left_ == 0 && !body_.empty()); }

 private:
  bool fail() noexcept;
  bool read_fields(Entry* entry) noexcept;
  bool read_write(Entry* entry) noexcept;
  const std::byte* take(size_t count) noexcept;

  Opcode opcode_;
  uint16_t left_;
  Bytes body_;
  bool malformed_ = false;
};

// One attribute of a hello, command or object.
struct Attribute {
  uint16_t type = 0;  // Without the required bit.
  bool required = false;
  Bytes value;
};

class AttributeReader {
 public:
  explicit AttributeReader(Bytes bytes) noexcept : bytes_(bytes) {}
  bool next(Attribute* attribute) noexcept;
  bool malformed() const noexcept { return malformed_; }

 private:
  Bytes bytes_;
  bool malformed_ = false;
};

void append_attribute(ByteBuffer* buffer, uint16_t type, Bytes value);

// Outcomes of a completion; `decode` returns false when the body is too short for it.
struct ReadOutcome {
  Status status = Status::Ok;
  uint64_t value_length = 0;
  uint64_t version = 0;
  uint64_t offset = 0;
  uint64_t length = 0;
  ChecksumList checksums;
  Bytes attributes;
};

enum class WriteResult : uint8_t { Created = 0, Replaced = 1, Appended = 2, Nothing = 3 };

struct WriteOutcome {
  Status status = Status::Ok;
  WriteResult result = WriteResult::Nothing;
  uint64_t value_length = 0;
  uint64_t version = 0;
};

struct StatOutcome {
  Status status = Status::Ok;
  uint8_t location = 0;
  uint32_t chunk_count = 0;
  uint64_t value_length = 0;
  uint64_t version = 0;
  uint64_t ttl_left_ms = 0;
  Bytes attributes;
};

struct RetainOutcome {
  Status status = Status::Ok;
  uint64_t handle = 0;
};

// Reads outcomes one after the other from a completion's body.
class OutcomeReader {
 public:
  explicit OutcomeReader(Bytes body) noexcept : body_(body) {}
  bool read(ReadOutcome* outcome) noexcept;
  bool read(WriteOutcome* outcome) noexcept;
  bool read(StatOutcome* outcome) noexcept;
  bool read(RetainOutcome* outcome) noexcept;
  bool read_status(Status* status) noexcept;
  bool read_u32(uint32_t* value) noexcept;
  bool read_u64(uint64_t* value) noexcept;
  bool read_bytes(size_t count, Bytes* bytes) noexcept;

 private:
  const std::byte* take(size_t count) noexcept;
  Bytes body_;
};

// Appends a capsule to a buffer: begin_*(), then entries or outcomes, then finish(), which fills in
// lengths and the CRC.
class CapsuleWriter {
 public:
  explicit CapsuleWriter(ByteBuffer* buffer) noexcept : buffer_(buffer) {}

  void begin_request(Opcode opcode, uint32_t command_id, uint32_t deadline_ms);
  void add_entry(const Entry& entry);
  void add_command_attribute(uint16_t type, Bytes value);  // After the last entry.
  void finish_request(uint64_t data_length);

  void begin_completion(uint8_t opcode, uint32_t command_id, uint16_t first_outcome);
  void add_outcome(const ReadOutcome& outcome);
  void add_outcome(const WriteOutcome& outcome);
  void add_outcome(const StatOutcome& outcome);
  void add_outcome(const RetainOutcome& outcome);
  void add_status(Status status);
  void add_u32(uint32_t value);
  void add_scan(uint64_t cursor, uint32_t key_count);  // Then add_scan_key for each.
  void add_scan_key(Bytes key, uint64_t value_length);
  void add_admin(Status status, Bytes payload);
  void set_message(std::string_view message);  // The body of a failed command.
  void finish_completion(Status status, uint64_t data_length, uint32_t credits, uint8_t flags);

  size_t bytes_written() const noexcept { return buffer_->size() - begin_; }
  uint16_t count() const noexcept { return count_; }

 private:
  ByteBuffer* buffer_;
  size_t begin_ = 0;
  uint16_t count_ = 0;
  uint32_t attribute_length_ = 0;
  Opcode opcode_ = Opcode::Noop;
};

}  // namespace kvstrata
