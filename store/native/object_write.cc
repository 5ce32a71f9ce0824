// Writing objects: memory for an open record, then the commit that makes it visible.
#include <algorithm>
#include <cassert>

#include "store/native/object_store.h"
#include "store/native/partition.h"
#include "transport/native/checksum.h"

namespace kvstrata {

namespace {

// Tries to make room before the caller is told to wait: some 10 us of evicting.
constexpr uint32_t kRoomAttempts = 32;

constexpr uint64_t kVersionMask = (uint64_t{1} << 48) - 1;

}  // namespace

bool ObjectStore::over_quota(const Partition& partition, uint64_t more_bytes) const noexcept {
  uint64_t quota = partition.settings.quota_bytes;
  return quota != 0 && partition.usage->bytes.load(std::memory_order_relaxed) + more_bytes > quota;
}

uint64_t ObjectStore::value_bytes_max() const noexcept {
  // Each shard needs a segment for records beside those that hold chunks.
  uint64_t usable = segments_->segment_count() > shard_count_
                        ? segments_->segment_count() - shard_count_
                        : 1;
  return usable * segments_->segment_bytes();
}

Status ObjectStore::check_size(const Partition& partition, const RecordShape& shape) const noexcept {
  if (shape.value_length > value_bytes_max()) return Status::TooLarge;
  uint64_t quota = partition.settings.quota_bytes;
  uint64_t bytes = shape.record_bytes() + (shape.fits_inline() ? 0 : shape.value_length);
  return quota != 0 && bytes > quota ? Status::TooLarge : Status::Ok;
}

Status ObjectStore::reserve(Partition& partition, const WriteRequest& request, Location* location,
                            CommitOutcome* outcome) {
  Location present = find(partition, request.hash, request.key);
  if (present != 0) {
    outcome->value_length = view(present).value_length();
    outcome->version = view(present).header().version;
    if (request.if_absent) return Status::Exists;
    if (partition.settings.immutable) return Status::Immutable;
  }
  uint64_t expiry = expiry_for(partition, request.ttl_ms);
  RecordShape shape{static_cast<uint32_t>(request.key.size()),
                    static_cast<uint32_t>(request.attributes.size()), request.value_length,
                    expiry != RecordView::kNoExpiry};
  if (*location == 0) {
    Status status = open_record(partition, shape, request, location);
    if (status != Status::Ok) return status;
    if (view(*location).has(kHasExpiry)) view(*location).set_expiry_ms(expiry);
  }
  return allocate_chunks(*location);
}

// Formats an open record with key and attributes; chunks come later.
Status ObjectStore::open_record(Partition& partition, RecordShape shape,
                                const WriteRequest& request, Location* location) {
  if (!shape.fits_inline()) shape.has_expiry = true;  // Eight bytes that spare chunked records a move.
  Status status = check_size(partition, shape);
  if (status != Status::Ok) return status;
  uint64_t bytes = shape.record_bytes();
  uint64_t total = bytes + (shape.fits_inline() ? 0 : shape.value_length);
  for (uint32_t attempt = 0; attempt < kRoomAttempts && over_quota(partition, total); ++attempt) {
    status = make_room_in(partition);
    if (status != Status::Ok) return status;
  }
  if (over_quota(partition, total)) return Status::Busy;
  bool in_extent = bytes > limits::kRecordBytesInlineMax;
  status = allocate(bytes, in_extent, 1, location);
  if (status != Status::Ok) return status;
  RecordView record = view(*location);
  record.format(shape, partition.id, in_extent);
  if (shape.has_expiry) record.set_expiry_ms(RecordView::kNoExpiry);
  if (in_extent) memory_.set_owner({*location, RecordView::extent_bytes(bytes)}, *location);
  record.set_attributes(request.attributes);
  std::ranges::copy(request.key, record.key().begin());
  if (record.has(kIsChunked)) reserved_bytes_ += shape.value_length;
  return Status::Ok;
}

Status ObjectStore::allocate(uint64_t bytes, bool as_extent, uint64_t owner, ArenaOffset* offset) {
  for (uint32_t attempt = 0;; ++attempt) {
    if (as_extent) {
      Extent extent;
      *offset = memory_.allocate_extent(bytes, owner, &extent) ? extent.offset : 0;
    } else {
      *offset = memory_.allocate_cell(static_cast<uint32_t>(bytes));
    }
    if (*offset != 0) {
      note_room_found();
      return Status::Ok;
    }
    needed_bytes_ = bytes;
    // Pages on their way are no reason to evict.
    if (attempt == kRoomAttempts || segments_->is_arriving()) return Status::Busy;
    if (!make_progress()) return Status::NoSpace;
  }
}

Status ObjectStore::allocate_chunks(Location location) {
  RecordView record = view(location);
  if (!record.has(kIsChunked)) return Status::Ok;
  while (record.table().allocated_count < record.table().chunk_count) {
    uint32_t index = record.table().allocated_count;
    ArenaOffset offset = 0;
    Status status = allocate(record.chunk_length(index), true, location, &offset);
    if (status != Status::Ok) return status;
    record.chunks()[index] = {ChunkLocation::dram(offset), 0};
    ++record.table().allocated_count;
  }
  return Status::Ok;
}

void ObjectStore::close_reservation(Location location) noexcept {
  if (view(location).has(kIsChunked)) reserved_bytes_ -= view(location).value_length();
}

void ObjectStore::abort(Location location) noexcept {
  close_reservation(location);
  free_record(location);
}

CommitOutcome ObjectStore::commit(Partition& partition, Location location, uint64_t hash,
                                  bool if_absent) {
  Location present = find(partition, hash, view(location).key());
  if (present != 0 && (if_absent || partition.settings.immutable)) {
    CommitOutcome outcome{if_absent ? Status::Exists : Status::Immutable, WriteResult::Nothing,
                          view(present).value_length(), view(present).header().version};
    abort(location);
    partition.statistics->put_refusals.add();
    return outcome;
  }
  return publish(partition, location, hash, present,
                 present != 0 ? WriteResult::Replaced : WriteResult::Created);
}

CommitOutcome ObjectStore::publish(Partition& partition, Location location, uint64_t hash,
                                   Location present, WriteResult result) {
  if (present != 0) unlink(partition, hash, present);
  if (!partition.index.insert(hash, location)) {
    abort(location);
    return {Status::NoSpace, WriteResult::Nothing, 0, 0};
  }
  close_reservation(location);
  RecordView record = view(location);
  record.header().version = next_version_++ & kVersionMask;
  link(partition, hash, location);
  partition.statistics->puts.add();
  return {Status::Ok, result, record.value_length(), record.header().version};
}

Status ObjectStore::reserve_append(Partition& partition, const WriteRequest& request, uint64_t at,
                                   Location* location, CommitOutcome* outcome) {
  Location present = find(partition, request.hash, request.key);
  if (present == 0) {
    if (at != 0) return Status::Mismatch;
    return reserve(partition, request, location, outcome);
  }
  RecordView old_record = view(present);
  outcome->value_length = old_record.value_length();
  outcome->version = old_record.header().version;
  bool changed = *location != 0 && view(*location).header().version != outcome->version;
  if (outcome->value_length != at || changed) return Status::Mismatch;
  if (*location == 0) {
    if (at + request.value_length < at) return Status::TooLarge;
    RecordShape shape = old_record.shape();
    shape.value_length = at + request.value_length;
    WriteRequest whole = request;
    whole.attributes = old_record.attributes();
    Status status = open_record(partition, shape, whole, location);
    if (status != Status::Ok) return status;
    // Making room may have evicted the very object; then there is nothing to append to.
    if (find(partition, request.hash, request.key) != present) return Status::Mismatch;
    RecordView record = view(*location);
    record.header().version = outcome->version;
    if (record.has(kHasExpiry)) record.set_expiry_ms(old_record.expiry_ms());
    share_whole_chunks(present, *location);
  }
  Status status = allocate_chunks(*location);
  if (status != Status::Ok) return status;
  if (find(partition, request.hash, request.key) != present) return Status::Mismatch;
  return copy_ragged_tail(partition, present, *location);
}

void ObjectStore::share_whole_chunks(Location from, Location to) noexcept {
  RecordView old_record = view(from);
  RecordView record = view(to);
  if (!old_record.has(kIsChunked) || !record.has(kIsChunked)) return;
  uint64_t whole = old_record.value_length() / limits::kChunkBytes;
  for (uint32_t index = 0; index < whole; ++index) {
    memory_.retain_extent(old_record.extent(index));
    record.chunks()[index] = old_record.chunks()[index];
    ++record.table().allocated_count;
  }
}

Status ObjectStore::copy_ragged_tail(Partition& partition, Location from, Location to) noexcept {
  uint64_t length = view(from).value_length();
  uint64_t ragged = length % limits::kChunkBytes;
  if (ragged == 0) return Status::Ok;
  auto index = static_cast<uint32_t>(length / limits::kChunkBytes);
  if (!chunk_is_sound(partition, from, index)) return Status::Corrupt;
  std::memcpy(piece(to, index).data(), piece(from, index).data(), ragged);
  return Status::Ok;
}

CommitOutcome ObjectStore::commit_append(Partition& partition, Location location, uint64_t hash,
                                         uint64_t at) {
  Location present = find(partition, hash, view(location).key());
  uint64_t length = present != 0 ? view(present).value_length() : 0;
  bool same = present == 0 ? view(location).header().version == 0
                           : view(present).header().version == view(location).header().version;
  if (length != at || !same) {
    abort(location);
    partition.statistics->put_refusals.add();
    return {Status::Mismatch, WriteResult::Nothing, length, 0};
  }
  if (at % limits::kChunkBytes != 0) {
    auto ragged = static_cast<uint32_t>(at / limits::kChunkBytes);
    set_checksum(location, ragged, chunk_checksum(piece(location, ragged)));
  }
  RecordView record = view(location);
  if (present == 0) return publish(partition, location, hash, 0, WriteResult::Created);
  for (uint32_t index = 0; record.has(kIsChunked) && index < at / limits::kChunkBytes; ++index) {
    memory_.set_owner(record.extent(index), location);
  }
  return publish(partition, location, hash, present, WriteResult::Appended);
}

}  // namespace kvstrata
