// Capsules against the golden vectors: what they say, and the same bytes when written again.
#include <doctest/doctest.h>

#include <cstdio>

#include "store/limits.h"
#include "tests/native/transport/golden_vectors.h"
#include "transport/native/capsule.h"

namespace kvstrata {

namespace {

using Lines = std::vector<std::string>;

std::string field(const char* name, uint64_t value) {
  std::string text = " ";
  text.append(name).append("=").append(std::to_string(value));
  return text;
}

std::string checksum_fields(const ChecksumList& checksums) {
  std::string text;
  for (uint32_t index = 0; index < checksums.size(); ++index) {
    std::array<char, 17> digits{};
    auto value = static_cast<unsigned long long>(checksums[index]);
    std::snprintf(digits.data(), digits.size(), "%016llx", value);
    text += " checksum=" + std::string(digits.data());
  }
  return text;
}

std::string descriptor_fields(const Descriptor& descriptor) {
  return field("kind", descriptor.kind) + field("rkey", descriptor.rkey) +
         field("address", descriptor.address) + field("room", descriptor.length);
}

std::string entry_fields(Opcode opcode, const Entry& entry) {
  switch (opcode) {
    case Opcode::GetRange:
      return field("offset", entry.offset) + field("length", entry.length) +
             descriptor_fields(entry.descriptor);
    case Opcode::Get:
      return descriptor_fields(entry.descriptor);
    case Opcode::Put:
    case Opcode::Append:
      return field("flags", entry.flags) + field("value_length", entry.value_length) +
             field("ttl", entry.ttl_ms) + field("at", entry.at) +
             descriptor_fields(entry.descriptor);
    case Opcode::Expire:
    case Opcode::Extend:
      return field("ttl", entry.ttl_ms);
    case Opcode::Retain:
      return field("ttl", entry.ttl_ms) + field("flags", entry.flags);
    case Opcode::Scan:
      return field("cursor", entry.cursor) + field("count", entry.count_max);
    case Opcode::AddRegion:
    case Opcode::RemoveRegion:
      return field("rights", entry.flags) + descriptor_fields(entry.descriptor);
    default:
      return "";
  }
}

Lines describe_and_rewrite_request(Bytes capsule, ByteBuffer* written) {
  RequestHeader header;
  REQUIRE(decode(capsule.data(), &header));
  REQUIRE(crc_matches(capsule));
  REQUIRE(header.body_length == capsule.size() - kHeaderBytes);
  auto opcode = static_cast<Opcode>(header.opcode);
  Bytes attributes = capsule.last(header.attribute_length);
  Lines lines = {"request" + field("opcode", header.opcode) + field("flags", header.flags) +
                 field("entries", header.entry_count) + field("command_id", header.command_id) +
                 field("data_length", header.data_length) +
                 field("deadline_ms", header.deadline_ms) + " attributes=" + hex(attributes)};
  CapsuleWriter writer(written);
  writer.begin_request(opcode, header.command_id, header.deadline_ms);
  Bytes body = capsule.subspan(kHeaderBytes, header.body_length - header.attribute_length);
  EntryReader reader(opcode, header.entry_count, body);
  Entry entry;
  while (reader.next(&entry)) {
    lines.push_back("entry key=" + hex(entry.key) + field("term", entry.term) +
                    " attributes=" + hex(entry.attributes) + entry_fields(opcode, entry) +
                    checksum_fields(entry.checksums));
    if (!entry.payload.empty()) lines.push_back("payload " + hex(entry.payload));
    writer.add_entry(entry);
  }
  CHECK_FALSE(reader.malformed());
  AttributeReader attribute_reader(attributes);
  Attribute attribute;
  while (attribute_reader.next(&attribute)) {
    writer.add_command_attribute(attribute.type, attribute.value);
  }
  CHECK_FALSE(attribute_reader.malformed());
  writer.finish_request(header.data_length);
  return lines;
}

// Reads outcomes of one opcode, describes them and writes them again.
class OutcomeCopy {
 public:
  OutcomeCopy(Bytes body, CapsuleWriter* writer, Lines* lines)
      : reader_(body), writer_(writer), lines_(lines) {}

