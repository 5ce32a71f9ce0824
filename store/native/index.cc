#include "store/native/index.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <new>
#include <vector>

#include "store/native/index_directory.h"

namespace kvstrata {
namespace {

// A table of more homes is split. Splitting reads every record of the table, which at this size
// takes some tens of microseconds.
constexpr uint32_t kHomeCountMax = 1536;
// Buddies that hold no more than this together become one: far enough below what a split leaves
// (about 690 each) that a table does not split and merge in turn.
constexpr uint32_t kMergeEntryCountMax = 600;
// The directory may have one entry for so many records. Hashes that share many bits would double
// it in vain; their table grows instead.
constexpr uint64_t kRecordsPerEntryMin = 128;
constexpr uint32_t kPrefetchDistance = 16;

using Entries = std::unique_ptr<Slot[]>;

Entries allocate_entries(uint32_t count) { return Entries(new (std::nothrow) Slot[count]); }

// The least and the greatest hash that falls into the same table of this depth.
uint64_t first_hash(uint64_t hash, uint32_t depth) { return hash & ~(UINT64_MAX >> depth); }
uint64_t last_hash(uint64_t hash, uint32_t depth) { return hash | UINT64_MAX >> depth; }

bool equal(std::span<const std::byte> left, std::span<const std::byte> right) {
  if (left.size() != right.size()) return false;
  return left.empty() || std::memcmp(left.data(), right.data(), left.size()) == 0;
}

}  // namespace

struct Index::State {
  State(const RecordResolver* resolver, IndexMemory* index_memory)
      : records(resolver), memory(index_memory), directory(index_memory) {}

  bool may_split(const IndexTable& table) const;
  bool make_room(uint64_t hash);
  bool resize(uint64_t hash, uint32_t entry_count);
  bool split(uint64_t hash);
  bool merge(uint64_t hash);
  void rehash(std::span<Slot> entries, uint32_t depth) const;
  uint64_t collect(uint64_t cursor, uint32_t count, std::vector<Location>* locations) const;

