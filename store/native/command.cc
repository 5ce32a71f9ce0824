#include "store/native/command.h"

#include <algorithm>
#include <array>
#include <utility>

#include "store/native/partition.h"
#include "store/native/retention_handle.h"
#include "transport/native/checksum.h"

namespace kvstrata {

namespace {

// What a recycled task may keep of its buffers.
constexpr size_t kKeptBytes = 16 * 1024;
// A scan looks at no more records in one go.
constexpr uint32_t kScanStep = 64;
constexpr uint32_t kScanVisitMax = 1024;

constexpr bool opcode_has_detail(Opcode opcode) noexcept {
  return opcode != Opcode::Exists && opcode != Opcode::PrefixLength && opcode != Opcode::Delete &&
         opcode != Opcode::Release;
}

void recycle(ByteBuffer* buffer) noexcept {
  if (buffer->capacity() > kKeptBytes) {
    buffer->release_memory();
  } else {
    buffer->clear();
  }
}

// Adds the piece of chunk `index` that lies within [begin, end) of the value.
bool add_piece(ObjectStore& store, Partition& partition, Location location, uint32_t index,
               uint64_t begin, uint64_t end, TaskDetail* detail) {
  RecordView record = store.view(location);
  uint64_t chunk_begin = uint64_t{index} * limits::kChunkBytes;
  uint64_t from = std::max(begin, chunk_begin) - chunk_begin;
  uint64_t to = std::min(end - chunk_begin, record.chunk_length(index));
  bool whole = from == 0 && to == record.chunk_length(index);
  if (!whole && !store.chunk_is_sound(partition, location, index)) return false;
  Bytes part = Bytes(store.piece(location, index)).subspan(from, to - from);
  detail->checksums.append_le(whole ? record.checksum(index) : chunk_checksum(part));
  if (record.has(kIsChunked)) {
    store.retain(record.extent(index));
    detail->pieces.push_back({record.extent(index), from, to - from});
  } else {
    detail->bytes.append(part);
  }
  return true;
}

void release_pieces(ObjectStore& store, TaskDetail* detail) noexcept {
  for (const PinnedPiece& piece : detail->pieces) store.release(piece.extent);
  detail->pieces.clear();
}

void perform_read(ObjectStore& store, Partition& partition, Opcode opcode, Task* task) {
  TaskDetail& detail = *task->detail;
  Location location = store.read(partition, task->hash, task->key);
  if (location == 0) {
    task->status = Status::NotFound;
    return;
  }
  RecordView record = store.view(location);
  detail.value_length = record.value_length();
  detail.version = record.header().version;
  uint64_t begin = 0;
  uint64_t end = detail.value_length;
  if (opcode == Opcode::GetRange) {
    begin = std::min(detail.entry.offset, detail.value_length);
    end = begin + std::min(detail.entry.length, detail.value_length - begin);
  }
  detail.entry.offset = begin;
  detail.entry.length = end - begin;
  if (end - begin > detail.entry.descriptor.length) {
    task->status = Status::TooSmall;
    return;
  }
  detail.attributes.append(record.attributes());
  for (uint64_t at = begin; at < end;) {
    auto index = static_cast<uint32_t>(at / limits::kChunkBytes);
    if (!add_piece(store, partition, location, index, begin, end, &detail)) {
      release_pieces(store, &detail);
      task->status = Status::Corrupt;
      return;
    }
    at = (uint64_t{index} + 1) * limits::kChunkBytes;
  }
  partition.statistics->get_bytes.add(end - begin);
}

void perform_stat(ObjectStore& store, Partition& partition, Task* task) {
  TaskDetail& detail = *task->detail;
  Location location = store.find(partition, task->hash, task->key);
  if (location == 0) {
    task->status = Status::NotFound;
    return;
  }
  RecordView record = store.view(location);
  detail.place = static_cast<uint8_t>(ChunkPlace::Dram);
  detail.chunk_count = record.chunk_count();
  detail.value_length = record.value_length();
  detail.version = record.header().version;
  detail.attributes.append(record.attributes());
  if (record.expiry_ms() != RecordView::kNoExpiry) {
    detail.ttl_left_ms = record.expiry_ms() - store.now_ms();
  }
}

void perform_scan(ObjectStore& store, Partition& partition, Task* task) {
  TaskDetail& detail = *task->detail;
  uint64_t cursor = detail.entry.cursor;
  Bytes prefix = task->key;
  uint32_t visited = 0;
  do {
    uint32_t step = std::min(kScanStep, detail.entry.count_max - detail.key_count);
    cursor = partition.index.scan(cursor, step, [&](Location location) {
      ++visited;
      RecordView record = store.view(location);
      Bytes key = record.key();
      bool matches = key.size() >= prefix.size() && equal(key.first(prefix.size()), prefix);
      if (!matches || store.is_gone(partition, location)) return;
      ++detail.key_count;
      detail.bytes.append_le(static_cast<uint16_t>(key.size()));
      detail.bytes.append_le(record.value_length());
      detail.bytes.append(key);
    });
  } while (cursor != 0 && detail.key_count < detail.entry.count_max && visited < kScanVisitMax &&
           detail.bytes.size() < kScanBytesMax);
  detail.cursor = cursor;
}

// `*number` is of the retention that the command's key before this one joined on this shard, or 0.
void perform_retain(ObjectStore& store, Partition& partition, Task* task, uint64_t* number) {
  TaskDetail& detail = *task->detail;
  bool is_hard = (detail.entry.flags & kFlagHard) != 0;
  task->status =
      store.retain_object(partition, task->hash, task->key, detail.entry.ttl_ms, is_hard, number);
  if (task->status != Status::Ok) return;
  detail.handle = RetentionHandle{task->shard, is_hard, *number}.word();
}

// Release, Extend: the key is a handle, whose length was checked.
void perform_on_handle(ObjectStore& store, Partition& partition, Opcode opcode, Task* task) {
  auto handle = RetentionHandle::from(load_le<uint64_t>(task->key.data()));
  task->status = opcode == Opcode::Release
                     ? store.release_retention(partition, handle.number, handle.is_hard)
                     : store.extend_retention(partition, handle.number, handle.is_hard,
                                              task->detail->entry.ttl_ms);
}

void perform_one(ObjectStore& store, Partition& partition, Opcode opcode, Task* task,
                 uint64_t* retention) {
  switch (opcode) {
    case Opcode::Get:
    case Opcode::GetRange:
      perform_read(store, partition, opcode, task);
      return;
    case Opcode::Exists:
    case Opcode::PrefixLength:
      if (!store.exists(partition, task->hash, task->key)) task->status = Status::NotFound;
      return;
    case Opcode::Delete:
      if (!store.remove(partition, task->hash, task->key)) task->status = Status::NotFound;
      return;
    case Opcode::Expire:
      task->status = store.expire(partition, task->hash, task->key, task->detail->entry.ttl_ms);
      return;
    case Opcode::Stat:
      perform_stat(store, partition, task);
      return;
    case Opcode::Scan:
      perform_scan(store, partition, task);
      return;
    case Opcode::Retain:
      perform_retain(store, partition, task, retention);
      return;
    case Opcode::Release:
    case Opcode::Extend:
      perform_on_handle(store, partition, opcode, task);
      return;
    default:
      task->status = Status::Unsupported;
  }
}

// The window's tasks of this shard. A batch goes in blocks: what looking up a block's keys will
// touch is fetched ahead of its use.
void execute(ObjectStore& store, Partition& partition, uint32_t shard, Command* command) {
  std::array<Task*, ObjectStore::kPrefetchCount> block;
  std::array<uint64_t, ObjectStore::kPrefetchCount> hashes;
  size_t count = 0;
  uint64_t retention = 0;
  auto perform_block = [&] {
    if (count > 1) store.prefetch(partition, std::span(hashes).first(count));
    for (Task* task : std::span(block).first(count)) {
      perform_one(store, partition, command->opcode, task, &retention);
    }
    count = 0;
  };
  for (Task& task : command->window()) {
    if (task.shard != shard || task.status != Status::Ok) continue;
    task.hash = store.hash(task.key);
    hashes[count] = task.hash;
    block[count++] = &task;
    if (count == block.size()) perform_block();
  }
  perform_block();
}

WriteRequest write_request(const Task& task) noexcept {
  const Entry& entry = task.detail->entry;
  return {task.key,           entry.attributes, task.hash,
          entry.value_length, entry.ttl_ms,     (entry.flags & kFlagIfAbsent) != 0};
}

// Lets go of the open record of a write, if there is one.
void abort_write(ObjectStore& store, const Task& task) noexcept {
  if (task.detail == nullptr || task.detail->location == 0) return;
  store.abort(std::exchange(task.detail->location, 0));
}

Status reserve(ObjectStore& store, Partition& partition, Opcode opcode, Task* task) {
  TaskDetail& detail = *task->detail;
  task->hash = store.hash(task->key);
  CommitOutcome outcome;
  Status status = opcode == Opcode::Append
                      ? store.reserve_append(partition, write_request(*task), detail.entry.at,
                                             &detail.location, &outcome)
                      : store.reserve(partition, write_request(*task), &detail.location, &outcome);
  if (status == Status::Busy) return status;
  task->status = status;
  detail.value_length = outcome.value_length;
  detail.version = outcome.version;
  if (status == Status::Ok) return status;
  partition.statistics->put_refusals.add();
  abort_write(store, *task);
  return status;
}

void commit(ObjectStore& store, Partition& partition, Opcode opcode, Task* task) {
  TaskDetail& detail = *task->detail;
  CommitOutcome outcome =
      opcode == Opcode::Append
          ? store.commit_append(partition, detail.location, task->hash, detail.entry.at)
          : store.commit(partition, detail.location, task->hash,
                         (detail.entry.flags & kFlagIfAbsent) != 0);
  detail.location = 0;
  task->status = outcome.status;
  detail.result = outcome.result;
  detail.value_length = outcome.value_length;
  detail.version = outcome.version;
  if (outcome.status == Status::Ok) {
    partition.statistics->put_bytes.add(detail.entry.value_length);
  }
}

// The bytes were verified when they arrived; here they only change places.
Status write(ObjectStore& store, Partition& partition, Opcode opcode, Task* task) {
  TaskDetail& detail = *task->detail;
  Status status = reserve(store, partition, opcode, task);
  if (status != Status::Ok) return status;
  uint64_t base = opcode == Opcode::Append ? detail.entry.at : 0;
  uint64_t copied = 0;
  for (uint32_t piece = 0; copied < detail.bytes.size(); ++piece) {
    uint64_t at = base + copied;
    auto index = static_cast<uint32_t>(at / limits::kChunkBytes);
    MutableBytes target = store.piece(detail.location, index).subspan(at % limits::kChunkBytes);
    uint64_t count = std::min<uint64_t>(target.size(), detail.bytes.size() - copied);
    std::memcpy(target.data(), detail.bytes.data() + copied, count);
    store.set_checksum(detail.location, index, detail.entry.checksums[piece]);
    copied += count;
  }
  commit(store, partition, opcode, task);
  return Status::Ok;
}

}  // namespace

void TaskDetail::reset() noexcept {
  result = WriteResult::Nothing;
  place = 0;
  chunk_count = 0;
  value_length = 0;
  version = 0;
  ttl_left_ms = kTtlNever;
  cursor = 0;
  location = 0;
  handle = 0;
  key_count = 0;
  pieces.clear();
  recycle(&checksums);
  recycle(&attributes);
  recycle(&bytes);
}

void Command::make_tasks(uint32_t count) {
  tasks.assign(count, Task{});
  if (!opcode_has_detail(opcode)) return;
  if (details_.size() < count) details_.resize(count);
  for (uint32_t index = 0; index < count; ++index) {
    details_[index].reset();
    tasks[index].detail = &details_[index];
  }
}

void Command::reset(bool keeps_memory) noexcept {
  tasks.clear();
  if (!keeps_memory) {
    tasks = std::vector<Task>();
    details_ = std::vector<TaskDetail>();
  }
  session = nullptr;
  pending = 0;
  awaited_bytes = 0;
  window_begin = 0;
  window_end = 0;
  receiving = 0;
  admin_call = 0;
  recycle(&body);
}

Status Command::perform(ObjectStore& store, Partition* partition, uint32_t shard,
                        const Work& work) {
  if (partition == nullptr) {
    uint32_t begin = work.part == kAllTasks ? window_begin : work.part;
    uint32_t end = work.part == kAllTasks ? window_end : work.part + 1;
    for (uint32_t index = begin; index < end; ++index) {
      Task& task = tasks[index];
      if (task.shard != shard) continue;
      // The pool was dropped. Of a write that is aborted, its home has noted a status.
      if (work.phase != Phase::Abort) task.status = Status::Denied;
      abort_write(store, task);
    }
    return Status::Ok;
  }
  switch (work.phase) {
    case Phase::Execute:
      execute(store, *partition, shard, this);
      return Status::Ok;
    case Phase::Reserve:
      return reserve(store, *partition, opcode, &tasks[work.part]);
    case Phase::Write:
      return write(store, *partition, opcode, &tasks[work.part]);
    case Phase::Commit:
      commit(store, *partition, opcode, &tasks[work.part]);
      return Status::Ok;
    case Phase::Abort:
      abort_write(store, tasks[work.part]);
      return Status::Ok;
    case Phase::Copy:
      break;
  }
  return Status::Internal;
}

void Command::give_up(ObjectStore& store, const Work& work) noexcept {
  Task& task = tasks[work.part];
  abort_write(store, task);
  task.status = Status::Busy;
}

}  // namespace kvstrata
