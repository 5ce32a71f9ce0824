#include "store/native/bind_keys.h"

#include "store/limits.h"
#include "store/native/bind_sequence.h"

namespace nb = nanobind;

namespace kvstrata {

namespace {

Opcode keys_only_opcode(int opcode) {
  for (Opcode known : {Opcode::Exists, Opcode::PrefixLength, Opcode::Delete, Opcode::Expire,
                       Opcode::Release, Opcode::Extend}) {
    if (opcode == static_cast<int>(known)) return known;
  }
  throw nb::value_error(("opcode " + std::to_string(opcode) +
                         " is not one of EXISTS, PREFIX_LENGTH, DELETE, EXPIRE, RELEASE and EXTEND")
                            .c_str());
}

}  // namespace

KeysOnly::KeysOnly(int opcode, nb::handle keys, uint64_t ttl_ms) {
  Opcode known = keys_only_opcode(opcode);
  KeySequence key_sequence(keys, "keys");
  expect(key_sequence.size());
  for (size_t i = 0; i < key_sequence.size(); ++i) {
    add_item(known, buffers_.hold_key(key_sequence[i]), 0);
  }
  for (Transfer& transfer : transfers_) transfer.ttl_ms = ttl_ms;
}

// Each transfer counts from its own first key; the prefix ends in the first one that is not full.
uint64_t KeysOnly::prefix_length() const noexcept {
  uint64_t sum = 0;
  for (const Transfer& transfer : transfers_) {
    sum += transfer.prefix_length;
    if (transfer.prefix_length < transfer.items.size()) break;
  }
  return sum;
}

nb::list KeysOnly::present() const {
  nb::list list;
  for (const Transfer& transfer : transfers_) {
    for (const TransferItem& item : transfer.items) list.append(item.status == Status::Ok);
  }
  return list;
}

Retain::Retain(nb::handle keys, uint64_t ttl_ms, bool hard) {
  KeySequence key_sequence(keys, "keys");
  expect(key_sequence.size());
  for (size_t i = 0; i < key_sequence.size(); ++i) {
    add_item(Opcode::Retain, buffers_.hold_key(key_sequence[i]), 0);
  }
  for (Transfer& transfer : transfers_) {
    transfer.ttl_ms = ttl_ms;
    transfer.entry_flags = hard ? kFlagHard : 0;
  }
}

nb::list Retain::handles() const {
  nb::list list;
  for (const Transfer& transfer : transfers_) {
    for (const TransferItem& item : transfer.items) list.append(item.handle);
  }
  return list;
}

Stat::Stat(nb::handle key) { add_item(Opcode::Stat, buffers_.hold_key(key), 0); }

Scan::Scan(nb::handle prefix, uint64_t cursor, uint32_t count) {
  add_item(Opcode::Scan, buffers_.hold_key(prefix), 0);
  only_transfer().cursor = cursor;
  only_transfer().count_max = count;
}

nb::list Scan::keys() const {
  nb::list list;
  const char* next = only_transfer().reply.data();
  for (uint32_t i = 0; i < only_transfer().key_count; ++i) {
    const auto* fields = reinterpret_cast<const std::byte*>(next);
    auto key_length = load_le<uint16_t>(fields);
    auto value_length = load_le<uint64_t>(fields + 2);
    list.append(nb::make_tuple(nb::bytes(next + 10, key_length), value_length));
    next += 10 + key_length;
  }
  return list;
}

Admin::Admin(nb::str name, nb::bytes payload) {
  add_item(Opcode::Admin, buffers_.hold_key(name.attr("encode")()), 0);
  only_transfer().payload = buffers_.hold(payload, "a payload");
}

}  // namespace kvstrata
