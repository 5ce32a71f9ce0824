// An object's record in the arena: header, then what the flags say, then attributes, key and, for
// small values, the value.
//
//   header 16 | [expiry 8] | checksum 8, or chunk table 16 + 16 per chunk | [attribute length 2,
//   attributes] | key | inline value
//
// A record lies in a cell, or in an extent of its own when its chunk table outgrows cells. It is
// written once, by the shard that owns it; readers hold references on the chunks' extents, never on
// the record.
#pragma once

#include <cstdint>

#include "store/limits.h"
#include "store/native/index.h"
#include "tiering/native/cell_classes.h"
#include "tiering/native/eviction.h"
#include "tiering/native/shard_memory.h"
#include "transport/native/bytes.h"

namespace kvstrata {

// Names a pool for ever: a place among the node's pools and, above it, a number that no other pool
// at that place has had. Who still holds the id of a dropped pool cannot meet the next one with it.
using PoolId = uint64_t;

constexpr uint16_t place_of(PoolId pool) noexcept {
  return static_cast<uint16_t>(pool % limits::kPoolCountMax);
}

// Where a chunk rests. The kind is in the top 4 bits; version 1 knows DRAM extents only.
enum class ChunkPlace : uint8_t { None = 0, Dram = 1 };

class ChunkLocation {
 public:
  ChunkLocation() = default;
  static ChunkLocation dram(ArenaOffset offset) noexcept {
    return ChunkLocation((uint64_t{static_cast<uint8_t>(ChunkPlace::Dram)} << 60) | offset);
  }
  ChunkPlace place() const noexcept { return static_cast<ChunkPlace>(word_ >> 60); }
  ArenaOffset offset() const noexcept { return word_ & ((uint64_t{1} << 60) - 1); }

 private:
  explicit ChunkLocation(uint64_t word) noexcept : word_(word) {}
  uint64_t word_ = 0;
};

struct Chunk {
  ChunkLocation location;
  uint64_t checksum = 0;
};
static_assert(sizeof(Chunk) == 16);

struct RecordHeader {
  uint64_t version : 48;
  uint64_t pool_place : 10;
  uint64_t flags : 6;
  uint64_t eviction_word : 32;  // While open: `shared_count`. While retained: the place.
  uint64_t key_length : 13;
  uint64_t inline_length : 14;  // Of the value, when it is inside the record.
  uint64_t frequency : 4;
  uint64_t was_appended : 1;  // To a value that was there.
};
static_assert(sizeof(RecordHeader) == 16);
static_assert(limits::kKeyBytesMax < (1 << 13) && limits::kRecordBytesInlineMax < (1 << 14));
static_assert(limits::kPoolCountMax <= (1 << 10));

enum RecordFlag : uint8_t {
  kHasExpiry = 1,
  kHasAttributes = 2,
  kIsChunked = 4,
  kInExtent = 8,    // The record lies in an extent, not a cell.
  kOpen = 16,       // Being written; not in the index, not to be moved.
  kLaidAgain = 32,  // While open: the chunks were given back once, to be laid without gaps.
  kRetained = 32,   // In the index: it has a place in its partition's retention table.
};

struct ChunkTableHeader {
  uint64_t value_length;
  uint32_t chunk_count;      // That the value has.
  uint32_t allocated_count;  // That have extents; smaller only while open.
};

// What decides a record's size and layout.
struct RecordShape {
  uint32_t key_length = 0;
  uint32_t attribute_length = 0;
  uint64_t value_length = 0;
  bool has_expiry = false;

  uint32_t chunk_count() const noexcept {
    return static_cast<uint32_t>((value_length + limits::kChunkBytes - 1) / limits::kChunkBytes);
  }
  uint64_t fixed_bytes() const noexcept {
    return sizeof(RecordHeader) + (has_expiry ? 8 : 0) + key_length +
           (attribute_length != 0 ? 2 + attribute_length : 0);
  }
  // With the eight bytes of an expiry, so that one can be given later.
  bool fits_inline() const noexcept {
    return value_length <= limits::kRecordBytesInlineMax &&
           fixed_bytes() + (has_expiry ? 0 : 8) + 8 + value_length <= limits::kRecordBytesInlineMax;
  }
  uint64_t record_bytes() const noexcept {
    if (fits_inline()) return fixed_bytes() + 8 + value_length;
    return fixed_bytes() + sizeof(ChunkTableHeader) + chunk_count() * sizeof(Chunk);
  }
  // What it takes of the arena: its cell or extent, and its chunks' extents.
  uint64_t memory_bytes() const noexcept;
};

// Reads and writes a record where it lies.
class RecordView {
 public:
  explicit RecordView(std::byte* at) noexcept : at_(at) {}

  RecordHeader& header() const noexcept { return *reinterpret_cast<RecordHeader*>(at_); }
  bool has(RecordFlag flag) const noexcept { return (header().flags & flag) != 0; }
  void set(RecordFlag flag, bool on) const noexcept {
    header().flags = on ? header().flags | flag : header().flags & ~uint64_t{flag};
  }

  // Lays an open record out; the caller fills key, attributes and value.
  void format(const RecordShape& shape, PoolId pool, bool in_extent) const noexcept;
  RecordShape shape() const noexcept;

