// Commands about keys: whether they are there, which there are, what they take.
#include <algorithm>
#include <array>
#include <limits>
#include <string>

#include "store/native/resp_expiry.h"
#include "store/native/resp_value.h"
#include "store/native/slot.h"
#include "transport/native/decimal.h"
#include "transport/native/resp_glob.h"

namespace kvstrata {

namespace {

constexpr uint32_t kScanCountDefault = 10;
constexpr uint32_t kScanCountMax = 4096;
// Records that one step of a walk looks at: some 100 us of cold memory.
constexpr uint32_t kWalkStep = 1024;
constexpr uint32_t kVisitStep = 64;
constexpr uint32_t kRandomTries = 32;
constexpr uint64_t kIndexBytes = 10;  // Of an entry, on average.
// As Valkey tells short strings from long ones, by the bytes of key and value.
constexpr uint64_t kShortKeyBytesMax = 31;
constexpr uint64_t kEmbeddedBytesMax = 113;
constexpr uint64_t kEmbeddedBytesMaxOfLongKeys = 111;
constexpr uint64_t kIntegerBytesMax = 20;
constexpr std::array<std::string_view, 6> kTypes = {"STRING", "LIST", "SET",
                                                    "ZSET",   "HASH", "STREAM"};

void count_keys(RespExecution& execution) {
  int64_t count = 0;
  RespCommandId id = execution.command->id;
  for (size_t index = 1; index < execution.arguments.size(); ++index) {
    Bytes key = execution.arguments[index];
    bool counts = false;
    if (id == RespCommandId::Exists) {
      counts = execution.store.exists(execution.partition, execution.store.hash(key), key);
    } else if (id == RespCommandId::Touch) {
      counts = look_up(execution, key) != 0;
    } else {
      counts = remove_key(execution, key);
    }
    if (counts) ++count;
  }
  execution.writer().integer(count);
}

Location find(RespExecution& execution, Bytes key) noexcept {
  return execution.store.find(execution.partition, execution.store.hash(key), key);
}

void tell_memory(RespExecution& execution) {
  for (size_t next = 3; next < execution.arguments.size(); next += 2) {
    int64_t samples = 0;
    bool has_number = next + 1 < execution.arguments.size();
    if (!has_number || !is_word(execution.text(next), "SAMPLES")) {
      execution.writer().error(resp_error::kSyntax);
      return;
    }
    if (!parse_decimal(execution.text(next + 1), &samples)) {
      execution.writer().error(resp_error::kNotInteger);
      return;
    }
    if (samples < 0) {
      execution.writer().error(resp_error::kSyntax);
      return;
    }
  }
  Location location = find(execution, execution.arguments[2]);
  if (location == 0) {
    execution.writer().null();
  } else {
    uint64_t bytes = execution.store.memory_of(location) + kIndexBytes;
    execution.writer().integer(static_cast<int64_t>(bytes));
  }
}

std::string_view encoding_of(const ObjectStore& store, Location location) noexcept {
  RecordView record = store.view(location);
  uint64_t length = record.value_length();
  int64_t number = 0;
  if (record.header().was_appended) return "raw";
  if (length != 0 && length <= kIntegerBytesMax &&
      parse_decimal(as_text(store.piece(location, 0)), &number)) {
    return "int";
  }
  uint64_t key_length = record.key().size();
  uint64_t bytes_max =
      key_length <= kShortKeyBytesMax ? kEmbeddedBytesMax : kEmbeddedBytesMaxOfLongKeys;
  return key_length + length <= bytes_max ? "embstr" : "raw";
}

void describe(RespExecution& execution) {
  Partition& partition = execution.partition;
  RespWriter writer = execution.writer();
  Location location = find(execution, execution.arguments[2]);
  if (location == 0) {
    writer.null();
    return;
  }
  bool counts_uses = partition.settings.eviction == EvictionKind::S3Fifo;
  switch (execution.command->id) {
    case RespCommandId::ObjectEncoding:
      writer.bulk_string(as_bytes(encoding_of(execution.store, location)));
      return;
    case RespCommandId::ObjectRefcount:
      writer.integer(1);
      return;
    case RespCommandId::ObjectFreq:
      if (counts_uses) {
        writer.integer(partition.state(location).frequency);
      } else {
        writer.error(
            "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please "
            "note that when switching between policies at runtime LRU and LFU data will take some "
            "time to adjust.");
      }
      return;
    default:
      if (counts_uses) {
        writer.error(
            "ERR An LFU maxmemory policy is selected, idle time not tracked. Please note that when "
            "switching between policies at runtime LRU and LFU data will take some time to "
            "adjust.");
      } else {
        writer.integer(static_cast<int64_t>(partition.idle_ms(location) / 1000));
      }
  }
}

// ---- what looks at many keys ----

struct ScanOptions {
  Bytes pattern;
  bool has_pattern = false;
  bool wants_strings = true;  // There are no others.
  uint32_t count = kScanCountDefault;
};

// False if an error was written.
bool read_scan_options(RespExecution& execution, ScanOptions* options) {
  size_t size = execution.arguments.size();
  for (size_t next = 2; next < size; next += 2) {
    std::string_view word = execution.text(next);
    if (next + 1 == size) {
      execution.writer().error(resp_error::kSyntax);
      return false;
    }
    if (is_word(word, "MATCH")) {
      options->pattern = execution.arguments[next + 1];
      options->has_pattern = as_text(options->pattern) != "*";
    } else if (is_word(word, "COUNT")) {
      int64_t count = 0;
      if (!parse_decimal(execution.text(next + 1), &count)) {
        execution.writer().error(resp_error::kNotInteger);
        return false;
      }
      if (count < 1) {
        execution.writer().error(resp_error::kSyntax);
        return false;
      }
      options->count = static_cast<uint32_t>(std::min<int64_t>(count, kScanCountMax));
    } else if (is_word(word, "TYPE")) {
      std::string_view type = execution.text(next + 1);
      bool is_known =
          std::ranges::any_of(kTypes, [&](std::string_view each) { return is_word(type, each); });
      if (!is_known) {
        execution.writer().error("ERR unknown type name '" + std::string(quotable(type)) + "'");
        return false;
      }
      options->wants_strings = is_word(type, "STRING");
    } else {
      execution.writer().error(resp_error::kSyntax);
      return false;
    }
  }
  return true;
}

// Visits some `count` live records from *cursor on, at most kWalkStep.
template <typename Visit>
void walk(RespExecution& execution, uint64_t* cursor, uint32_t count, Visit visit) {
  ObjectStore& store = execution.store;
  uint32_t visited = 0;
  do {
    uint32_t step = std::min(kVisitStep, count - std::min(visited, count - 1));
    *cursor = execution.partition.index.scan(*cursor, step, [&](Location location) {
      ++visited;
      if (!store.is_gone(execution.partition, location)) visit(location);
    });
  } while (*cursor != 0 && visited < count);
}

void scan(RespExecution& execution) {
  ScanOptions options;
  if (!read_scan_options(execution, &options)) return;
  ByteBuffer keys;
  RespWriter key_writer(&keys, execution.version);
  uint64_t key_count = 0;
  walk(execution, execution.cursor, std::min(options.count, kWalkStep), [&](Location location) {
    Bytes key = execution.store.view(location).key();
    if (!options.wants_strings || (options.has_pattern && !glob_matches(options.pattern, key))) {
      return;
    }
    ++key_count;
    key_writer.bulk_string(key);
  });
  *execution.count = key_count;
  execution.reply->bytes()->append(keys.view());
}

void list_keys(RespExecution& execution) {
  Bytes pattern = execution.arguments[1];
  bool takes_all = as_text(pattern) == "*";
  walk(execution, execution.cursor, kWalkStep, [&](Location location) {
    Bytes key = execution.store.view(location).key();
    if (!takes_all && !glob_matches(pattern, key)) return;
    ++*execution.count;
    execution.writer().bulk_string(key);
  });
}

// CLUSTER COUNTKEYSINSLOT and GETKEYSINSLOT, whose arguments were looked at before.
void list_slot(RespExecution& execution) {
  int64_t slot = 0;
  int64_t count_max = std::numeric_limits<int64_t>::max();
  bool lists = execution.command->id == RespCommandId::ClusterGetkeysinslot;
  parse_decimal(execution.text(2), &slot);
  if (lists) parse_decimal(execution.text(3), &count_max);
  walk(execution, execution.cursor, kWalkStep, [&](Location location) {
    Bytes key = execution.store.view(location).key();
    if (*execution.count >= static_cast<uint64_t>(count_max) || key_slot(key) != slot) return;
    ++*execution.count;
    if (lists) execution.writer().bulk_string(key);
  });
  if (!lists && *execution.cursor == 0) {
    execution.writer().integer(static_cast<int64_t>(*execution.count));
  }
}

void pick_one(RespExecution& execution) {
  for (uint32_t tries = 0; tries < kRandomTries; ++tries) {
    uint64_t location = 0;
    if (execution.partition.sample(1, &location) == 0) break;
    Bytes key = execution.store.view(location).key();
    if (execution.store.is_gone(execution.partition, location)) {
      find(execution, key);  // Which removes it: there may be few others.
      continue;
    }
    execution.writer().bulk_string(key);
    return;
  }
  execution.writer().null();
}

}  // namespace

Status execute_keyspace(RespExecution& execution) {
  RespWriter writer = execution.writer();
  switch (execution.command->id) {
    case RespCommandId::Type:
      writer.simple_string(find(execution, execution.arguments[1]) == 0 ? "none" : "string");
      break;
    case RespCommandId::Scan:
      scan(execution);
      break;
    case RespCommandId::Keys:
      list_keys(execution);
      break;
    case RespCommandId::ClusterCountkeysinslot:
    case RespCommandId::ClusterGetkeysinslot:
      list_slot(execution);
      break;
    case RespCommandId::Randomkey:
      pick_one(execution);
      break;
    case RespCommandId::Dbsize:
      writer.integer(static_cast<int64_t>(execution.store.object_count(execution.partition)));
      break;
    case RespCommandId::Flushdb:
    case RespCommandId::Flushall:
      execution.store.flush(execution.partition);
      writer.ok();
      break;
    case RespCommandId::MemoryUsage:
      tell_memory(execution);
      break;
    case RespCommandId::ObjectEncoding:
    case RespCommandId::ObjectFreq:
    case RespCommandId::ObjectIdletime:
    case RespCommandId::ObjectRefcount:
      describe(execution);
      break;
    default:
      count_keys(execution);
  }
  return Status::Ok;
}

}  // namespace kvstrata
