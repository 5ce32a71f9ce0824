// Requests as a node reads them: header, entries of any opcode, attributes.
#include "tests/native/fuzz/input.h"

using namespace kvstrata;

namespace {

// Touches every byte that a decoded view claims to have.
uint64_t sum(Bytes bytes) {
  uint64_t total = 0;
  for (std::byte each : bytes) total += static_cast<uint8_t>(each);
  return total;
}

uint64_t read_attributes(Bytes bytes) {
  uint64_t total = 0;
  AttributeReader reader(bytes);
  Attribute attribute;
  while (reader.next(&attribute)) total += sum(attribute.value);
  return total;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<std::byte> bytes = exact_copy(data, size);
  RequestHeader header;
  if (size < kHeaderBytes || !decode(bytes.data(), &header)) return 0;
  Bytes body = Bytes(bytes).subspan(kHeaderBytes);
  if (header.attribute_length > body.size()) return 0;
  uint64_t total = read_attributes(body.last(header.attribute_length));
  body = body.first(body.size() - header.attribute_length);
  EntryReader reader(static_cast<Opcode>(header.opcode), header.entry_count, body);
  Entry entry;
  ByteBuffer written;
  CapsuleWriter writer(&written);
  writer.begin_request(static_cast<Opcode>(header.opcode), header.command_id, 0);
  while (reader.next(&entry)) {
    total += sum(entry.key) + sum(entry.payload) + sum(entry.checksums.bytes()) +
             read_attributes(entry.attributes);
    if (opcode_known(header.opcode)) writer.add_entry(entry);
  }
  writer.finish_request(header.data_length);
  // What was read whole is written as long as it was.
  bool whole = !reader.malformed() && opcode_known(header.opcode);
  require(!whole || written.size() - kHeaderBytes == body.size(), "entries changed their length");
  return total == UINT64_MAX ? 1 : 0;
}
