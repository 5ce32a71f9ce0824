// From a key's hash to the location of its record, within one pool on one shard.
//
// A directory over the top bits of the hash (extendible hashing) points to small open-addressing
// tables. A table's slot is 8 bytes: 40 bits of location (arena offset / 8) and 24 bits of the hash
// right below the directory's, which also give the position by multiplication, so a table can grow
// in small steps without reading records, and a scan can go in hash order with a cursor that
// survives growth. No operation moves more than one table. Not thread-safe: it belongs to its
// shard's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

namespace kvstrata {

// Where a record lies: arena offset in bytes, a multiple of 8; 0 means none.
using Location = uint64_t;

// What the index must ask of the records it points to.
class RecordResolver {
 public:
  virtual ~RecordResolver() = default;
  virtual std::span<const std::byte> key_at(Location location) const noexcept = 0;
  virtual uint64_t hash_at(Location location) const noexcept = 0;
  virtual void prefetch(Location location) const noexcept = 0;
};

class IndexMemory;

class Index {
 public:
  // Both must outlive this. `memory` may serve several indexes of one thread.
  Index(const RecordResolver* records, IndexMemory* memory);
  ~Index();
  Index(Index&&) noexcept;
  Index& operator=(Index&&) noexcept;

  Location find(uint64_t hash, std::span<const std::byte> key) const noexcept;
  // For batches: prefetch_table for every key, then candidate for every key, whose records are
  // fetched too, then find. A candidate is the record that find would look at first, or 0; no
  // record is read for it.
  void prefetch_table(uint64_t hash) const noexcept;
  Location candidate(uint64_t hash) const noexcept;

  // The key must not be there yet. False when there is no memory; nothing has changed then.
  bool insert(uint64_t hash, Location location) noexcept;
  // The exact pair (hash, old) must be there.
  void replace(uint64_t hash, Location old_location, Location new_location) noexcept;
  void erase(uint64_t hash, Location location) noexcept;

  uint64_t size() const noexcept;
  uint64_t memory_bytes() const noexcept;  // Taken by directory and tables.

  // Visits records in hash order from `cursor` (0 first), whole groups of equal position together,
  // until at least `count` were visited. Returns the next cursor, 0 at the end. The visitor may
  // erase the record it is given, nothing else.
  uint64_t scan(uint64_t cursor, uint32_t count, const std::function<void(Location)>& visit) const;

  // Up to `count` records from around a place chosen by `random`: for sampled eviction and expiry.
  // Returns how many.
  uint32_t sample(uint64_t random, uint32_t count, Location* locations) const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kvstrata
