#include "store/native/index_table.h"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace kvstrata {
namespace {

// A table grows when nine tenths of its homes are taken, to four fifths: steps of an eighth, so
// that tables filling in lockstep never cost much more than ten bytes an entry. Sorted probing
// looks at some five slots at the fuller end.
constexpr uint32_t kHomeCountMin = 8;

uint32_t entry_count_max(uint32_t home_count) {
  return static_cast<uint32_t>(uint64_t{home_count} * 9 / 10);
}

// Slots beyond the last home. Overflow past 16 is rare at nine tenths (about 3 % of tables), and
// then costs one early rebuild.
uint32_t margin_for(uint32_t home_count) { return std::min(16U, 2 + home_count / 4); }

}  // namespace

uint32_t IndexTable::home_count_for(uint32_t count) {
  return std::max(kHomeCountMin, static_cast<uint32_t>((uint64_t{count} * 5 + 3) / 4));
}

IndexTable IndexTable::build(std::span<const Slot> entries, uint32_t home_count, uint32_t depth,
                             IndexMemory& memory) {
  IndexTable table;
  table.home_count_ = home_count;
  table.depth_ = depth;
  uint32_t end = 0;
  for (Slot entry : entries) end = std::max(end, table.home(tag_of(entry))) + 1;
  // Many entries of one tag at the very end overflow far: leave room in proportion.
  const uint32_t overflow = end > home_count ? end - home_count : 0;
  const uint32_t slot_count = home_count + overflow + overflow / 8 + margin_for(home_count);
  void* block = memory.allocate(sizeof(Header) + uint64_t{slot_count} * sizeof(Slot));
  if (block == nullptr) return table;
  table.slots_ = reinterpret_cast<Slot*>(static_cast<Header*>(block) + 1);
  std::fill_n(table.slots_, slot_count, 0);
  table.header() = {static_cast<uint32_t>(entries.size()), slot_count};
  uint32_t next = 0;
  for (Slot entry : entries) {
    next = std::max(next, table.home(tag_of(entry)));
    table.slots_[next++] = entry;
  }
  assert(next < slot_count);
  return table;
}

void IndexTable::free(IndexMemory& memory) {
  if (valid()) memory.free(&header());
  slots_ = nullptr;
}

uint64_t IndexTable::memory_bytes() const { return IndexMemory::bytes_of(&header()); }

bool IndexTable::is_sparse() const {
  return home_count_ > kHomeCountMin && uint64_t{count()} * 5 < uint64_t{home_count_} * 2;
}

uint32_t IndexTable::lower_bound(uint32_t tag) const {
  const Slot bound = make_slot(tag, 0);
  uint32_t index = home(tag);
  while (slots_[index] != 0 && slots_[index] < bound) ++index;
  return index;
}

uint32_t IndexTable::index_of(Slot entry) const {
  uint32_t index = lower_bound(tag_of(entry));
  while (slots_[index] != entry) {
    assert(slots_[index] != 0 && "the index was asked to change an entry that it does not hold");
    ++index;
  }
  return index;
}

bool IndexTable::insert(Slot entry) {
  if (count() >= entry_count_max(home_count_)) return false;
  const uint32_t index = lower_bound(tag_of(entry));
  uint32_t empty = index;
  while (slots_[empty] != 0) ++empty;
  if (empty + 1 == slot_count()) return false;
  std::memmove(slots_ + index + 1, slots_ + index, (empty - index) * sizeof(Slot));
  slots_[index] = entry;
  ++header().count;
  return true;
}

void IndexTable::erase(uint32_t index) {
  uint32_t end = index + 1;
  while (slots_[end] != 0 && home(tag_of(slots_[end])) < end) ++end;
  std::memmove(slots_ + index, slots_ + index + 1, (end - index - 1) * sizeof(Slot));
  slots_[end - 1] = 0;
  --header().count;
}

void IndexTable::copy_to(Slot* entries) const {
  std::copy_if(slots_, slots_ + slot_count(), entries, [](Slot slot) { return slot != 0; });
}

}  // namespace kvstrata
