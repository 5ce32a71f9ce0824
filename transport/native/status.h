// The outcome of a command, as it travels in completions (transport/PROTOCOL.md, section 5).
// Absence, existence and shortness are outcomes, not faults.
#pragma once

#include <cstdint>
#include <string_view>

namespace kvstrata {

enum class Status : uint8_t {
  Ok = 0,
  NotFound = 1,      // No such key.
  Exists = 2,        // Put if absent: the key exists.
  TooSmall = 3,      // The sink is smaller than the value.
  Mismatch = 4,      // Append: the object does not end where the client thinks.
  Immutable = 5,     // The pool's objects cannot be overwritten.
  Busy = 6,          // Over a budget; worth trying again.
  NoSpace = 7,       // The pool may not evict, or nothing can be evicted.
  TooLarge = 8,      // Larger than this node, pool or protocol could ever take.
  Denied = 9,        // Wrong secret, or a right is missing.
  Deadline = 10,     // The deadline passed before the work was done.
  Corrupt = 11,      // A checksum did not match.
  Invalid = 12,      // A field has a value that the protocol does not allow.
  Unsupported = 13,  // Unknown version, opcode, required attribute or descriptor kind.
  Moved = 14,        // Another node owns the slot.
  Closing = 15,      // The node is stopping.
  Internal = 16,     // A fault of the node.
};

constexpr uint8_t kStatusCount = 17;

// The name as PROTOCOL.md spells it, for messages and metrics.
std::string_view status_name(Status status) noexcept;

}  // namespace kvstrata
