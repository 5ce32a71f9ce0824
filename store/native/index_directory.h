// Which table holds a hash: an array over the hash's top bits (extendible hashing).
//
// Invariants:
//   - the directory has 2^depth() entries, and depth() is at least the depth of every table;
//   - a table of depth d fills the 2^(depth() - d) neighbouring entries of its hashes.
// It owns the tables and counts their memory.
#pragma once

#include <array>
#include <cstdint>

#include "store/native/index_table.h"

namespace kvstrata {

class IndexDirectory {
 public:
  // Deeper, a table would have less than kTagBits of the hash left.
  static constexpr uint32_t kDepthMax = 64 - kTagBits;

  // With one empty table. Throws std::bad_alloc. `memory` must outlive this.
  explicit IndexDirectory(IndexMemory* memory);
  ~IndexDirectory();
  IndexDirectory(const IndexDirectory&) = delete;
  IndexDirectory& operator=(const IndexDirectory&) = delete;

  uint32_t depth() const { return depth_; }
  uint64_t memory_bytes() const { return table_bytes_ + IndexMemory::bytes_of(entries_); }

  IndexTable& table(uint64_t hash) { return entries_[entry_index(hash)]; }
  const IndexTable& table(uint64_t hash) const { return entries_[entry_index(hash)]; }
  // The table that shares all but the last of this one's hash bits; null if it was split further
  // or this one holds everything.
  const IndexTable* buddy(uint64_t hash) const;

  // Doubles the directory. False when there is no memory.
  bool deepen();
  // These free the tables that they replace. The new ones are valid and hold the same records.
  void resize(uint64_t hash, IndexTable table);
  void split(uint64_t hash, IndexTable low, IndexTable high);
  void merge(uint64_t hash, IndexTable table);

 private:
  uint64_t entry_count() const { return uint64_t{1} << depth_; }
  // Two shifts, since one by 64 is undefined.
  uint64_t entry_index(uint64_t hash) const { return hash >> 1 >> (63 - depth_); }
  void assign(uint64_t hash, IndexTable table);
  void release(IndexTable table);
  void halve_while_possible();
  IndexTable* allocate(uint64_t entry_count) const;

  IndexMemory* memory_;
  IndexTable* entries_;
  uint32_t depth_ = 0;
  uint64_t table_bytes_ = 0;
  std::array<uint64_t, kDepthMax + 1> table_counts_{};  // By depth, to know when to halve.
};

}  // namespace kvstrata
