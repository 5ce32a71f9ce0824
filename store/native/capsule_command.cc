// Commands of a connection of the capsule protocol: from a capsule to tasks, to the shards that own
// them, to a completion.
#include <algorithm>
#include <bit>

#include "store/native/capsule_protocol.h"
#include "store/native/node.h"
#include "store/native/retention_handle.h"
#include "store/native/scan_cursor.h"
#include "store/native/shard.h"
#include "store/native/slot.h"

namespace kvstrata {

namespace {

// Reads are answered in runs of entries, so that a batch of any size pins only so much at a time.
// What goes to regions is gone when it is copied, at the memory's pace, so that longer runs do.
constexpr uint32_t kReadWindow = 32;
constexpr uint32_t kReadWindowOfRegions = 128;
// A completion's body ends soon after this, well below the protocol's limit.
constexpr size_t kCompletionBytes = 512 * 1024;
constexpr uint32_t kScanCountMax = 4096;

constexpr uint32_t right_for(Opcode opcode) noexcept {
  switch (opcode) {
    case Opcode::Put:
    case Opcode::Append:
    case Opcode::Delete:
    case Opcode::Expire:
      return kRightWrite;
    case Opcode::Noop:
    case Opcode::Admin:
    case Opcode::AddRegion:
    case Opcode::RemoveRegion:
      return 0;
    default:
      return kRightRead;
  }
}

LatencyKind latency_kind(Opcode opcode) noexcept {
  switch (opcode) {
    case Opcode::Get:
    case Opcode::GetRange:
      return LatencyKind::Read;
    case Opcode::Put:
    case Opcode::Append:
      return LatencyKind::Write;
    case Opcode::Delete:
    case Opcode::Expire:
    case Opcode::Retain:
    case Opcode::Release:
    case Opcode::Extend:
      return LatencyKind::Change;
    case Opcode::Scan:
      return LatencyKind::Scan;
    case Opcode::Admin:
      return LatencyKind::Admin;
    default:
      return LatencyKind::Lookup;
  }
}

// Pieces of a value that begins at `at` of its object.
uint64_t piece_count(uint64_t at, uint64_t length) noexcept {
  if (length == 0) return 0;
  return (at % limits::kChunkBytes + length + limits::kChunkBytes - 1) / limits::kChunkBytes;
}

// `hashes`: who writes may leave it to the node to hash.
Status check_write(const Entry& entry, Opcode opcode, uint64_t value_bytes_max,
                   bool hashes) noexcept {
  uint64_t at = opcode == Opcode::Append ? entry.at : 0;
  if (entry.value_length > value_bytes_max || at > value_bytes_max) return Status::TooLarge;
  bool hashed = entry.checksums.size() == piece_count(at, entry.value_length) ||
                (hashes && entry.checksums.size() == 0);
  bool fits = hashed && entry.descriptor.length == entry.value_length &&
              entry.attributes.size() <= limits::kAttributeBytesMax;
  return fits ? Status::Ok : Status::Invalid;
}

// Attributes that ask for something this version does not do: skipped, unless they insist.
Status check_attributes(Bytes attributes, bool are_kept) noexcept {
  AttributeReader reader(attributes);
  Attribute attribute;
  while (reader.next(&attribute)) {
    bool known = are_kept && attribute.type >= 512 && attribute.type < 1024;
    if (attribute.required && !known) return Status::Unsupported;
  }
  return reader.malformed() ? Status::Invalid : Status::Ok;
}

uint32_t owner_of(const Entry& entry, Opcode opcode, uint32_t shard_count) noexcept {
  if (!opcode_takes_handles(opcode)) return slot_shard(key_slot(entry.key), shard_count);
  return RetentionHandle::from(load_le<uint64_t>(entry.key.data())).shard;
}

Status check_retention_ttl(uint64_t ttl_ms) noexcept {
  return ttl_ms != 0 && ttl_ms <= limits::kRetentionMsMax ? Status::Ok : Status::Invalid;
}

}  // namespace

Status CapsuleProtocol::check_entry(const Entry& entry, Opcode opcode) const {
  if (entry.key.size() > limits::kKeyBytesMax) return Status::Invalid;
  Status status = check_attributes(entry.attributes, opcode == Opcode::Put);
  if (status != Status::Ok) return status;
  if (opcode_writes(opcode))
    return check_write(entry, opcode, shard_->store().value_bytes_max(), regions_ != nullptr);
  if (opcode_takes_handles(opcode)) return check_handle(entry, opcode);
  if (opcode == Opcode::Retain) {
    bool may_be_hard = (rights_ & kRightAdmin) != 0;
    if ((entry.flags & kFlagHard) != 0 && !may_be_hard) return Status::Denied;
    return check_retention_ttl(entry.ttl_ms);
  }
  return Status::Ok;
}

// What is wrong with a handle is not told from one whose retention has ended.
Status CapsuleProtocol::check_handle(const Entry& entry, Opcode opcode) const {
  if (entry.key.size() != sizeof(uint64_t)) return Status::Invalid;
  auto handle = RetentionHandle::from(load_le<uint64_t>(entry.key.data()));
  if (handle.is_hard && (rights_ & kRightAdmin) == 0) return Status::Denied;
  if (handle.shard >= shard_->node().shard_count()) return Status::NotFound;
  return opcode == Opcode::Extend ? check_retention_ttl(entry.ttl_ms) : Status::Ok;
}

// What makes a whole command impossible, though its bytes are well formed.
Status CapsuleProtocol::refusal(const RequestHeader& header, Bytes attributes,
                                std::string* message) const {
  if (shard_->stopping()) {
    *message = "this node is stopping";
    return Status::Closing;
  }
  if (!opcode_known(header.opcode)) {
    *message = "opcode " + std::to_string(header.opcode) + " is not known to this node";
    return Status::Unsupported;
  }
  auto opcode = static_cast<Opcode>(header.opcode);
  if (opcode_is_of_regions(opcode) && regions_ == nullptr) {
    *message = "regions are for clients that share memory with this node";
    return Status::Unsupported;
  }
  if (check_attributes(attributes, false) != Status::Ok) {
    *message = "the command carries a required attribute that this node does not know";
    return Status::Unsupported;
  }
  if ((rights_ & right_for(opcode)) != right_for(opcode)) {
    *message = "the secret of this connection gives no right to " +
               std::string(right_for(opcode) == kRightWrite ? "write" : "read") + " in pool '" +
               pool_name_ + "'";
    return Status::Denied;
  }
  bool single = opcode == Opcode::Scan || opcode == Opcode::Admin;
  if (single && header.entry_count != 1) {
    *message = "this command takes one entry, not " + std::to_string(header.entry_count);
    return Status::Invalid;
  }
  if (opcode == Opcode::Noop && header.entry_count != 0) {
    *message = "this command takes no entries, not " + std::to_string(header.entry_count);
    return Status::Invalid;
  }
  return Status::Ok;
}

void CapsuleProtocol::start(const RequestHeader& header, Bytes body) {
  Bytes attributes = body.last(header.attribute_length);
  Bytes entries = body.first(body.size() - header.attribute_length);
  std::string message;
  Status status = refusal(header, attributes, &message);
  bool skips_data = status != Status::Ok && header.data_length != 0;
  if (status != Status::Ok) {
    complete_failed(header.opcode, header.command_id, status, message);
    if (skips_data) {
      value_.begin(0, header.data_length);
      state_ = State::Discard;
    }
    return;
  }
  Command* command = shard_->take_command();
  session_->begin_errand();
  command->session = session_;
  command->id = header.command_id;
  command->opcode = static_cast<Opcode>(header.opcode);
  command->pool = pool_;
  command->begin_ns = shard_->now_ns();
  uint64_t deadline_ms = header.deadline_ms == 0 ? limits::kDeadlineMsDefault : header.deadline_ms;
  command->deadline_ns = command->begin_ns + deadline_ms * 1'000'000;
  bool outlives_buffer = opcode_writes(command->opcode) || command->opcode == Opcode::Admin ||
                         shard_->node().shard_count() > 1 || header.entry_count > kReadWindow;
  if (outlives_buffer) {
    command->body.append(entries);
    entries = command->body.view();
  }
  if (!read_entries(command, header, entries)) {
    end(command);
    fail(header.opcode, header.command_id, "the body does not hold what its counts say");
    return;
  }
  shard_->statistics().commands.add();
  ++command_count_;
  if (opcode_writes(command->opcode)) {
    write_ = command;
    next_value();
  } else if (command->opcode == Opcode::Admin) {
    start_admin(command);
  } else if (opcode_is_of_regions(command->opcode)) {
    change_regions(command);
  } else {
    run_windows(command);
  }
}

bool CapsuleProtocol::read_entries(Command* command, const RequestHeader& header, Bytes body) {
  uint32_t shard_count = shard_->node().shard_count();
  uint64_t data_length = 0;
  EntryReader reader(command->opcode, header.entry_count, body);
  command->make_tasks(header.entry_count);
  Entry lean;
  for (Task& task : command->tasks) {
    Entry& entry = task.detail == nullptr ? lean : task.detail->entry;
    if (!reader.next(&entry)) return false;
    task.key = entry.key;
    task.status = check_entry(entry, command->opcode);
    if (task.status == Status::Ok) task.status = check_place(entry, command->opcode);
    if (shard_count > 1 && task.status == Status::Ok) {
      task.shard = owner_of(entry, command->opcode, shard_count);
    }
    if (!opcode_writes(command->opcode) || is_in_region(*command, task)) continue;
    if (data_length + entry.value_length < data_length) return false;
    data_length += entry.value_length;
  }
  if (reader.malformed() || data_length != header.data_length) return false;
  if (command->opcode != Opcode::Scan) return true;
  Task& scan = command->tasks[0];
  auto cursor = ScanCursor::from(scan.detail->entry.cursor);
  scan.shard = cursor.shard;
  scan.detail->entry.cursor = cursor.index_cursor;
  scan.detail->entry.count_max =
      std::clamp(scan.detail->entry.count_max, uint32_t{1}, kScanCountMax);
  if (scan.shard >= shard_count) scan.status = Status::Invalid;
  return true;
}

void CapsuleProtocol::run_windows(Command* command) {
  do {
    if (shard_->now_ns() > command->deadline_ns) {
      complete_failed(static_cast<uint8_t>(command->opcode), command->id, Status::Deadline,
                      "the deadline passed before the work was done");
      end(command);
      return;
    }
    uint32_t window = regions_ == nullptr ? kReadWindow : kReadWindowOfRegions;
    uint32_t step = opcode_reads(command->opcode) ? window : command->task_count();
    command->window_end = std::min(command->window_begin + step, command->task_count());
    uint64_t owners = 0;
    for (const Task& task : command->window()) {
      if (task.status == Status::Ok) owners |= uint64_t{1} << task.shard;
    }
    command->pending = static_cast<uint32_t>(std::popcount(owners));
    for (; owners != 0; owners &= owners - 1) {
      auto owner = static_cast<uint32_t>(std::countr_zero(owners));
      if (shard_->begin_work(owner, {command, kAllTasks, Phase::Execute})) --command->pending;
    }
    if (command->pending != 0) {
      await(command);
      return;
    }
  } while (finish_window(command));
}

// Others work on the window: the command's own memory and what is brought home count as output.
void CapsuleProtocol::await(Command* command) {
  uint64_t bytes = command->memory_bytes();
  if (opcode_reads(command->opcode)) {
    bytes += command->window().size() * limits::kRecordBytesInlineMax;
  } else if (command->opcode == Opcode::Scan) {
    bytes += kScanBytesMax;
  }
  session_->await(command, bytes);
}

// Answers the window. True if the next one is to be run now.
bool CapsuleProtocol::finish_window(Command* command) {
  bool copies = regions_ != nullptr && opcode_reads(command->opcode) && !session_->is_gone();
  return (!copies || copy_window(command)) && answer_window(command);
}

// Those of tasks whose pieces go nowhere any more.
void CapsuleProtocol::release_window(Command* command) {
  std::vector<OwnedExtent> released;
  for (Task& task : command->window()) {
    if (task.detail == nullptr) break;
    for (const PinnedPiece& piece : task.detail->pieces) {
      released.push_back({piece.extent, task.shard});
    }
    task.detail->pieces.clear();
  }
  shard_->release(&released);
}

bool CapsuleProtocol::answer_window(Command* command) {
  if (session_->is_gone()) {
    release_window(command);
    end(command);
    return false;
  }
  if (opcode_reads(command->opcode)) {
    encode_reads(command);
  } else {
    encode_outcomes(command);
  }
  if (command->window_end == command->task_count()) {
    end(command);
    return false;
  }
  command->window_begin = command->window_end;
  if (session_->has_room()) return true;
  blocked_reads_.push_back(command);
  session_->wait_for_room();
  return false;
}

void CapsuleProtocol::encode_reads(Command* command) {
  uint32_t index = command->window_begin;
  do {
    CapsuleWriter writer(output());
    writer.begin_completion(static_cast<uint8_t>(command->opcode), command->id,
                            static_cast<uint16_t>(index));
    uint32_t first = index;
    uint64_t data_length = 0;
    for (; index < command->window_end && writer.bytes_written() < kCompletionBytes; ++index) {
      const Task& task = command->tasks[index];
      bool streams = task.status == Status::Ok && !is_in_region(*command, task);
      if (streams) data_length += task.detail->entry.length;
      encode_outcome(*command, task, &writer);
    }
    bool more = index < command->task_count();
    writer.finish_completion(Status::Ok, data_length, credits_, more ? kFlagMore : 0);
    for (uint32_t sent = first; sent < index; ++sent) {
      const Task& task = command->tasks[sent];
      TaskDetail& detail = *task.detail;
      if (is_in_region(*command, task)) continue;
      output()->append(detail.bytes.view());
      for (const PinnedPiece& piece : detail.pieces) {
        const std::byte* data = shard_->store().at(piece.extent.offset) + piece.skip_bytes;
        session_->output().add_piece(data, piece, task.shard);
      }
      detail.pieces.clear();
    }
  } while (index < command->window_end);
  release_window(command);  // What is left has been copied.
}

void CapsuleProtocol::encode_outcome(const Command& command, const Task& task,
                                     CapsuleWriter* writer) {
  if (task.detail == nullptr) {
    writer->add_status(task.status);
    return;
  }
  const TaskDetail& detail = *task.detail;
  switch (command.opcode) {
    case Opcode::Get:
    case Opcode::GetRange: {
      bool ok = task.status == Status::Ok;
      auto count = static_cast<uint32_t>(detail.checksums.size() / sizeof(uint64_t));
      writer->add_outcome(ReadOutcome{task.status, detail.value_length, detail.version,
                                      detail.entry.offset, ok ? detail.entry.length : 0,
                                      ChecksumList(detail.checksums.data(), ok ? count : 0),
                                      detail.attributes.view()});
      return;
    }
    case Opcode::Put:
    case Opcode::Append:
      writer->add_outcome(
          WriteOutcome{task.status, detail.result, detail.value_length, detail.version});
      return;
    case Opcode::Retain:
      writer->add_outcome(RetainOutcome{task.status, detail.handle});
      return;
    case Opcode::Stat:
      writer->add_outcome(StatOutcome{task.status, detail.place, detail.chunk_count,
                                      detail.value_length, detail.version, detail.ttl_left_ms,
                                      detail.attributes.view()});
      return;
    case Opcode::Scan: {
      ScanCursor cursor{task.shard, detail.cursor};
      writer->add_scan(cursor.next(shard_->node().shard_count()), detail.key_count);
      output()->append(detail.bytes.view());
      return;
    }
    default:
      writer->add_status(task.status);
  }
}

void CapsuleProtocol::encode_outcomes(Command* command) {
  if (command->opcode == Opcode::Scan && command->tasks[0].status != Status::Ok) {
    Status status = command->tasks[0].status;
    complete_failed(static_cast<uint8_t>(command->opcode), command->id, status,
                    status == Status::Denied ? "the pool was dropped"
                                             : "this cursor does not come from this node");
    return;
  }
  if (command->opcode == Opcode::PrefixLength) {
    uint32_t length = 0;
    while (length < command->task_count() && command->tasks[length].status == Status::Ok) ++length;
    CapsuleWriter writer(output());
    writer.begin_completion(static_cast<uint8_t>(command->opcode), command->id, 0);
    writer.add_u32(length);
    writer.finish_completion(Status::Ok, 0, credits_, 0);
    return;
  }
  uint32_t index = 0;
  do {
    CapsuleWriter writer(output());
    writer.begin_completion(static_cast<uint8_t>(command->opcode), command->id,
                            static_cast<uint16_t>(index));
    for (; index < command->task_count() && writer.bytes_written() < kCompletionBytes; ++index) {
      encode_outcome(*command, command->tasks[index], &writer);
    }
    writer.finish_completion(Status::Ok, 0, credits_,
                             index < command->task_count() ? kFlagMore : 0);
  } while (index < command->task_count());
}

void CapsuleProtocol::complete_failed(uint8_t opcode, uint32_t command_id, Status status,
                                      std::string_view message) {
  CapsuleWriter writer(output());
  writer.begin_completion(opcode, command_id, 0);
  writer.set_message(message);
  writer.finish_completion(status, 0, credits_, 0);
}

void CapsuleProtocol::start_admin(Command* command) {
  const Entry& entry = command->tasks[0].detail->entry;
  AdminCall call;
  call.name = as_text(entry.key);
  call.payload.assign(entry.payload.begin(), entry.payload.end());
  call.pool = pool_name_;
  call.rights = rights_;
  call.peer = session_->peer().name;
  if (shard_->start_admin(command, std::move(call))) return;
  complete_failed(static_cast<uint8_t>(command->opcode), command->id, Status::Busy,
                  "too many administrative commands wait; try again");
  end(command);
}

void CapsuleProtocol::on_admin_done(Errand* errand, Status status, Bytes payload) {
  auto* command = static_cast<Command*>(errand);
  if (!session_->is_gone()) {
    if (payload.size() > kCompletionBytes) {
      complete_failed(static_cast<uint8_t>(command->opcode), command->id, Status::TooLarge,
                      "the command's answer is larger than a completion may be");
    } else {
      CapsuleWriter writer(output());
      writer.begin_completion(static_cast<uint8_t>(command->opcode), command->id, 0);
      writer.add_admin(status, payload);
      writer.finish_completion(Status::Ok, 0, credits_, 0);
    }
  }
  end(command);
}

void CapsuleProtocol::on_work_done(const Work& work) {
  auto* command = static_cast<Command*>(work.errand);
  if (work.phase == Phase::Copy) {
    copy_done(work);
  } else if (opcode_writes(command->opcode)) {
    write_work_done(work);
  } else if (command->pending == 0) {
    session_->await_no_more(command);
    if (finish_window(command)) run_windows(command);
  }
}

void CapsuleProtocol::end(Command* command) {
  LatencyKind kind = latency_kind(command->opcode);
  shard_->statistics().latency[static_cast<size_t>(kind)].add(TurnWatch::monotonic_ns() -
                                                              command->begin_ns);
  shard_->return_command(command);
  session_->end_errand();
}

}  // namespace kvstrata
