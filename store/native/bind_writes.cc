#include "store/native/bind_writes.h"

#include <fcntl.h>

#include "store/limits.h"
#include "store/native/bind_sequence.h"

namespace nb = nanobind;

namespace kvstrata {

void construct_file_source(FileSource* self, int descriptor, uint64_t length,
                           std::vector<uint64_t> checksums) {
  int own = ::fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  if (own < 0) {
    PyErr_SetFromErrno(PyExc_OSError);
    throw nb::python_error();
  }
  new (self) FileSource(own, length, std::move(checksums));
}

Put::Put(nb::handle key, nb::handle value, uint64_t ttl_ms, bool if_absent,
         std::optional<uint64_t> append_at, nb::bytes attributes) {
  if (attributes.size() > limits::kAttributeBytesMax) {
    throw nb::value_error(("attributes of " + std::to_string(attributes.size()) +
                           " bytes are too long: at most " +
                           std::to_string(limits::kAttributeBytesMax) + " are kept with an object")
                              .c_str());
  }
  Bytes name = buffers_.hold_key(key);
  if (!append_at && nb::isinstance<FileSource>(value)) {
    buffers_.keep(value);
    const auto* file = nb::cast<const FileSource*>(value);
    add_item(Opcode::Put, name, file->length()).file = file;
  } else {
    Bytes source = buffers_.hold(value, "a value");
    add_item(append_at ? Opcode::Append : Opcode::Put, name, source.size()).source = source;
  }
  Transfer& transfer = only_transfer();
  transfer.at = append_at.value_or(0);
  transfer.ttl_ms = ttl_ms;
  transfer.entry_flags = if_absent ? kFlagIfAbsent : 0;
  transfer.attributes = buffers_.hold(attributes, "attributes");
}

PutMany::PutMany(nb::handle keys, nb::handle values, uint64_t ttl_ms, bool if_absent) {
  KeySequence key_sequence(keys, "keys");
  KeySequence sources(values, "values");
  key_sequence.check_same_size(sources);
  expect(key_sequence.size());
  for (size_t i = 0; i < key_sequence.size(); ++i) {
    Bytes source = buffers_.hold(sources[i], "a value");
    add_item(Opcode::Put, buffers_.hold_key(key_sequence[i]), source.size()).source = source;
  }
  for (Transfer& transfer : transfers_) {
    transfer.ttl_ms = ttl_ms;
    transfer.entry_flags = if_absent ? kFlagIfAbsent : 0;
  }
}

nb::list PutMany::results() const {
  nb::list list;
  for (const Transfer& transfer : transfers_) {
    for (const TransferItem& item : transfer.items) list.append(static_cast<int>(item.result));
  }
  return list;
}

}  // namespace kvstrata
