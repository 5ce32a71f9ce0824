// The generated limits.h: its constants are usable where sizes must be known at compile time.
#include <doctest/doctest.h>

#include <array>

#include "limits.h"

TEST_CASE("limits are compile-time constants") {
  constexpr std::array<char, kvstrata::limits::KEY_BYTES_MAX> key{};
  CHECK(key.size() == 4096);
}
