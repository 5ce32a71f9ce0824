// Writing objects: memory for an open record, then the commit that makes it visible.
#include <algorithm>
#include <cassert>
#include <utility>

#include "store/native/object_store.h"
#include "store/native/partition.h"
#include "transport/native/checksum.h"

namespace kvstrata {

namespace {

// Tries to make room before the caller is told to wait: some 10 us of evicting.
constexpr uint32_t kRoomAttempts = 32;

constexpr uint64_t kVersionMask = (uint64_t{1} << 48) - 1;

}  // namespace

uint64_t ObjectStore::value_bytes_max() const noexcept {
  // This shard needs a segment for records beside those that hold chunks, the others keep two each;
  // and the segment with the arena's first page, which is never handed out, has room for a chunk
  // less.
  uint64_t usable = segments_->segment_count() - (2 * uint64_t{shard_count_} - 1);
  return usable * segments_->segment_bytes() - limits::kChunkBytes;
}

Status ObjectStore::check_size(const Partition& partition,
                               const RecordShape& shape) const noexcept {
  if (shape.value_length > value_bytes_max()) return Status::TooLarge;
  uint64_t quota = partition.settings.quota_bytes;
  return quota != 0 && shape.memory_bytes() > quota ? Status::TooLarge : Status::Ok;
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
  return reserve_room(partition, request, location);
}

Status ObjectStore::reserve_room(Partition& partition, const WriteRequest& request,
                                 Location* location) {
  uint64_t expiry = expiry_for(partition, request.ttl_ms);
  RecordShape shape{static_cast<uint32_t>(request.key.size()),
                    static_cast<uint32_t>(request.attributes.size()), request.value_length,
                    expiry != RecordView::kNoExpiry};
  if (*location == 0) {
    Status status = open_record(partition, shape, request, 0, location);
    if (status != Status::Ok) return status;
    if (view(*location).has(kHasExpiry)) view(*location).set_expiry_ms(expiry);
  }
  return allocate_chunks_or_close(location);
}

// Formats an open record with key and attributes; chunks come later, but are charged now. The first
// `shared_count` of them are there, and charged, already.
Status ObjectStore::open_record(Partition& partition, RecordShape shape,
                                const WriteRequest& request, uint32_t shared_count,
                                Location* location) {
  // Eight bytes that spare chunked records a move.
  if (!shape.fits_inline()) shape.has_expiry = true;
  Status status = check_size(partition, shape);
  if (status != Status::Ok) return status;
  uint64_t charged = shape.memory_bytes() - uint64_t{shared_count} * limits::kChunkBytes;
  status = charge(partition, charged);
  if (status != Status::Ok) return status;
  uint64_t bytes = shape.record_bytes();
  bool in_extent = bytes > limits::kRecordBytesInlineMax;
  status = allocate(bytes, in_extent, kNobody, location);
  if (status != Status::Ok) {
    partition.usage->give_back(charged);
    return status == Status::NoSpace ? shortage() : status;
  }
  RecordView record = view(*location);
  record.format(shape, partition.id, in_extent);
  if (shape.has_expiry) record.set_expiry_ms(RecordView::kNoExpiry);
  if (in_extent) memory_.set_owner({*location, RecordView::extent_bytes(bytes)}, *location);
  record.set_attributes(request.attributes);
  std::ranges::copy(request.key, record.key().begin());
  record.set_shared_count(shared_count);
  partition.reserved_bytes += charged;
  reserved_bytes_ += charged;
  return Status::Ok;
}

Status ObjectStore::allocate(uint64_t bytes, bool as_extent, uint64_t owner, ArenaOffset* offset) {
  for (uint32_t attempt = 0;;) {
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
    Status status = make_room(bytes, &attempt);
    if (status != Status::Ok) return status;
  }
}

// One attempt. Ok: look again.
Status ObjectStore::make_room(uint64_t bytes, uint32_t* attempt) noexcept {
  needed_bytes_ = bytes;
  // Pages on their way are no reason to evict.
  if (*attempt >= kRoomAttempts || segments_->is_arriving()) return Status::Busy;
  ++*attempt;
  if (draining_ != kNoSegment) *attempt = kRoomAttempts;  // The steps of a drain are longer.
  return make_progress() ? Status::Ok : Status::NoSpace;
}

// Room for all of the chunks, before the first of them: laid between what is evicted later, they
// would leave gaps that no chunk fits in.
Status ObjectStore::make_room_for_chunks(const RecordView& record) noexcept {
  uint64_t held = uint64_t{record.table().allocated_count} * limits::kChunkBytes;
  uint64_t length = record.table().value_length;
  uint64_t missing = length > held ? length - held : 0;
  for (uint32_t attempt = 0; memory_.free_bytes() < missing;) {
    Status status = make_room(missing, &attempt);
    if (status != Status::Ok) return status;
  }
  return Status::Ok;
}

Status ObjectStore::allocate_chunks(Location location) {
  RecordView record = view(location);
  if (!record.has(kIsChunked)) return Status::Ok;
  Status status = make_room_for_chunks(record);
  if (status != Status::Ok) return status;
  // Once a record, or it would wait for ever; not an append, which shares chunks.
  bool may_lay_again = record.header().version == 0 && !record.has(kLaidAgain);
  while (record.table().allocated_count < record.table().chunk_count) {
    uint32_t index = record.table().allocated_count;
    ArenaOffset offset = 0;
    status = allocate(record.chunk_length(index), true, location, &offset);
    if (status == Status::NoSpace && std::exchange(may_lay_again, false)) {
      record.set(kLaidAgain, true);
      // Among what was evicted later they lie so that gaps are left: now there is nothing in the
      // way.
      free_chunks(location);
      continue;
    }
    if (status != Status::Ok) return status;
    record.chunks()[index] = {ChunkLocation::dram(offset), 0};
    ++record.table().allocated_count;
  }
  return Status::Ok;
}

// A write that waits for what others hold begins anew: if it held something itself, two could wait
// for each other.
Status ObjectStore::allocate_chunks_or_close(Location* location) {
  Status status = allocate_chunks(*location);
  if (status != Status::NoSpace) return status;
  abort(std::exchange(*location, 0));
  return shortage();
}

void ObjectStore::free_chunks(Location location) noexcept {
  RecordView record = view(location);
  if (!record.has(kIsChunked)) return;
  for (uint32_t index = 0; index < record.table().allocated_count; ++index) {
    memory_.free_extent(record.extent(index));
  }
  record.table().allocated_count = 0;
}

// Of an open record: its pool may have been dropped meanwhile.
Partition& ObjectStore::writing_partition(Location location) noexcept {
  size_t place = view(location).header().pool_place;
  if (partitions_[place] != nullptr) return *partitions_[place];
  auto dropped =
      std::ranges::find(dropped_, place, [](const auto& each) { return place_of(each->id); });
  assert(dropped != dropped_.end());
  return **dropped;
}

// What was charged for an open record.
uint64_t ObjectStore::charge_of(Location location) const noexcept {
  return memory_of(location) - uint64_t{view(location).shared_count()} * limits::kChunkBytes;
}

void ObjectStore::close_reservation(Partition& partition, Location location) noexcept {
  partition.reserved_bytes -= charge_of(location);
  reserved_bytes_ -= charge_of(location);
}

void ObjectStore::abort(Location location) noexcept {
  Partition& partition = writing_partition(location);
  close_reservation(partition, location);
  partition.usage->give_back(charge_of(location));
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

// The same key, a value of the same length, in a record of the same layout: only the value changes.
// Nobody reads a record but the shard itself, so it may be written where it lies.
bool ObjectStore::overwrite(Partition& partition, const WriteRequest& request, Location present,
                            Bytes value, CommitOutcome* outcome) noexcept {
  RecordView record = view(present);
  uint64_t expiry = expiry_for(partition, request.ttl_ms);
  bool fits = !record.has(kIsChunked) && !record.has(kHasAttributes) &&
              record.header().inline_length == value.size() &&
              (record.has(kHasExpiry) || expiry == RecordView::kNoExpiry);
  if (!fits || partition.settings.immutable) return false;
  if (partition.is_retained(present)) end_retaining(partition, present);
  MutableBytes target = record.inline_value();
  if (!value.empty()) std::memcpy(target.data(), value.data(), value.size());
  record.set_inline_checksum(chunk_checksum(target));
  record.header().version = next_version_++ & kVersionMask;
  record.header().was_appended = false;
  if (record.has(kHasExpiry)) set_expiry(partition, present, expiry);
  if (partition.policy != nullptr) partition.policy->on_access(present);
  partition.statistics->puts.add();
  *outcome = {Status::Ok, WriteResult::Replaced, value.size(), record.header().version};
  return true;
}

Status ObjectStore::put_small(Partition& partition, const WriteRequest& request, Location present,
                              Bytes value, Location* location, CommitOutcome* outcome) {
  if (present != 0 && overwrite(partition, request, present, value, outcome)) return Status::Ok;
  if (present != 0 && partition.settings.immutable) return Status::Immutable;
  uint64_t reclaimed = reclaim_count_;
  Status status = reserve_room(partition, request, location);
  if (status != Status::Ok) return status;
  MutableBytes target = piece(*location, 0);
  if (!value.empty()) std::memcpy(target.data(), value.data(), value.size());
  set_checksum(*location, 0, chunk_checksum(target));
  // Making room may have moved or evicted what was there.
  if (reclaim_count_ != reclaimed) present = find(partition, request.hash, request.key);
  *outcome = publish(partition, *location, request.hash, present,
                     present != 0 ? WriteResult::Replaced : WriteResult::Created);
  *location = 0;
  return outcome->status;
}

CommitOutcome ObjectStore::publish(Partition& partition, Location location, uint64_t hash,
                                   Location present, WriteResult result) {
  RecordView record = view(location);
  if (present != 0) {
    uint64_t kept_bytes = uint64_t{record.shared_count()} * limits::kChunkBytes;
    replace(partition, hash, present, location, kept_bytes);
  } else if (!partition.index.insert(hash, location)) {
    abort(location);
    partition.statistics->put_refusals.add();
    return {Status::NoSpace, WriteResult::Nothing, 0, 0};
  }
  close_reservation(partition, location);
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
  outcome->value_length = view(present).value_length();
  outcome->version = view(present).header().version;
  bool changed = *location != 0 && view(*location).header().version != outcome->version;
  if (outcome->value_length != at || changed) return Status::Mismatch;
  if (*location == 0) {
    Status status = open_append(partition, request, present, location);
    if (status != Status::Ok) return status;
    present = find_again(partition, request, outcome);
    if (present == 0) return Status::Mismatch;
    view(*location).header().version = outcome->version;
    share_whole_chunks(present, *location);
  }
  Status status = allocate_chunks_or_close(location);
  if (status != Status::Ok) return status;
  present = find_again(partition, request, outcome);
  if (present == 0) return Status::Mismatch;
  return copy_ragged_tail(partition, present, *location);
}

Status ObjectStore::open_append(Partition& partition, const WriteRequest& request, Location present,
                                Location* location) {
  // Not the next one to go while room is made for its own growth.
  if (partition.policy != nullptr) partition.policy->on_access(present);
  RecordView record = view(present);
  RecordShape shape = record.shape();
  if (shape.value_length + request.value_length < shape.value_length) return Status::TooLarge;
  uint64_t whole_chunks = record.has(kIsChunked) ? shape.value_length / limits::kChunkBytes : 0;
  shape.value_length += request.value_length;
  shape.has_expiry = true;  // It may be given one until the commit.
  // Copied, since making room may move the object or evict it.
  std::vector<std::byte> attributes(record.attributes().begin(), record.attributes().end());
  WriteRequest whole = request;
  whole.attributes = attributes;
  return open_record(partition, shape, whole, static_cast<uint32_t>(whole_chunks), location);
}

// The object of `outcome`, wherever it lies now; 0, and no length, if it was evicted to make room.
Location ObjectStore::find_again(Partition& partition, const WriteRequest& request,
                                 CommitOutcome* outcome) noexcept {
  Location present = find(partition, request.hash, request.key);
  if (present != 0 && view(present).header().version == outcome->version) return present;
  *outcome = {};
  return 0;
}

void ObjectStore::share_whole_chunks(Location from, Location to) noexcept {
  RecordView old_record = view(from);
  RecordView record = view(to);
  for (uint32_t index = 0; index < record.shared_count(); ++index) {
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
  record.set_expiry_ms(view(present).expiry_ms());
  record.header().was_appended = true;
  CommitOutcome outcome = publish(partition, location, hash, present, WriteResult::Appended);
  if (outcome.status != Status::Ok || !record.has(kIsChunked)) return outcome;
  for (uint32_t index = 0; index < at / limits::kChunkBytes; ++index) {
    memory_.set_owner(record.extent(index), location);
  }
  return outcome;
}

}  // namespace kvstrata
