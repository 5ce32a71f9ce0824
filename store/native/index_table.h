// One table of the index: slots sorted by tag, open addressing without tombstones.
//
// Invariants:
//   - slots hold entries in ascending order of tag; 0 is an empty slot;
//   - an entry lies at or after its home, and every slot from its home up to it is occupied;
//   - the last slot is always empty, so a search needs no bound.
// Homes are monotone in the tag (tag * home_count >> 24), so the order survives any resize, and a
// table is rebuilt in one pass without reading a record. Slots beyond the last home take the
// entries that overflow there, which spares the wrap-around and keeps the order of hashes plain.
#pragma once

#include <cstdint>
#include <span>

#include "store/native/index_memory.h"

namespace kvstrata {

using Slot = uint64_t;

constexpr uint32_t kTagBits = 24;
constexpr uint32_t kLocationBits = 40;  // Of location / 8: an arena of up to 8 TiB.

// The bits of `hash` that a table of this depth keeps: those right below the directory's.
inline uint32_t tag_at(uint64_t hash, uint32_t depth) {
  return static_cast<uint32_t>(hash << depth >> kLocationBits);
}
inline uint32_t tag_of(Slot slot) { return static_cast<uint32_t>(slot >> kLocationBits); }
inline uint64_t location_of(Slot slot) { return (slot << kTagBits) >> (kTagBits - 3); }
inline Slot make_slot(uint32_t tag, uint64_t location) {
  return uint64_t{tag} << kLocationBits | location >> 3;
}

// A handle, as it lies in the directory: copies share the slots, and the index frees them.
class IndexTable {
 public:
  // `entries` in ascending order of tag. `depth` is the number of hash bits that all entries share.
  // Not valid() when there is no memory.
  static IndexTable build(std::span<const Slot> entries, uint32_t home_count, uint32_t depth,
                          IndexMemory& memory);
  // The number of homes for a table that holds `count` entries and is about to grow or has shrunk.
  static uint32_t home_count_for(uint32_t count);
  void free(IndexMemory& memory);

  bool valid() const { return slots_ != nullptr; }
  uint32_t depth() const { return depth_; }
  uint32_t count() const { return header().count; }
  uint32_t slot_count() const { return header().slot_count; }
  uint64_t memory_bytes() const;
  bool is_sparse() const;

  Slot slot(uint32_t index) const { return slots_[index]; }
  uint32_t home(uint32_t tag) const {
    return static_cast<uint32_t>(uint64_t{tag} * home_count_ >> kTagBits);
  }
  // An entry lies some five slots after its home, so as often as not in the next line.
  void prefetch(uint32_t tag) const {
    __builtin_prefetch(slots_ + home(tag));
    __builtin_prefetch(slots_ + home(tag) + 8);
  }
  // The first slot that is empty or has at least this tag, at or after the tag's home.
  uint32_t lower_bound(uint32_t tag) const;
  // The slot that holds exactly this entry; it must be there.
  uint32_t index_of(Slot entry) const;

  // False when the table is too full and must be rebuilt or split.
  bool insert(Slot entry);
  void erase(uint32_t index);
  void replace(uint32_t index, Slot entry) { slots_[index] = entry; }
  // Copies the entries in order to `entries`, which has room for count().
  void copy_to(Slot* entries) const;

 private:
  struct Header {
    uint32_t count;
    uint32_t slot_count;
  };
  static_assert(sizeof(Header) == sizeof(Slot));

  // The header lies right before the slots: the directory's entry alone is enough to search.
  Header& header() const { return reinterpret_cast<Header*>(slots_)[-1]; }

  Slot* slots_ = nullptr;
  uint32_t home_count_ = 0;
  uint32_t depth_ = 0;
};

static_assert(sizeof(IndexTable) == 16);

}  // namespace kvstrata
