#include "store/native/index_directory.h"

#include <algorithm>
#include <cassert>
#include <new>

namespace kvstrata {
namespace {

// The hash bit that tells a table of this depth from its buddy.
uint64_t buddy_bit(uint32_t depth) { return uint64_t{1} << (64 - depth); }

}  // namespace

IndexDirectory::IndexDirectory(IndexMemory* memory) : memory_(memory), entries_(allocate(1)) {
  if (entries_ == nullptr) throw std::bad_alloc();
  const IndexTable table = IndexTable::build({}, IndexTable::home_count_for(0), 0, *memory_);
  if (!table.valid()) {
    memory_->free(entries_);
    throw std::bad_alloc();
  }
  assign(0, table);
}

IndexDirectory::~IndexDirectory() {
  for (uint64_t index = 0; index < entry_count();) {
    IndexTable table = entries_[index];
    index += uint64_t{1} << (depth_ - table.depth());
    table.free(*memory_);
  }
  memory_->free(entries_);
}

IndexTable* IndexDirectory::allocate(uint64_t entry_count) const {
  return static_cast<IndexTable*>(memory_->allocate(entry_count * sizeof(IndexTable)));
}

const IndexTable* IndexDirectory::buddy(uint64_t hash) const {
  const uint32_t depth = table(hash).depth();
  if (depth == 0) return nullptr;
  const IndexTable& other = table(hash ^ buddy_bit(depth));
  return other.depth() == depth ? &other : nullptr;
}

bool IndexDirectory::deepen() {
  assert(depth_ < kDepthMax);
  IndexTable* doubled = allocate(entry_count() * 2);
  if (doubled == nullptr) return false;
  for (uint64_t index = 0; index < entry_count(); ++index) {
    doubled[index * 2] = doubled[index * 2 + 1] = entries_[index];
  }
  memory_->free(entries_);
  entries_ = doubled;
  ++depth_;
  return true;
}

void IndexDirectory::resize(uint64_t hash, IndexTable resized) {
  release(table(hash));
  assign(hash, resized);
}

void IndexDirectory::split(uint64_t hash, IndexTable low, IndexTable high) {
  assert(high.depth() <= depth_);
  release(table(hash));
  assign(hash & ~buddy_bit(low.depth()), low);
  assign(hash | buddy_bit(high.depth()), high);
}

void IndexDirectory::merge(uint64_t hash, IndexTable merged) {
  release(table(hash ^ buddy_bit(merged.depth() + 1)));
  release(table(hash));
  assign(hash, merged);
  halve_while_possible();
}

void IndexDirectory::assign(uint64_t hash, IndexTable table) {
  const uint64_t span = uint64_t{1} << (depth_ - table.depth());
  std::fill_n(&entries_[entry_index(hash) & ~(span - 1)], span, table);
  table_bytes_ += table.memory_bytes();
  ++table_counts_[table.depth()];
}

void IndexDirectory::release(IndexTable table) {
  table_bytes_ -= table.memory_bytes();
  --table_counts_[table.depth()];
  table.free(*memory_);
}

void IndexDirectory::halve_while_possible() {
  while (depth_ > 0 && table_counts_[depth_] == 0) {
    IndexTable* halved = allocate(entry_count() / 2);
    if (halved == nullptr) return;  // Too large is not wrong.
    for (uint64_t index = 0; index < entry_count() / 2; ++index) {
      halved[index] = entries_[index * 2];
    }
    memory_->free(entries_);
    entries_ = halved;
    --depth_;
  }
}

}  // namespace kvstrata
