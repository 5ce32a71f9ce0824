#include "transport/native/status.h"

#include <array>

namespace kvstrata {

std::string_view status_name(Status status) noexcept {
  static constexpr std::array<std::string_view, kStatusCount> kNames = {
      "OK",      "NOT_FOUND",   "EXISTS",    "TOO_SMALL", "MISMATCH", "IMMUTABLE",
      "BUSY",    "NO_SPACE",    "TOO_LARGE", "DENIED",    "DEADLINE", "CORRUPT",
      "INVALID", "UNSUPPORTED", "MOVED",     "CLOSING",   "INTERNAL"};
  auto index = static_cast<uint8_t>(status);
  return index < kNames.size() ? kNames[index] : "INTERNAL";
}

}  // namespace kvstrata