  // Milliseconds since the epoch; kNoExpiry without one.
  static constexpr uint64_t kNoExpiry = UINT64_MAX;
  uint64_t expiry_ms() const noexcept {
    return has(kHasExpiry) ? load_le<uint64_t>(at_ + sizeof(RecordHeader)) : kNoExpiry;
  }
  // The record must have the field.
  void set_expiry_ms(uint64_t expiry_ms) const noexcept {
    store_le(at_ + sizeof(RecordHeader), expiry_ms);
  }

  uint64_t value_length() const noexcept {
    return has(kIsChunked) ? table().value_length : header().inline_length;
  }
  MutableBytes key() const noexcept { return {tail() + attribute_span(), header().key_length}; }
  Bytes attributes() const noexcept {
    return has(kHasAttributes) ? Bytes{tail() + 2, load_le<uint16_t>(tail())} : Bytes{};
  }
  void set_attributes(Bytes attributes) const noexcept;

  // Small values.
  MutableBytes inline_value() const noexcept {
    return {tail() + attribute_span() + header().key_length, header().inline_length};
  }
  uint64_t inline_checksum() const noexcept { return load_le<uint64_t>(after_expiry()); }
  void set_inline_checksum(uint64_t checksum) const noexcept { store_le(after_expiry(), checksum); }

  // Chunked values.
  ChunkTableHeader& table() const noexcept {
    return *reinterpret_cast<ChunkTableHeader*>(after_expiry());
  }
  Chunk* chunks() const noexcept {
    return reinterpret_cast<Chunk*>(after_expiry() + sizeof(ChunkTableHeader));
  }
  uint32_t chunk_count() const noexcept {
    if (has(kIsChunked)) return table().chunk_count;
    return header().inline_length == 0 ? 0 : 1;
  }
  uint64_t chunk_length(uint32_t index) const noexcept {
    uint64_t begin = uint64_t{index} * limits::kChunkBytes;
    uint64_t left = value_length() - begin;
    return left < limits::kChunkBytes ? left : limits::kChunkBytes;
  }
  uint64_t checksum(uint32_t index) const noexcept {
    return has(kIsChunked) ? chunks()[index].checksum : inline_checksum();
  }
  // Of an open record: so many of its first chunks are those of the object that it will replace.
  uint32_t shared_count() const noexcept { return static_cast<uint32_t>(header().eviction_word); }
  void set_shared_count(uint32_t count) const noexcept { header().eviction_word = count; }
  // Of a retained record, in the table of retentions.
  uint32_t place() const noexcept { return static_cast<uint32_t>(header().eviction_word); }
  // The extent that holds a chunk, as it was allocated.
  Extent extent(uint32_t index) const noexcept {
    return {chunks()[index].location.offset(), extent_bytes(chunk_length(index))};
  }
  static uint64_t extent_bytes(uint64_t length) noexcept {
    return (length + limits::kPageBytes - 1) / limits::kPageBytes * limits::kPageBytes;
  }

 private:
  std::byte* after_expiry() const noexcept {
    return at_ + sizeof(RecordHeader) + (has(kHasExpiry) ? 8 : 0);
  }
  std::byte* tail() const noexcept {
    if (!has(kIsChunked)) return after_expiry() + 8;
    return after_expiry() + sizeof(ChunkTableHeader) + table().chunk_count * sizeof(Chunk);
  }
  size_t attribute_span() const noexcept {
    return has(kHasAttributes) ? size_t{2} + load_le<uint16_t>(tail()) : 0;
  }

  std::byte* at_;
};

inline uint64_t RecordShape::memory_bytes() const noexcept {
  uint64_t bytes = record_bytes();
  uint64_t own = bytes > limits::kRecordBytesInlineMax
                     ? RecordView::extent_bytes(bytes)
                     : kCellClasses[kCellClassByWords[(bytes + 7) / kCellAlignment]].cell_bytes;
  if (fits_inline()) return own;
  uint64_t whole_chunks = value_length / limits::kChunkBytes;
  uint64_t ragged = value_length % limits::kChunkBytes;
  return own + whole_chunks * limits::kChunkBytes + RecordView::extent_bytes(ragged);
}

inline void RecordView::format(const RecordShape& shape, PoolId pool,
                               bool in_extent) const noexcept {
  header() = RecordHeader{};
  header().pool_place = place_of(pool);
  header().key_length = shape.key_length;
  uint64_t flags = kOpen;
  if (shape.has_expiry) flags |= kHasExpiry;
  if (shape.attribute_length != 0) flags |= kHasAttributes;
  if (in_extent) flags |= kInExtent;
  if (!shape.fits_inline()) flags |= kIsChunked;
  header().flags = flags;
  if (shape.fits_inline()) {
    header().inline_length = shape.value_length;
  } else {
    table() = {shape.value_length, shape.chunk_count(), 0};
  }
  if (shape.attribute_length != 0) {
    store_le(tail(), static_cast<uint16_t>(shape.attribute_length));
  }
}

inline RecordShape RecordView::shape() const noexcept {
  return {static_cast<uint32_t>(header().key_length), static_cast<uint32_t>(attributes().size()),
          value_length(), has(kHasExpiry)};
}

inline void RecordView::set_attributes(Bytes attributes) const noexcept {
  if (!attributes.empty()) std::memcpy(tail() + 2, attributes.data(), attributes.size());
}

}  // namespace kvstrata
