// The generated limits.h: its constants are usable where sizes must be known at compile time.
#include <doctest/doctest.h>

#include <array>

#include "store/limits.h"

TEST_CASE("limits are compile-time constants") {
  constexpr std::array<char, kvstrata::limits::kPageBytes> page{};
  CHECK(page.size() == 4096);
}
