#include "transport/native/resp_glob.h"

#include <algorithm>

namespace kvstrata {

namespace {

constexpr size_t kNoMatch = SIZE_MAX;

signed char as_signed(char byte) noexcept { return static_cast<signed char>(byte); }

// `at` is behind the '['. Returns the position behind the class, if the byte is in it.
size_t match_class(std::string_view pattern, size_t at, char byte) noexcept {
  bool negated = at < pattern.size() && pattern[at] == '^';
  if (negated) ++at;
  bool found = false;
  for (; at < pattern.size() && pattern[at] != ']'; ++at) {
    size_t left = pattern.size() - at;
    if (pattern[at] == '\\' && left >= 2) {
      found |= pattern[++at] == byte;
    } else if (left >= 3 && pattern[at + 1] == '-') {
      auto [low, high] = std::minmax({as_signed(pattern[at]), as_signed(pattern[at + 2])});
      found |= low <= as_signed(byte) && as_signed(byte) <= high;
      at += 2;
    } else {
      found |= pattern[at] == byte;
    }
  }
  if (found == negated) return kNoMatch;
  return std::min(at + 1, pattern.size());
}

// Returns the position behind the pattern's element at `at`, which is no '*', if the byte fits it.
size_t match_byte(std::string_view pattern, size_t at, char byte) noexcept {
  if (at == pattern.size()) return kNoMatch;
  switch (pattern[at]) {
    case '?':
      return at + 1;
    case '[':
      return match_class(pattern, at + 1, byte);
    case '\\':
      if (at + 1 < pattern.size()) ++at;
      [[fallthrough]];
    default:
      return pattern[at] == byte ? at + 1 : kNoMatch;
  }
}

// Where a '*' is followed by a further one, what the first takes no longer matters: whatever fits
// behind the second fits there too when the first takes less. So only the last '*' is ever made
// longer, which is what keeps this from trying all combinations.
bool matches(std::string_view pattern, std::string_view text) noexcept {
  size_t at = 0;
  size_t behind_star = kNoMatch;
  size_t star_end = 0;  // Of what the last '*' takes.
  size_t position = 0;
  while (position < text.size()) {
    if (at < pattern.size() && pattern[at] == '*') {
      behind_star = ++at;
      star_end = position;
      continue;
    }
    size_t next = match_byte(pattern, at, text[position]);
    if (next != kNoMatch) {
      at = next;
      ++position;
    } else if (behind_star != kNoMatch) {
      at = behind_star;
      position = ++star_end;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', at) == pattern.npos;
}

}  // namespace

bool glob_matches(Bytes pattern, Bytes text) noexcept {
  if (text.empty()) return pattern.empty() || as_text(pattern) == "*";
  return matches(as_text(pattern), as_text(text));
}

}  // namespace kvstrata