  void copy(Opcode opcode) {
    switch (opcode) {
      case Opcode::Get:
      case Opcode::GetRange:
        return copy_read();
      case Opcode::Put:
      case Opcode::Append:
        return copy_write();
      case Opcode::Stat:
        return copy_stat();
      case Opcode::Scan:
        return copy_scan();
      case Opcode::Admin:
        return copy_admin();
      case Opcode::Retain:
        return copy_retain();
      case Opcode::PrefixLength: {
        uint32_t count = 0;
        REQUIRE(reader_.read_u32(&count));
        lines_->push_back("outcome" + field("count", count));
        return writer_->add_u32(count);
      }
      default: {
        Status status{};
        REQUIRE(reader_.read_status(&status));
        lines_->push_back("outcome" + field("status", static_cast<uint64_t>(status)));
        return writer_->add_status(status);
      }
    }
  }

  bool at_end() {
    Bytes one;
    return !reader_.read_bytes(1, &one);
  }

 private:
  void add_attributes(Bytes attributes) {
    if (!attributes.empty()) lines_->push_back("attributes " + hex(attributes));
  }

  void copy_read() {
    ReadOutcome outcome;
    REQUIRE(reader_.read(&outcome));
    lines_->push_back("outcome" + field("status", static_cast<uint64_t>(outcome.status)) +
                      field("value_length", outcome.value_length) +
                      field("version", outcome.version) + field("offset", outcome.offset) +
                      field("length", outcome.length) + checksum_fields(outcome.checksums));
    add_attributes(outcome.attributes);
    writer_->add_outcome(outcome);
  }

  void copy_write() {
    WriteOutcome outcome;
    REQUIRE(reader_.read(&outcome));
    lines_->push_back("outcome" + field("status", static_cast<uint64_t>(outcome.status)) +
                      field("result", static_cast<uint64_t>(outcome.result)) +
                      field("value_length", outcome.value_length) +
                      field("version", outcome.version));
    writer_->add_outcome(outcome);
  }

  void copy_stat() {
    StatOutcome outcome;
    REQUIRE(reader_.read(&outcome));
    lines_->push_back("outcome" + field("status", static_cast<uint64_t>(outcome.status)) +
                      field("location", outcome.location) +
                      field("chunk_count", outcome.chunk_count) +
                      field("value_length", outcome.value_length) +
                      field("version", outcome.version) + field("ttl_left", outcome.ttl_left_ms));
    add_attributes(outcome.attributes);
    writer_->add_outcome(outcome);
  }

  void copy_retain() {
    RetainOutcome outcome;
    REQUIRE(reader_.read(&outcome));
    lines_->push_back("outcome" + field("status", static_cast<uint64_t>(outcome.status)) +
                      field("handle", outcome.handle));
    writer_->add_outcome(outcome);
  }

  void copy_scan() {
    uint64_t cursor = 0;
    uint32_t count = 0;
    REQUIRE(reader_.read_u64(&cursor));
    REQUIRE(reader_.read_u32(&count));
    lines_->push_back("outcome" + field("cursor", cursor));
    writer_->add_scan(cursor, count);
    for (; count != 0; --count) {
      Bytes length;
      Bytes key;
      uint64_t value_length = 0;
      REQUIRE(reader_.read_bytes(2, &length));
      REQUIRE(reader_.read_u64(&value_length));
      REQUIRE(reader_.read_bytes(load_le<uint16_t>(length.data()), &key));
      lines_->push_back("key " + hex(key) + " " + std::to_string(value_length));
      writer_->add_scan_key(key, value_length);
    }
  }

  void copy_admin() {
    Status status{};
    uint32_t length = 0;
    Bytes payload;
    REQUIRE(reader_.read_status(&status));
    REQUIRE(reader_.read_u32(&length));
    REQUIRE(reader_.read_bytes(length, &payload));
    lines_->push_back("outcome" + field("status", static_cast<uint64_t>(status)));
    lines_->push_back("payload " + hex(payload));
    writer_->add_admin(status, payload);
  }

