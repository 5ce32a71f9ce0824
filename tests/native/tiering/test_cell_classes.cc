// The size classes keep the promises of waste that shard_memory.h makes.
#include <doctest/doctest.h>

#include "tiering/native/cell_classes.h"

namespace kvstrata {
namespace {

TEST_CASE("every size has a cell that wastes little") {
  for (uint32_t bytes = 1; bytes <= kCellBytesMax; ++bytes) {
    CAPTURE(bytes);
    uint32_t cell = kCellClasses[kCellClassByWords[(bytes + 7) / 8]].cell_bytes;
    REQUIRE(cell >= bytes);
    REQUIRE(cell % 8 == 0);
    if (bytes <= 256) REQUIRE(cell - bytes <= 7);
    if (bytes > 256) REQUIRE((cell - bytes) * 8 <= cell);
  }
}

TEST_CASE("a slab's remainder is below 3 %") {
  for (const CellClass& cells : kCellClasses) {
    CAPTURE(cells.cell_bytes);
    uint32_t remainder = kSlabBytes - cells.cell_bytes * cells.cell_count;
    CHECK(remainder * 100 < kSlabBytes * 3);
  }
}

TEST_CASE("the reciprocal finds the cell of every byte") {
  uint32_t wrong = 0;
  for (const CellClass& cells : kCellClasses) {
    for (uint32_t place = 0; place < kSlabBytes; ++place) {
      wrong += cells.index_of(place) != place / cells.cell_bytes;
    }
  }
  CHECK(wrong == 0);
}

}  // namespace
}  // namespace kvstrata
