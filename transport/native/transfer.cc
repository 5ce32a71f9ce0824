#include "transport/native/transfer.h"

#include "store/limits.h"
#include "transport/native/checksum.h"
#include "transport/native/pieces.h"
#include "transport/native/region_table.h"
#include "transport/native/spin.h"

namespace kvstrata {

namespace {

constexpr const char* kBodyTooShort = "a completion's body does not hold the outcomes it announces";

void append_checksums(Bytes value, uint64_t offset, uint32_t chunk_bytes,
                      std::vector<uint64_t>* checksums) {
  while (!value.empty()) {
    auto length = static_cast<size_t>(piece_length(offset, value.size(), chunk_bytes));
    checksums->push_back(chunk_checksum(value.first(length)));
    if (value.size() > length) give_way();
    value = value.subspan(length);
    offset += length;
  }
}

// How the node is told of an item's memory: by its place in a region, if it is in one.
Descriptor describe(const TransferTerms& terms, Bytes memory, TransferItem* item) noexcept {
  Descriptor descriptor;
  descriptor.length = memory.size();
  if (terms.regions == nullptr || memory.size() <= terms.in_capsule_bytes) return descriptor;
  item->in_region = terms.regions->find(memory, &descriptor);
  return descriptor;
}

// Moves the sinks' checksums out of the receive buffer, which the data may overwrite.
void copy_checksums(const ChecksumList& list, std::vector<uint64_t>* checksums) {
  for (uint32_t i = 0; i < list.size(); ++i) checksums->push_back(list[i]);
}

}  // namespace

size_t Transfer::encode(const TransferTerms& terms, ByteBuffer* buffer) {
  size_t begin = buffer->size();
  CapsuleWriter writer(buffer);
  writer.begin_request(opcode, command_id, deadline_ms);
  Entry entry;
  entry.attributes = attributes;
  entry.flags = entry_flags;
  entry.ttl_ms = ttl_ms;
  entry.at = at;
  entry.offset = offset;
  entry.length = length;
  entry.cursor = cursor;
  entry.count_max = count_max;
  entry.payload = payload;
  entry.descriptor = region;
  std::vector<uint64_t> hashed;
  uint64_t data_length = 0;
  for (TransferItem& item : items) {
    entry.key = item.key;
    if (opcode_reads(opcode)) {
      entry.descriptor = describe(terms, item.sink, &item);
      if (asks_sinks) entry.descriptor.length = terms.sink_bytes_max;
    } else if (opcode_writes(opcode)) {
      entry.descriptor = describe(terms, item.source, &item);
      entry.descriptor.length = item.source_bytes();
      entry.value_length = item.source_bytes();
      hashed.clear();
      if (terms.regions == nullptr) append_checksums(item.source, at, terms.chunk_bytes, &hashed);
      const std::vector<uint64_t>& checksums = item.file ? item.file->checksums() : hashed;
      entry.checksums = {reinterpret_cast<const std::byte*>(checksums.data()),
                         static_cast<uint32_t>(checksums.size())};
      if (!item.in_region) data_length += item.source_bytes();
    }
    writer.add_entry(entry);
  }
  writer.finish_request(data_length);
  size_t written = buffer->size() - begin;
  if (written - kHeaderBytes <= limits::kCapsuleBodyBytesMax) return written;
  buffer->truncate(begin);
  return 0;
}

const char* Transfer::settle(const CompletionHeader& header, Bytes body, const TransferTerms& terms,
                             std::vector<InboundRead>* reads, std::vector<uint64_t>* checksums) {
  size_t outcome_count = opcode == Opcode::PrefixLength ? 1 : items.size();
  if (header.first_outcome != settled_count_ ||
      header.outcome_count > outcome_count - settled_count_) {
    return "a completion's outcomes are not the ones that come next";
  }
  if (!opcode_reads(opcode) && header.data_length != 0) {
    return "a completion announces data that nobody asked for";
  }
  OutcomeReader reader(body);
  const char* fault = nullptr;
  if (opcode_reads(opcode)) {
    fault = settle_reads(header, &reader, terms, reads, checksums);
  } else if (opcode_writes(opcode)) {
    fault = settle_writes(header, &reader);
  } else if (opcode == Opcode::Retain) {
    fault = settle_retains(header, &reader);
  } else if (opcode == Opcode::Exists || opcode == Opcode::Delete || opcode == Opcode::Expire ||
             opcode_takes_handles(opcode) || opcode_is_of_regions(opcode)) {
    fault = settle_statuses(header, &reader);
  } else if (header.outcome_count == 1) {
    fault = settle_single(&reader);
  }
  if (fault != nullptr) return fault;
  Bytes rest;
  if (reader.read_bytes(1, &rest)) return "a completion's body is longer than its outcomes";
  settled_count_ += header.outcome_count;
  return nullptr;
}

const char* Transfer::settle_reads(const CompletionHeader& header, OutcomeReader* reader,
                                   const TransferTerms& terms, std::vector<InboundRead>* reads,
                                   std::vector<uint64_t>* checksums) {
  constexpr const char* kWrongSum =
      "a completion's data length is not the sum of its outcomes' lengths";
  uint64_t data_left = header.data_length;
  ReadOutcome outcome;
  for (size_t i = 0; i < header.outcome_count; ++i) {
    TransferItem& item = items[settled_count_ + i];
    if (!reader->read(&outcome)) return kBodyTooShort;
    if (const char* fault = settle_read(outcome, terms, &item)) return fault;
    if (items.size() == 1) reply = as_text(outcome.attributes);
    bool is_there = item.in_region && item.moved > terms.in_capsule_bytes;
    if (item.moved == 0 || is_there) continue;
    if (item.moved > data_left) return kWrongSum;
    data_left -= item.moved;
    reads->push_back({&item, nullptr, outcome.offset, outcome.length});
    copy_checksums(outcome.checksums, checksums);
  }
  if (data_left != 0) return kWrongSum;
  if (asks_sinks) owner->provide_sinks(*this, settled_count_, header.outcome_count);
  for (InboundRead& read : *reads) {
    if (read.item->sink.size() >= read.length) read.sink = read.item->sink.data();
  }
  return nullptr;
}

const char* Transfer::settle_read(const ReadOutcome& outcome, const TransferTerms& terms,
                                  TransferItem* item) const {
  item->status = outcome.status;
  item->value_length = outcome.value_length;
  item->version = outcome.version;
  if (outcome.status != Status::Ok) {
    bool empty = outcome.length == 0 && outcome.checksums.size() == 0;
    return empty ? nullptr : "a read outcome that is not OK announces data";
  }
  bool whole = opcode == Opcode::Get;
  uint64_t asked = whole ? outcome.value_length : length;
  if (outcome.length > asked || (whole && outcome.length != outcome.value_length)) {
    return "a read outcome's length is not the one asked for";
  }
  if (outcome.length != 0 && outcome.offset != (whole ? 0 : offset)) {
    return "a read outcome begins at another offset than asked for";
  }
  if (outcome.length > UINT64_MAX - outcome.offset ||
      outcome.checksums.size() != piece_count(outcome.offset, outcome.length, terms.chunk_bytes)) {
    return "a read outcome has not one checksum for each piece";
  }
  if (!asks_sinks && outcome.length > item->sink.size()) {
    return "a read outcome is longer than the sink";
  }
  item->moved = outcome.length;
  return nullptr;
}

const char* Transfer::settle_writes(const CompletionHeader& header, OutcomeReader* reader) {
  WriteOutcome outcome;
  for (size_t i = 0; i < header.outcome_count; ++i) {
    if (!reader->read(&outcome)) return kBodyTooShort;
    TransferItem& item = items[settled_count_ + i];
    item.status = outcome.status;
    item.result = outcome.result;
    item.value_length = outcome.value_length;
    item.version = outcome.version;
  }
  return nullptr;
}

const char* Transfer::settle_retains(const CompletionHeader& header, OutcomeReader* reader) {
  RetainOutcome outcome;
  for (size_t i = 0; i < header.outcome_count; ++i) {
    if (!reader->read(&outcome)) return kBodyTooShort;
    items[settled_count_ + i].status = outcome.status;
    items[settled_count_ + i].handle = outcome.handle;
  }
  return nullptr;
}

const char* Transfer::settle_statuses(const CompletionHeader& header, OutcomeReader* reader) {
  for (size_t i = 0; i < header.outcome_count; ++i) {
    if (!reader->read_status(&items[settled_count_ + i].status)) return kBodyTooShort;
  }
  return nullptr;
}

const char* Transfer::settle_single(OutcomeReader* reader) {
  bool complete = false;
  switch (opcode) {
    case Opcode::PrefixLength:
      if (!reader->read_u32(&prefix_length)) return kBodyTooShort;
      return prefix_length <= items.size() ? nullptr : "a prefix is longer than the keys asked for";
    case Opcode::Stat:
      complete = reader->read(&stat);
      reply = as_text(stat.attributes);
      items[0].status = stat.status;
      items[0].value_length = stat.value_length;
      items[0].version = stat.version;
      break;
    case Opcode::Scan:
      complete = settle_scan(reader);
      break;
    default:
      complete = settle_admin(reader);
      break;
  }
  return complete ? nullptr : kBodyTooShort;
}

bool Transfer::settle_scan(OutcomeReader* reader) {
  if (!reader->read_u64(&cursor) || !reader->read_u32(&key_count)) return false;
  Bytes field;
  for (uint32_t i = 0; i < key_count; ++i) {
    if (!reader->read_bytes(10, &field)) return false;
    reply.append(as_text(field));
    if (!reader->read_bytes(load_le<uint16_t>(field.data()), &field)) return false;
    reply.append(as_text(field));
  }
  return true;
}

bool Transfer::settle_admin(OutcomeReader* reader) {
  uint32_t length_of_payload = 0;
  Bytes answer;
  if (!reader->read_status(&items[0].status) || !reader->read_u32(&length_of_payload) ||
      !reader->read_bytes(length_of_payload, &answer)) {
    return false;
  }
  reply = as_text(answer);
  return true;
}

void Transfer::fail(Status its_status, std::string why) {
  status = its_status;
  message = std::move(why);
  for (size_t i = settled_count_; i < items.size(); ++i) {
    items[i].status = its_status;
    items[i].moved = 0;
  }
}

bool Transfer::all_settled() const noexcept {
  return settled_count_ == (opcode == Opcode::PrefixLength ? 1 : items.size());
}

uint64_t Transfer::data_bytes() const noexcept {
  uint64_t sum = 0;
  for (const TransferItem& item : items) sum += item.source_bytes() + item.sink.size();
  return sum;
}

}  // namespace kvstrata
