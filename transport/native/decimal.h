// Integers in text, as Valkey reads them.
#pragma once

#include <charconv>
#include <cstdint>
#include <string_view>
#include <system_error>

namespace kvstrata {

// Takes an optional '-' and digits without a leading zero, nothing else: so every number has one
// spelling. False, and no value, for other text and beyond 64 bits.
inline bool parse_decimal(std::string_view text, int64_t* value) noexcept {
  size_t first_digit = text.starts_with('-') ? 1 : 0;
  // The library's function takes leading zeros, and a zero that is negative.
  if (text.size() > 1 && first_digit < text.size() && text[first_digit] == '0') return false;
  const char* end = text.data() + text.size();
  auto [stopped_at, error] = std::from_chars(text.data(), end, *value);
  return error == std::errc() && stopped_at == end;
}

}  // namespace kvstrata