  OutcomeReader reader_;
  CapsuleWriter* writer_;
  Lines* lines_;
};

Lines describe_and_rewrite_completion(Bytes capsule, ByteBuffer* written) {
  CompletionHeader header;
  REQUIRE(decode(capsule.data(), &header));
  REQUIRE(crc_matches(capsule));
  REQUIRE(header.body_length == capsule.size() - kHeaderBytes);
  Lines lines = {"completion" + field("opcode", header.opcode) + field("flags", header.flags) +
                 field("outcomes", header.outcome_count) + field("command_id", header.command_id) +
                 field("data_length", header.data_length) + field("first", header.first_outcome) +
                 field("status", static_cast<uint64_t>(header.status)) +
                 field("credits", header.credits)};
  CapsuleWriter writer(written);
  writer.begin_completion(header.opcode, header.command_id, header.first_outcome);
  if (header.status != Status::Ok) {
    std::string_view message = as_text(capsule.subspan(kHeaderBytes));
    lines.push_back("message " + std::string(message));
    writer.set_message(message);
  }
  OutcomeCopy copy(capsule.subspan(kHeaderBytes), &writer, &lines);
  for (uint32_t index = 0; index < header.outcome_count; ++index) {
    copy.copy(static_cast<Opcode>(header.opcode));
  }
  if (header.status == Status::Ok) CHECK(copy.at_end());
  writer.finish_completion(header.status, header.data_length, header.credits, header.flags);
  return lines;
}

GoldenVector request_vector(const std::string& name) {
  for (const GoldenVector& vector : read_golden_vectors("requests.txt")) {
    if (vector.name == name) return vector;
  }
  FAIL("there is no vector " << name);
  return {};
}

bool entries_fit(Opcode opcode, uint16_t count, Bytes body) {
  EntryReader reader(opcode, count, body);
  Entry entry;
  while (reader.next(&entry)) continue;
  return !reader.malformed();
}

}  // namespace

TEST_CASE("requests mean what the golden vectors say, and are written as they are") {
  for (const GoldenVector& vector : read_golden_vectors("requests.txt")) {
    CAPTURE(vector.name);
    ByteBuffer written;
    CHECK(describe_and_rewrite_request(vector.bytes, &written) == vector.lines);
    CHECK(hex(written.view()) == hex(vector.bytes));
  }
}

TEST_CASE("completions mean what the golden vectors say, and are written as they are") {
  for (const GoldenVector& vector : read_golden_vectors("completions.txt")) {
    CAPTURE(vector.name);
    ByteBuffer written;
    CHECK(describe_and_rewrite_completion(vector.bytes, &written) == vector.lines);
    CHECK(hex(written.view()) == hex(vector.bytes));
  }
}

TEST_CASE("a body that is cut anywhere, or one entry short or long, is malformed") {
  for (const GoldenVector& vector : read_golden_vectors("requests.txt")) {
    RequestHeader header;
    REQUIRE(decode(vector.bytes.data(), &header));
    if (header.entry_count == 0 || header.attribute_length != 0) continue;
    CAPTURE(vector.name);
    auto opcode = static_cast<Opcode>(header.opcode);
    Bytes body = Bytes(vector.bytes).subspan(kHeaderBytes);
    CHECK(entries_fit(opcode, header.entry_count, body));
    for (size_t length = 0; length < body.size(); ++length) {
      CHECK_FALSE(entries_fit(opcode, header.entry_count, body.first(length)));
    }
    CHECK_FALSE(entries_fit(opcode, static_cast<uint16_t>(header.entry_count + 1), body));
    CHECK_FALSE(entries_fit(opcode, static_cast<uint16_t>(header.entry_count - 1), body));
  }
}

TEST_CASE("a checksum count that would overflow does not reach beyond the body") {
  GoldenVector vector = request_vector("put");
  std::vector<std::byte> body(vector.bytes.begin() + kHeaderBytes, vector.bytes.end());
  for (uint32_t count : {2U, 0x2000'0000U, 0x2000'0001U, 0xFFFF'FFFFU}) {
    store_le(body.data() + 12, count);
    CHECK_FALSE(entries_fit(Opcode::Put, 1, body));
  }
}

TEST_CASE("headers beyond the limits are refused") {
  GoldenVector vector = request_vector("exists");
  RequestHeader header;
  auto refuses = [&](size_t at, auto value) {
    std::vector<std::byte> bytes = vector.bytes;
    store_le(bytes.data() + at, value);
    return !decode(bytes.data(), &header);
  };
  CHECK(refuses(4, uint8_t{0x80}));  // A completion.
  CHECK(refuses(6, uint16_t{limits::kCapsuleEntryCountMax + 1}));
  CHECK(refuses(12, uint32_t{limits::kCapsuleBodyBytesMax + 1}));
  CHECK(refuses(28, static_cast<uint32_t>(vector.bytes.size())));  // Attributes beyond the body.
  CHECK_FALSE(refuses(16, UINT64_MAX));                            // Data are skipped, not held.
}

}  // namespace kvstrata