  const RecordResolver* records;
  IndexMemory* memory;
  IndexDirectory directory;
  uint64_t size = 0;
};

Index::Index(const RecordResolver* records, IndexMemory* memory)
    : state_(std::make_unique<State>(records, memory)) {}
Index::~Index() = default;
Index::Index(Index&&) noexcept = default;
Index& Index::operator=(Index&&) noexcept = default;

uint64_t Index::size() const noexcept { return state_->size; }

uint64_t Index::memory_bytes() const noexcept {
  return sizeof(State) + state_->directory.memory_bytes();
}

Location Index::find(uint64_t hash, std::span<const std::byte> key) const noexcept {
  const IndexTable& table = state_->directory.table(hash);
  const uint32_t tag = tag_at(hash, table.depth());
  for (uint32_t index = table.lower_bound(tag);; ++index) {
    const Slot slot = table.slot(index);
    if (slot == 0 || tag_of(slot) != tag) return 0;
    if (equal(state_->records->key_at(location_of(slot)), key)) return location_of(slot);
  }
}

void Index::prefetch_table(uint64_t hash) const noexcept {
  const IndexTable& table = state_->directory.table(hash);
  table.prefetch(tag_at(hash, table.depth()));
}

Location Index::candidate(uint64_t hash) const noexcept {
  const IndexTable& table = state_->directory.table(hash);
  const uint32_t tag = tag_at(hash, table.depth());
  const Slot slot = table.slot(table.lower_bound(tag));
  return slot != 0 && tag_of(slot) == tag ? location_of(slot) : 0;
}

bool Index::insert(uint64_t hash, Location location) noexcept {
  assert(location != 0 && location % 8 == 0 && location >> (kLocationBits + 3) == 0);
  for (;;) {
    IndexTable& table = state_->directory.table(hash);
    if (table.insert(make_slot(tag_at(hash, table.depth()), location))) break;
    if (!state_->make_room(hash)) return false;
  }
  ++state_->size;
  return true;
}

void Index::replace(uint64_t hash, Location old_location, Location new_location) noexcept {
  assert(new_location != 0 && new_location % 8 == 0);
  IndexTable& table = state_->directory.table(hash);
  const uint32_t tag = tag_at(hash, table.depth());
  table.replace(table.index_of(make_slot(tag, old_location)), make_slot(tag, new_location));
}

void Index::erase(uint64_t hash, Location location) noexcept {
  IndexTable& table = state_->directory.table(hash);
  table.erase(table.index_of(make_slot(tag_at(hash, table.depth()), location)));
  --state_->size;
  bool merged = false;
  while (state_->merge(hash)) merged = true;
  // Without memory for a smaller table the large one stays.
  if (!merged && table.is_sparse()) state_->resize(hash, table.count());
}

uint64_t Index::scan(uint64_t cursor, uint32_t count,
                     const std::function<void(Location)>& visit) const {
  // Collected first, since an erasing visitor moves slots and tables.
  std::vector<Location> locations;
  const uint64_t next = state_->collect(cursor, std::max(count, 1U), &locations);
  for (Location location : locations) visit(location);
  return next;
}

uint32_t Index::sample(uint64_t random, uint32_t count, Location* locations) const noexcept {
  const uint64_t wanted = std::min<uint64_t>(count, state_->size);
  uint32_t found = 0;
  uint64_t hash = random;
  const IndexTable* table = &state_->directory.table(hash);
  // From any slot alike, not from the next entry: else those after a long gap came up more often.
  uint32_t index = table->home(tag_at(hash, table->depth()));
  // Ends, at the latest back in the first table, since no more than all are wanted.
  while (found < wanted) {
    for (; index < table->slot_count() && found < wanted; ++index) {
      if (table->slot(index) != 0) locations[found++] = location_of(table->slot(index));
    }
    hash = last_hash(hash, table->depth()) + 1;  // The next table's first; wraps round.
    table = &state_->directory.table(hash);
    index = 0;
  }
  return found;
}

bool Index::State::may_split(const IndexTable& table) const {
  if (table.depth() < directory.depth()) return true;
  if (table.depth() == IndexDirectory::kDepthMax) return false;
  return kRecordsPerEntryMin << (directory.depth() + 1) <= size;
}

bool Index::State::make_room(uint64_t hash) {
  const IndexTable& table = directory.table(hash);
  if (IndexTable::home_count_for(table.count() + 1) > kHomeCountMax && may_split(table)) {
    return split(hash);
  }
  return resize(hash, table.count() + 1);
}

bool Index::State::resize(uint64_t hash, uint32_t entry_count) {
  const IndexTable& table = directory.table(hash);
  const Entries entries = allocate_entries(table.count());
  if (entries == nullptr) return false;
  table.copy_to(entries.get());
  const IndexTable resized =
      IndexTable::build({entries.get(), table.count()}, IndexTable::home_count_for(entry_count),
                        table.depth(), *memory);
  if (!resized.valid()) return false;
  directory.resize(hash, resized);
  return true;
}

bool Index::State::split(uint64_t hash) {
  if (directory.table(hash).depth() == directory.depth() && !directory.deepen()) return false;
  const IndexTable& table = directory.table(hash);
  const uint32_t count = table.count();
  const uint32_t depth = table.depth() + 1;
  const Entries entries = allocate_entries(count);
  if (entries == nullptr) return false;
  table.copy_to(entries.get());
  const auto upper_half = [](Slot slot) { return slot >> 63 != 0; };
  const uint32_t low_count = static_cast<uint32_t>(
      std::find_if(entries.get(), entries.get() + count, upper_half) - entries.get());
  const std::span<Slot> low_entries(entries.get(), low_count);
  const std::span<Slot> high_entries(entries.get() + low_count, count - low_count);
  rehash({entries.get(), count}, depth);
  for (std::span<Slot> half : {low_entries, high_entries}) {
    // Entries of one tag may differ in the new bit.
    if (!std::is_sorted(half.begin(), half.end())) std::sort(half.begin(), half.end());
  }
  IndexTable low =
      IndexTable::build(low_entries, IndexTable::home_count_for(low_count), depth, *memory);
  IndexTable high = IndexTable::build(high_entries, IndexTable::home_count_for(count - low_count),
                                      depth, *memory);
  if (!low.valid() || !high.valid()) {
    low.free(*memory);
    high.free(*memory);
    return false;
  }
  directory.split(hash, low, high);
  return true;
}

// Gives entries the tags of a deeper table, whose last bit only the records know.
void Index::State::rehash(std::span<Slot> entries, uint32_t depth) const {
  for (size_t i = 0; i < entries.size(); ++i) {
    if (i + kPrefetchDistance < entries.size()) {
      records->prefetch(location_of(entries[i + kPrefetchDistance]));
    }
    const Location location = location_of(entries[i]);
    entries[i] = make_slot(tag_at(records->hash_at(location), depth), location);
  }
}

// Joins the hash's table and its buddy if they are small enough.
bool Index::State::merge(uint64_t hash) {
  const IndexTable& table = directory.table(hash);
  if (table.count() > kMergeEntryCountMax) return false;
  const IndexTable* buddy = directory.buddy(hash);
  if (buddy == nullptr || table.count() + buddy->count() > kMergeEntryCountMax) return false;
  const uint32_t depth = table.depth() - 1;
  const uint32_t count = table.count() + buddy->count();
  const Entries entries = allocate_entries(count);
  if (entries == nullptr) return false;
  const bool is_high = (hash >> (63 - depth) & 1) != 0;
  const IndexTable& low = is_high ? *buddy : table;
  const IndexTable& high = is_high ? table : *buddy;
  low.copy_to(entries.get());
  high.copy_to(entries.get() + low.count());
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t side = i < low.count() ? 0 : 1U << (kTagBits - 1);
    entries[i] = make_slot(tag_of(entries[i]) >> 1 | side, location_of(entries[i]));
  }
  const IndexTable merged =
      IndexTable::build({entries.get(), count}, IndexTable::home_count_for(count), depth, *memory);
  if (!merged.valid()) return false;
  directory.merge(hash, merged);
  return true;
}

// A cursor is the least hash not visited yet. Entries of one tag go together, since a cursor
// between them could not be told from one before or after them.
uint64_t Index::State::collect(uint64_t cursor, uint32_t count,
                               std::vector<Location>* locations) const {
  do {
    const IndexTable& table = directory.table(cursor);
    const uint32_t depth = table.depth();
    uint32_t last_tag = 0;
    for (uint32_t index = table.lower_bound(tag_at(cursor, depth)); index < table.slot_count();
         ++index) {
      const Slot slot = table.slot(index);
      if (slot == 0) continue;
      if (locations->size() >= count && tag_of(slot) != last_tag) {
        return first_hash(cursor, depth) + (uint64_t{last_tag + 1} << (kLocationBits - depth));
      }
      last_tag = tag_of(slot);
      locations->push_back(location_of(slot));
    }
    cursor = last_hash(cursor, depth) + 1;
  } while (cursor != 0 && locations->size() < count);
  return cursor;
}

}  // namespace kvstrata
