// What commands of Valkey clients do with values: reply with one, compare one, store one.
#pragma once

#include "store/native/resp_execution.h"

namespace kvstrata {

// Writes the bytes [begin, end) of an object's value as a bulk string; those of chunks are sent
// from where they lie.
void reply_with_value(RespExecution& execution, Location location, uint64_t begin, uint64_t end);
void reply_with_value(RespExecution& execution, Location location);

bool value_equals(const ObjectStore& store, Location location, Bytes bytes) noexcept;

// The key's object, which counts as a use of it unless the client asked otherwise; 0 without one.
Location look_up(RespExecution& execution, Bytes key) noexcept;

// Stores `value` under `key`, or what lies in the execution's open record already. `expiry_ms` is
// the Unix time in milliseconds at which it ends, or one of these. Ok: it is there, or an error was
// written, which `*stored` tells. Busy: as execute().
constexpr uint64_t kExpiryOfPool = 0;  // The pool's default.
Status store_value(RespExecution& execution, Bytes key, Bytes value, uint64_t expiry_ms,
                   bool* stored);
// Gives the memory of an open record back.
void abandon_open(RespExecution& execution) noexcept;

// Deletes it; false if there was none.
bool remove_key(RespExecution& execution, Bytes key) noexcept;

// Why a write was refused.
void reply_with_refusal(RespExecution& execution, Status status, uint64_t value_bytes);

}  // namespace kvstrata
