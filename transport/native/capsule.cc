#include "transport/native/capsule.h"

#include "store/limits.h"
#include "transport/native/crc32c.h"

namespace kvstrata {

namespace {

constexpr size_t kEntryHeaderBytes = 8;
constexpr size_t kDescriptorBytes = 24;
constexpr size_t kWriteFieldBytes = 32;
constexpr size_t kReadOutcomeBytes = 40;
constexpr size_t kWriteOutcomeBytes = 24;
constexpr size_t kStatOutcomeBytes = 32;
constexpr size_t kRetainOutcomeBytes = 9;
constexpr uint16_t kRequiredBit = 0x8000;

Descriptor load_descriptor(const std::byte* from) noexcept {
  return {load_le<uint8_t>(from), load_le<uint32_t>(from + 4), load_le<uint64_t>(from + 8),
          load_le<uint64_t>(from + 16)};
}

void append_descriptor(ByteBuffer* buffer, const Descriptor& descriptor) {
  buffer->append_le<uint32_t>(descriptor.kind);
  buffer->append_le(descriptor.rkey);
  buffer->append_le(descriptor.address);
  buffer->append_le(descriptor.length);
}

Status load_status(const std::byte* from) noexcept {
  auto value = load_le<uint8_t>(from);
  return value < kStatusCount ? static_cast<Status>(value) : Status::Internal;
}

const std::byte* take_front(Bytes* bytes, size_t count) noexcept {
  if (count > bytes->size()) return nullptr;
  const std::byte* begin = bytes->data();
  *bytes = bytes->subspan(count);
  return begin;
}

}  // namespace

bool opcode_known(uint8_t opcode) noexcept {
  switch (static_cast<Opcode>(opcode)) {
    case Opcode::Noop:
    case Opcode::Get:
    case Opcode::GetRange:
    case Opcode::Put:
    case Opcode::Append:
    case Opcode::Exists:
    case Opcode::PrefixLength:
    case Opcode::Delete:
    case Opcode::Expire:
    case Opcode::Stat:
    case Opcode::Scan:
    case Opcode::Admin:
    case Opcode::Retain:
    case Opcode::Release:
    case Opcode::Extend:
    case Opcode::AddRegion:
    case Opcode::RemoveRegion:
      return true;
  }
  return false;
}

bool decode(const std::byte* from, RequestHeader* header) noexcept {
  header->opcode = load_le<uint8_t>(from + 4);
  header->flags = load_le<uint8_t>(from + 5);
  header->entry_count = load_le<uint16_t>(from + 6);
  header->command_id = load_le<uint32_t>(from + 8);
  header->body_length = load_le<uint32_t>(from + 12);
  header->data_length = load_le<uint64_t>(from + 16);
  header->deadline_ms = load_le<uint32_t>(from + 24);
  header->attribute_length = load_le<uint32_t>(from + 28);
  return (header->opcode & kCompletionBit) == 0 &&
         header->body_length <= limits::kCapsuleBodyBytesMax &&
         header->entry_count <= limits::kCapsuleEntryCountMax &&
         header->attribute_length <= header->body_length;
}

bool decode(const std::byte* from, CompletionHeader* header) noexcept {
  auto opcode = load_le<uint8_t>(from + 4);
  header->opcode = opcode & static_cast<uint8_t>(~kCompletionBit);
  header->flags = load_le<uint8_t>(from + 5);
  header->outcome_count = load_le<uint16_t>(from + 6);
  header->command_id = load_le<uint32_t>(from + 8);
  header->body_length = load_le<uint32_t>(from + 12);
  header->data_length = load_le<uint64_t>(from + 16);
  header->first_outcome = load_le<uint16_t>(from + 24);
  header->status = load_status(from + 26);
  header->credits = load_le<uint32_t>(from + 28);
  return (opcode & kCompletionBit) != 0 && header->body_length <= limits::kCapsuleBodyBytesMax;
}

bool crc_matches(Bytes capsule) noexcept {
  return load_le<uint32_t>(capsule.data()) == crc32c(capsule.subspan(4));
}

const std::byte* EntryReader::take(size_t count) noexcept { return take_front(&body_, count); }

bool EntryReader::fail() noexcept {
  malformed_ = true;
  return false;
}

bool EntryReader::next(Entry* entry) noexcept {
  if (left_ == 0 || malformed_) return false;
  const std::byte* header = take(kEntryHeaderBytes);
  if (header == nullptr) return fail();
  *entry = Entry{};
  auto key_length = load_le<uint16_t>(header);
  auto attribute_length = load_le<uint16_t>(header + 2);
  entry->term = load_le<uint32_t>(header + 4);
  if (!read_fields(entry)) return fail();
  const std::byte* key = take(key_length);
  if (key == nullptr) return fail();
  entry->key = {key, key_length};
  const std::byte* attributes = take(attribute_length);
  if (attributes == nullptr) return fail();
  entry->attributes = {attributes, attribute_length};
  --left_;
  return true;
}

bool EntryReader::read_write(Entry* entry) noexcept {
  const std::byte* fields = take(kWriteFieldBytes + kDescriptorBytes);
  if (fields == nullptr) return false;
  entry->flags = load_le<uint32_t>(fields);
  auto checksum_count = load_le<uint32_t>(fields + 4);
  entry->value_length = load_le<uint64_t>(fields + 8);
  entry->ttl_ms = load_le<uint64_t>(fields + 16);
  entry->at = load_le<uint64_t>(fields + 24);
  entry->descriptor = load_descriptor(fields + kWriteFieldBytes);
  const std::byte* checksums = take(size_t{checksum_count} * sizeof(uint64_t));
  if (checksums == nullptr) return false;
  entry->checksums = {checksums, checksum_count};
  return true;
}

bool EntryReader::read_fields(Entry* entry) noexcept {
  switch (opcode_) {
    case Opcode::GetRange: {
      const std::byte* range = take(16);
      if (range == nullptr) return false;
      entry->offset = load_le<uint64_t>(range);
      entry->length = load_le<uint64_t>(range + 8);
      [[fallthrough]];
    }
    case Opcode::Get: {
      const std::byte* descriptor = take(kDescriptorBytes);
      if (descriptor == nullptr) return false;
      entry->descriptor = load_descriptor(descriptor);
      return true;
    }
    case Opcode::Put:
    case Opcode::Append:
      return read_write(entry);
    case Opcode::Expire:
    case Opcode::Extend: {
      const std::byte* ttl = take(8);
      if (ttl == nullptr) return false;
      entry->ttl_ms = load_le<uint64_t>(ttl);
      return true;
    }
    case Opcode::Retain: {
      const std::byte* fields = take(12);
      if (fields == nullptr) return false;
      entry->ttl_ms = load_le<uint64_t>(fields);
      entry->flags = load_le<uint32_t>(fields + 8);
      return true;
    }
    case Opcode::Scan: {
      const std::byte* fields = take(12);
      if (fields == nullptr) return false;
      entry->cursor = load_le<uint64_t>(fields);
      entry->count_max = load_le<uint32_t>(fields + 8);
      return true;
    }
    case Opcode::Admin: {
      const std::byte* length = take(4);
      if (length == nullptr) return false;
      auto payload_length = load_le<uint32_t>(length);
      const std::byte* payload = take(payload_length);
      if (payload == nullptr) return false;
      entry->payload = {payload, payload_length};
      return true;
    }
    case Opcode::AddRegion:
    case Opcode::RemoveRegion: {
      const std::byte* fields = take(4 + kDescriptorBytes);
      if (fields == nullptr) return false;
      entry->flags = load_le<uint32_t>(fields);
      entry->descriptor = load_descriptor(fields + 4);
      return true;
    }
    default:
      return true;
  }
}

bool AttributeReader::next(Attribute* attribute) noexcept {
  if (bytes_.empty() || malformed_) return false;
  const std::byte* header = take_front(&bytes_, 4);
  const std::byte* value = nullptr;
  uint16_t length = 0;
  if (header != nullptr) {
    length = load_le<uint16_t>(header + 2);
    value = take_front(&bytes_, length);
  }
  if (value == nullptr) {
    malformed_ = true;
    return false;
  }
  auto type = load_le<uint16_t>(header);
  attribute->type = type & static_cast<uint16_t>(~kRequiredBit);
  attribute->required = (type & kRequiredBit) != 0;
  attribute->value = {value, length};
  return true;
}

void append_attribute(ByteBuffer* buffer, uint16_t type, Bytes value) {
  buffer->append_le(type);
  buffer->append_le(static_cast<uint16_t>(value.size()));
  buffer->append(value);
}

const std::byte* OutcomeReader::take(size_t count) noexcept { return take_front(&body_, count); }

bool OutcomeReader::read(ReadOutcome* outcome) noexcept {
  const std::byte* from = take(kReadOutcomeBytes);
  if (from == nullptr) return false;
  outcome->status = load_status(from);
  auto attribute_length = load_le<uint16_t>(from + 2);
  auto checksum_count = load_le<uint32_t>(from + 4);
  outcome->value_length = load_le<uint64_t>(from + 8);
  outcome->version = load_le<uint64_t>(from + 16);
  outcome->offset = load_le<uint64_t>(from + 24);
  outcome->length = load_le<uint64_t>(from + 32);
  const std::byte* checksums = take(size_t{checksum_count} * sizeof(uint64_t));
  if (checksums == nullptr) return false;
  outcome->checksums = {checksums, checksum_count};
  return read_bytes(attribute_length, &outcome->attributes);
}

bool OutcomeReader::read(WriteOutcome* outcome) noexcept {
  const std::byte* from = take(kWriteOutcomeBytes);
  if (from == nullptr) return false;
  outcome->status = load_status(from);
  outcome->result = static_cast<WriteResult>(load_le<uint8_t>(from + 1));
  outcome->value_length = load_le<uint64_t>(from + 8);
  outcome->version = load_le<uint64_t>(from + 16);
  return true;
}

bool OutcomeReader::read(StatOutcome* outcome) noexcept {
  const std::byte* from = take(kStatOutcomeBytes);
  if (from == nullptr) return false;
  outcome->status = load_status(from);
  outcome->location = load_le<uint8_t>(from + 1);
  auto attribute_length = load_le<uint16_t>(from + 2);
  outcome->chunk_count = load_le<uint32_t>(from + 4);
  outcome->value_length = load_le<uint64_t>(from + 8);
  outcome->version = load_le<uint64_t>(from + 16);
  outcome->ttl_left_ms = load_le<uint64_t>(from + 24);
  return read_bytes(attribute_length, &outcome->attributes);
}

bool OutcomeReader::read(RetainOutcome* outcome) noexcept {
  const std::byte* from = take(kRetainOutcomeBytes);
  if (from == nullptr) return false;
  outcome->status = load_status(from);
  outcome->handle = load_le<uint64_t>(from + 1);
  return true;
}

bool OutcomeReader::read_status(Status* status) noexcept {
  const std::byte* from = take(1);
  if (from == nullptr) return false;
  *status = load_status(from);
  return true;
}

bool OutcomeReader::read_u32(uint32_t* value) noexcept {
  const std::byte* from = take(4);
  if (from == nullptr) return false;
  *value = load_le<uint32_t>(from);
  return true;
}

bool OutcomeReader::read_u64(uint64_t* value) noexcept {
  const std::byte* from = take(8);
  if (from == nullptr) return false;
  *value = load_le<uint64_t>(from);
  return true;
}

bool OutcomeReader::read_bytes(size_t count, Bytes* bytes) noexcept {
  const std::byte* from = take(count);
  if (from == nullptr && count != 0) return false;
  *bytes = {from, count};
  return true;
}

void CapsuleWriter::begin_request(Opcode opcode, uint32_t command_id, uint32_t deadline_ms) {
  begin_ = buffer_->size();
  count_ = 0;
  attribute_length_ = 0;
  opcode_ = opcode;
  std::byte* header = buffer_->extend(kHeaderBytes);
  store_le<uint8_t>(header + 4, static_cast<uint8_t>(opcode));
  store_le<uint8_t>(header + 5, 0);
  store_le(header + 8, command_id);
  store_le(header + 24, deadline_ms);
}

void CapsuleWriter::add_entry(const Entry& entry) {
  ++count_;
  buffer_->append_le(static_cast<uint16_t>(entry.key.size()));
  buffer_->append_le(static_cast<uint16_t>(entry.attributes.size()));
  buffer_->append_le(entry.term);
  switch (opcode_) {
    case Opcode::GetRange:
      buffer_->append_le(entry.offset);
      buffer_->append_le(entry.length);
      append_descriptor(buffer_, entry.descriptor);
      break;
    case Opcode::Get:
      append_descriptor(buffer_, entry.descriptor);
      break;
    case Opcode::Put:
    case Opcode::Append:
      buffer_->append_le(entry.flags);
      buffer_->append_le(entry.checksums.size());
      buffer_->append_le(entry.value_length);
      buffer_->append_le(entry.ttl_ms);
      buffer_->append_le(entry.at);
      append_descriptor(buffer_, entry.descriptor);
      buffer_->append(entry.checksums.bytes());
      break;
    case Opcode::Expire:
    case Opcode::Extend:
      buffer_->append_le(entry.ttl_ms);
      break;
    case Opcode::Retain:
      buffer_->append_le(entry.ttl_ms);
      buffer_->append_le(entry.flags);
      break;
    case Opcode::Scan:
      buffer_->append_le(entry.cursor);
      buffer_->append_le(entry.count_max);
      break;
    case Opcode::Admin:
      buffer_->append_le(static_cast<uint32_t>(entry.payload.size()));
      buffer_->append(entry.payload);
      break;
    case Opcode::AddRegion:
    case Opcode::RemoveRegion:
      buffer_->append_le(entry.flags);
      append_descriptor(buffer_, entry.descriptor);
      break;
    default:
      break;
  }
  buffer_->append(entry.key);
  buffer_->append(entry.attributes);
}

void CapsuleWriter::add_command_attribute(uint16_t type, Bytes value) {
  size_t before = buffer_->size();
  append_attribute(buffer_, type, value);
  attribute_length_ += static_cast<uint32_t>(buffer_->size() - before);
}

void CapsuleWriter::finish_request(uint64_t data_length) {
  std::byte* header = buffer_->data() + begin_;
  store_le(header + 6, count_);
  store_le(header + 12, static_cast<uint32_t>(bytes_written() - kHeaderBytes));
  store_le(header + 16, data_length);
  store_le(header + 28, attribute_length_);
  store_le(header, crc32c({header + 4, bytes_written() - 4}));
}

void CapsuleWriter::begin_completion(uint8_t opcode, uint32_t command_id, uint16_t first_outcome) {
  begin_ = buffer_->size();
  count_ = 0;
  std::byte* header = buffer_->extend(kHeaderBytes);
  store_le<uint8_t>(header + 4, opcode | kCompletionBit);
  store_le(header + 8, command_id);
  store_le(header + 24, first_outcome);
  store_le<uint8_t>(header + 27, 0);
}

void CapsuleWriter::add_outcome(const ReadOutcome& outcome) {
  ++count_;
  buffer_->append_le(static_cast<uint8_t>(outcome.status));
  buffer_->append_le<uint8_t>(0);
  buffer_->append_le(static_cast<uint16_t>(outcome.attributes.size()));
  buffer_->append_le(outcome.checksums.size());
  buffer_->append_le(outcome.value_length);
  buffer_->append_le(outcome.version);
  buffer_->append_le(outcome.offset);
  buffer_->append_le(outcome.length);
  buffer_->append(outcome.checksums.bytes());
  buffer_->append(outcome.attributes);
}

void CapsuleWriter::add_outcome(const WriteOutcome& outcome) {
  ++count_;
  buffer_->append_le(static_cast<uint8_t>(outcome.status));
  buffer_->append_le(static_cast<uint8_t>(outcome.result));
  buffer_->append_le<uint16_t>(0);
  buffer_->append_le<uint32_t>(0);
  buffer_->append_le(outcome.value_length);
  buffer_->append_le(outcome.version);
}

void CapsuleWriter::add_outcome(const StatOutcome& outcome) {
  ++count_;
  buffer_->append_le(static_cast<uint8_t>(outcome.status));
  buffer_->append_le(outcome.location);
  buffer_->append_le(static_cast<uint16_t>(outcome.attributes.size()));
  buffer_->append_le(outcome.chunk_count);
  buffer_->append_le(outcome.value_length);
  buffer_->append_le(outcome.version);
  buffer_->append_le(outcome.ttl_left_ms);
  buffer_->append(outcome.attributes);
}

void CapsuleWriter::add_outcome(const RetainOutcome& outcome) {
  ++count_;
  buffer_->append_le(static_cast<uint8_t>(outcome.status));
  buffer_->append_le(outcome.handle);
}

void CapsuleWriter::add_status(Status status) {
  ++count_;
  buffer_->append_le(static_cast<uint8_t>(status));
}

void CapsuleWriter::add_u32(uint32_t value) {
  ++count_;
  buffer_->append_le(value);
}

void CapsuleWriter::add_scan(uint64_t cursor, uint32_t key_count) {
  ++count_;
  buffer_->append_le(cursor);
  buffer_->append_le(key_count);
}

void CapsuleWriter::add_scan_key(Bytes key, uint64_t value_length) {
  buffer_->append_le(static_cast<uint16_t>(key.size()));
  buffer_->append_le(value_length);
  buffer_->append(key);
}

void CapsuleWriter::add_admin(Status status, Bytes payload) {
  ++count_;
  buffer_->append_le(static_cast<uint8_t>(status));
  buffer_->append_le(static_cast<uint32_t>(payload.size()));
  buffer_->append(payload);
}

void CapsuleWriter::set_message(std::string_view message) { buffer_->append(as_bytes(message)); }

void CapsuleWriter::finish_completion(Status status, uint64_t data_length, uint32_t credits,
                                      uint8_t flags) {
  std::byte* header = buffer_->data() + begin_;
  store_le(header + 5, flags);
  store_le(header + 6, count_);
  store_le(header + 12, static_cast<uint32_t>(bytes_written() - kHeaderBytes));
  store_le(header + 16, data_length);
  store_le<uint8_t>(header + 26, static_cast<uint8_t>(status));
  store_le(header + 28, credits);
  store_le(header, crc32c({header + 4, bytes_written() - 4}));
}

}  // namespace kvstrata
