#include "store/native/command.h"

#include <algorithm>

#include "store/native/partition.h"
#include "transport/native/checksum.h"

namespace kvstrata {

namespace {

// What a recycled task may keep of its buffers.
constexpr size_t kKeptBytes = 16 * 1024;
// A scan looks at no more records, and collects no more bytes of keys, in one go.
constexpr uint32_t kScanStep = 64;
constexpr uint32_t kScanVisitMax = 1024;
constexpr size_t kScanBytesMax = 256 * 1024;

void recycle(ByteBuffer* buffer) noexcept {
  if (buffer->capacity() > kKeptBytes) {
    buffer->release_memory();
  } else {
    buffer->clear();
  }
}

// Adds the piece of chunk `index` that lies within [begin, end) of the value.
bool add_piece(ObjectStore& store, Partition& partition, Location location, uint32_t index,
               uint64_t begin, uint64_t end, Task* task) {
  RecordView record = store.view(location);
  uint64_t chunk_begin = uint64_t{index} * limits::kChunkBytes;
  uint64_t from = std::max(begin, chunk_begin) - chunk_begin;
  uint64_t to = std::min(end - chunk_begin, record.chunk_length(index));
  bool whole = from == 0 && to == record.chunk_length(index);
  if (!whole && !store.chunk_is_sound(partition, location, index)) return false;
  Bytes part = Bytes(store.piece(location, index)).subspan(from, to - from);
  task->checksums.append_le(whole ? record.checksum(index) : chunk_checksum(part));
  if (record.has(kIsChunked)) {
    store.retain(record.extent(index));
    task->pieces.push_back({record.extent(index), from, to - from});
  } else {
    task->bytes.append(part);
  }
  return true;
}

void release_pieces(ObjectStore& store, Task* task) noexcept {
  for (const PinnedPiece& piece : task->pieces) store.release(piece.extent);
  task->pieces.clear();
}

void perform_read(ObjectStore& store, Partition& partition, Opcode opcode, Task* task) {
  Location location = store.read(partition, task->hash, task->entry.key);
  if (location == 0) {
    task->status = Status::NotFound;
    return;
  }
  RecordView record = store.view(location);
  task->value_length = record.value_length();
  task->version = record.header().version;
  uint64_t begin = 0;
  uint64_t end = task->value_length;
  if (opcode == Opcode::GetRange) {
    begin = std::min(task->entry.offset, task->value_length);
    end = begin + std::min(task->entry.length, task->value_length - begin);
  }
  task->entry.offset = begin;
  task->entry.length = end - begin;
  if (end - begin > task->entry.descriptor.length) {
    task->status = Status::TooSmall;
    return;
  }
  task->attributes.append(record.attributes());
  for (uint64_t at = begin; at < end;) {
    auto index = static_cast<uint32_t>(at / limits::kChunkBytes);
    if (!add_piece(store, partition, location, index, begin, end, task)) {
      release_pieces(store, task);
      task->status = Status::Corrupt;
      return;
    }
    at = (uint64_t{index} + 1) * limits::kChunkBytes;
  }
  partition.statistics->get_bytes.add(end - begin);
}

void perform_stat(ObjectStore& store, Partition& partition, Task* task) {
  Location location = store.find(partition, task->hash, task->entry.key);
  if (location == 0) {
    task->status = Status::NotFound;
    return;
  }
  RecordView record = store.view(location);
  task->place = static_cast<uint8_t>(ChunkPlace::Dram);
  task->chunk_count = record.chunk_count();
  task->value_length = record.value_length();
  task->version = record.header().version;
  task->attributes.append(record.attributes());
  if (record.expiry_ms() != RecordView::kNoExpiry) {
    task->ttl_left_ms = record.expiry_ms() - store.now_ms();
  }
}

void perform_scan(ObjectStore& store, Partition& partition, Task* task) {
  uint64_t cursor = task->entry.cursor;
  Bytes prefix = task->entry.key;
  uint32_t visited = 0;
  do {
    uint32_t step = std::min(kScanStep, task->entry.count_max - task->key_count);
    cursor = partition.index.scan(cursor, step, [&](Location location) {
      ++visited;
      RecordView record = store.view(location);
      Bytes key = record.key();
      bool matches = key.size() >= prefix.size() && equal(key.first(prefix.size()), prefix);
      if (!matches || record.expiry_ms() <= store.now_ms()) return;
      ++task->key_count;
      task->bytes.append_le(static_cast<uint16_t>(key.size()));
      task->bytes.append_le(record.value_length());
      task->bytes.append(key);
    });
  } while (cursor != 0 && task->key_count < task->entry.count_max && visited < kScanVisitMax &&
           task->bytes.size() < kScanBytesMax);
  task->cursor = cursor;
}

void perform_one(ObjectStore& store, Partition& partition, Opcode opcode, Task* task) {
  switch (opcode) {
    case Opcode::Get:
    case Opcode::GetRange:
      perform_read(store, partition, opcode, task);
      return;
    case Opcode::Exists:
    case Opcode::PrefixLength:
      if (!store.exists(partition, task->hash, task->entry.key)) task->status = Status::NotFound;
      return;
    case Opcode::Delete:
      if (!store.remove(partition, task->hash, task->entry.key)) task->status = Status::NotFound;
      return;
    case Opcode::Expire:
      task->status = store.expire(partition, task->hash, task->entry.key, task->entry.ttl_ms);
      return;
    case Opcode::Stat:
      perform_stat(store, partition, task);
      return;
    case Opcode::Scan:
      perform_scan(store, partition, task);
      return;
    default:
      task->status = Status::Unsupported;
  }
}

// All tasks of this shard: hashes and index lines of the whole batch are fetched ahead of their
// use.
void execute(ObjectStore& store, Partition& partition, uint32_t shard, Command* command) {
  uint32_t begin = command->window_begin;
  uint32_t end = command->window_end;
  auto each = [&](auto&& visit) {
    for (uint32_t index = begin; index < end; ++index) {
      Task& task = command->tasks[index];
      if (task.shard == shard && task.status == Status::Ok) visit(task);
    }
  };
  if (command->opcode != Opcode::Scan) {
    each([&](Task& task) {
      task.hash = store.hash(task.entry.key);
      store.prefetch_table(partition, task.hash);
    });
    if (end - begin > 1) {
      each([&](Task& task) { store.prefetch_record(partition, task.hash); });
    }
  }
  each([&](Task& task) { perform_one(store, partition, command->opcode, &task); });
}

WriteRequest write_request(const Task& task) noexcept {
  return {task.entry.key,          task.entry.attributes, task.hash,
          task.entry.value_length, task.entry.ttl_ms,     (task.entry.flags & kFlagIfAbsent) != 0};
}

Status reserve(ObjectStore& store, Partition& partition, Opcode opcode, Task* task) {
  task->hash = store.hash(task->entry.key);
  CommitOutcome outcome;
  Status status = opcode == Opcode::Append
                      ? store.reserve_append(partition, write_request(*task), task->entry.at,
                                             &task->location, &outcome)
                      : store.reserve(partition, write_request(*task), &task->location, &outcome);
  if (status == Status::Busy) return status;
  task->status = status;
  task->value_length = outcome.value_length;
  task->version = outcome.version;
  if (status == Status::Ok) return status;
  partition.statistics->put_refusals.add();
  if (task->location != 0) store.abort(task->location);
  task->location = 0;
  return status;
}

void commit(ObjectStore& store, Partition& partition, Opcode opcode, Task* task) {
  CommitOutcome outcome =
      opcode == Opcode::Append
          ? store.commit_append(partition, task->location, task->hash, task->entry.at)
          : store.commit(partition, task->location, task->hash,
                         (task->entry.flags & kFlagIfAbsent) != 0);
  task->location = 0;
  task->status = outcome.status;
  task->result = outcome.result;
  task->value_length = outcome.value_length;
  task->version = outcome.version;
  if (outcome.status == Status::Ok) {
    partition.statistics->put_bytes.add(task->entry.value_length);
  }
}

// The bytes were verified when they arrived; here they only change places.
Status write(ObjectStore& store, Partition& partition, Opcode opcode, Task* task) {
  Status status = reserve(store, partition, opcode, task);
  if (status != Status::Ok) return status;
  uint64_t base = opcode == Opcode::Append ? task->entry.at : 0;
  uint64_t copied = 0;
  for (uint32_t piece = 0; copied < task->bytes.size(); ++piece) {
    uint64_t at = base + copied;
    auto index = static_cast<uint32_t>(at / limits::kChunkBytes);
    MutableBytes target = store.piece(task->location, index).subspan(at % limits::kChunkBytes);
    uint64_t count = std::min<uint64_t>(target.size(), task->bytes.size() - copied);
    std::memcpy(target.data(), task->bytes.data() + copied, count);
    store.set_checksum(task->location, index, task->entry.checksums[piece]);
    copied += count;
  }
  commit(store, partition, opcode, task);
  return Status::Ok;
}

}  // namespace

void Task::reset() noexcept {
  hash = 0;
  shard = 0;
  status = Status::Ok;
  result = WriteResult::Nothing;
  place = 0;
  chunk_count = 0;
  value_length = 0;
  version = 0;
  ttl_left_ms = kTtlNever;
  cursor = 0;
  location = 0;
  key_count = 0;
  pieces.clear();
  recycle(&checksums);
  recycle(&attributes);
  recycle(&bytes);
}

Task& Command::add_task() {
  if (task_count == tasks.size()) tasks.emplace_back();
  Task& task = tasks[task_count++];
  task.reset();
  return task;
}

void Command::reset(bool keeps_tasks) noexcept {
  if (!keeps_tasks) tasks = std::vector<Task>();
  task_count = 0;
  session = nullptr;
  pending = 0;
  window_begin = 0;
  window_end = 0;
  receiving = 0;
  admin_call = 0;
  recycle(&body);
}

Status perform(ObjectStore& store, Partition* partition, uint32_t shard, const Work& work) {
  Command* command = work.command;
  if (partition == nullptr) {
    uint32_t begin = work.task == kAllTasks ? command->window_begin : work.task;
    uint32_t end = work.task == kAllTasks ? command->window_end : work.task + 1;
    for (uint32_t index = begin; index < end; ++index) {
      Task& task = command->tasks[index];
      if (task.shard != shard) continue;
      // The pool was dropped. Of a write that is aborted, its home has noted a status.
      if (work.phase != Phase::Abort) task.status = Status::Denied;
      if (task.location != 0) store.abort(task.location);
      task.location = 0;
    }
    return Status::Ok;
  }
  switch (work.phase) {
    case Phase::Execute:
      execute(store, *partition, shard, command);
      return Status::Ok;
    case Phase::Reserve:
      return reserve(store, *partition, command->opcode, &command->tasks[work.task]);
    case Phase::Write:
      return write(store, *partition, command->opcode, &command->tasks[work.task]);
    case Phase::Commit:
      commit(store, *partition, command->opcode, &command->tasks[work.task]);
      return Status::Ok;
    case Phase::Abort:
      store.abort(command->tasks[work.task].location);
      command->tasks[work.task].location = 0;
      return Status::Ok;
  }
  return Status::Internal;
}

void give_up(ObjectStore& store, const Work& work) noexcept {
  Task& task = work.command->tasks[work.task];
  if (task.location != 0) store.abort(task.location);
  task.location = 0;
  task.status = Status::Busy;
}

}  // namespace kvstrata
