#include "store/native/resp_expiry.h"

#include <algorithm>
#include <string>

#include "store/native/resp_value.h"
#include "transport/native/decimal.h"

namespace kvstrata {

namespace {

// EXPIRE and its kin: which present lives may be changed.
struct ExpireConditions {
  bool only_without = false;  // NX
  bool only_with = false;     // XX
  bool only_later = false;    // GT
  bool only_sooner = false;   // LT

  bool allow(uint64_t present_ms, int64_t at_ms) const noexcept {
    bool lives_forever = present_ms == RecordView::kNoExpiry;
    if (only_without && !lives_forever) return false;
    if (only_with && lives_forever) return false;
    auto present = static_cast<int64_t>(present_ms);
    if (only_later && (lives_forever || at_ms <= present)) return false;
    return !(only_sooner && !lives_forever && at_ms >= present);
  }
};

// False if an error was written.
bool read_conditions(RespExecution& execution, ExpireConditions* conditions) {
  for (size_t index = 3; index < execution.arguments.size(); ++index) {
    std::string_view word = execution.text(index);
    if (is_word(word, "NX")) {
      conditions->only_without = true;
    } else if (is_word(word, "XX")) {
      conditions->only_with = true;
    } else if (is_word(word, "GT")) {
      conditions->only_later = true;
    } else if (is_word(word, "LT")) {
      conditions->only_sooner = true;
    } else {
      execution.writer().error("ERR Unsupported option " + std::string(quotable(word)));
      return false;
    }
  }
  bool compares = conditions->only_later || conditions->only_sooner;
  if (conditions->only_without && (conditions->only_with || compares)) {
    execution.writer().error("ERR NX and XX, GT or LT options at the same time are not compatible");
    return false;
  }
  if (conditions->only_later && conditions->only_sooner) {
    execution.writer().error("ERR GT and LT options at the same time are not compatible");
    return false;
  }
  return true;
}

std::string invalid_time(const RespExecution& execution) {
  return "ERR invalid expire time in '" + std::string(execution.command->name) + "' command";
}

Status expire(RespExecution& execution, TimeUnit unit, bool is_absolute) {
  ObjectStore& store = execution.store;
  ExpireConditions conditions;
  if (!read_conditions(execution, &conditions)) return Status::Ok;
  int64_t number = 0;
  if (!parse_decimal(execution.text(2), &number)) {
    execution.writer().error(resp_error::kNotInteger);
    return Status::Ok;
  }
  int64_t at_ms = 0;
  if (!to_unix_ms(number, unit, is_absolute ? 0 : store.now_ms(), &at_ms)) {
    execution.writer().error(invalid_time(execution));
    return Status::Ok;
  }
  Bytes key = execution.arguments[1];
  uint64_t hash = store.hash(key);
  Location location = store.find(execution.partition, hash, key);
  bool changes = location != 0 && conditions.allow(store.view(location).expiry_ms(), at_ms);
  if (changes && at_ms <= static_cast<int64_t>(store.now_ms())) {
    remove_key(execution, key);
  } else if (changes) {
    uint64_t ttl_ms = static_cast<uint64_t>(at_ms) - store.now_ms();
    Status status = store.expire(execution.partition, hash, key, ttl_ms);
    if (status == Status::Busy && execution.may_wait) return status;
    if (status != Status::Ok && status != Status::NotFound) {
      reply_with_refusal(execution, Status::NoSpace, 0);
      return Status::Ok;
    }
    changes = status == Status::Ok;
  }
  execution.writer().integer(changes ? 1 : 0);
  return Status::Ok;
}

Status persist(RespExecution& execution) {
  ObjectStore& store = execution.store;
  Bytes key = execution.arguments[1];
  uint64_t hash = store.hash(key);
  Location location = store.find(execution.partition, hash, key);
  bool ends = location != 0 && store.view(location).expiry_ms() != RecordView::kNoExpiry;
  if (ends) store.expire(execution.partition, hash, key, kTtlNever);
  execution.writer().integer(ends ? 1 : 0);
  return Status::Ok;
}

// TTL and its kin: when a key ends, from `base_ms` on.
Status tell_expiry(RespExecution& execution, TimeUnit unit, uint64_t base_ms) {
  ObjectStore& store = execution.store;
  Bytes key = execution.arguments[1];
  Location location = store.find(execution.partition, store.hash(key), key);
  int64_t answer = -2;
  if (location != 0) {
    uint64_t at_ms = store.view(location).expiry_ms();
    answer = at_ms == RecordView::kNoExpiry ? -1 : static_cast<int64_t>(at_ms - base_ms);
    if (answer >= 0 && unit == TimeUnit::Seconds) answer = (answer + 500) / 1000;
  }
  execution.writer().integer(answer);
  return Status::Ok;
}

}  // namespace

bool is_word(std::string_view argument, std::string_view word) noexcept {
  return std::ranges::equal(argument, word, [](char left, char right) {
    return (left >= 'a' && left <= 'z' ? left - 'a' + 'A' : left) == right;
  });
}

bool to_unix_ms(int64_t number, TimeUnit unit, uint64_t base_ms, int64_t* at_ms) noexcept {
  int64_t scale = unit == TimeUnit::Seconds ? 1000 : 1;
  int64_t scaled = 0;
  return !__builtin_mul_overflow(number, scale, &scaled) &&
         !__builtin_add_overflow(scaled, static_cast<int64_t>(base_ms), at_ms);
}

bool parse_expiry(RespExecution& execution, std::string_view number, TimeUnit unit,
                  bool is_absolute, int64_t* at_ms) {
  int64_t value = 0;
  if (!parse_decimal(number, &value)) {
    execution.writer().error(resp_error::kNotInteger);
    return false;
  }
  uint64_t base_ms = is_absolute ? 0 : execution.store.now_ms();
  if (value > 0 && to_unix_ms(value, unit, base_ms, at_ms)) return true;
  execution.writer().error(invalid_time(execution));
  return false;
}

bool ExpiryReader::read(const RespExecution& execution, size_t* next, bool* valid) noexcept {
  std::string_view word = execution.text(*next);
  *valid = true;
  if ((may_keep_ && is_word(word, "KEEPTTL")) || (may_persist_ && is_word(word, "PERSIST"))) {
    ExpiryKind kind = may_keep_ ? ExpiryKind::Keep : ExpiryKind::Persist;
    *valid = kind_ == ExpiryKind::None || kind_ == kind;
    kind_ = kind;
    ++*next;
    return true;
  }
  bool is_seconds = is_word(word, "EX") || is_word(word, "EXAT");
  if (!is_seconds && !is_word(word, "PX") && !is_word(word, "PXAT")) return false;
  *valid = kind_ == ExpiryKind::None && *next + 1 < execution.arguments.size();
  if (!*valid) return true;
  kind_ = ExpiryKind::At;
  unit_ = is_seconds ? TimeUnit::Seconds : TimeUnit::Milliseconds;
  is_absolute_ = word.size() == 4;
  number_ = execution.text(*next + 1);
  *next += 2;
  return true;
}

bool ExpiryReader::finish(RespExecution& execution, ExpiryOption* option) {
  option->kind = kind_;
  return kind_ != ExpiryKind::At ||
         parse_expiry(execution, number_, unit_, is_absolute_, &option->at_ms);
}

Status execute_expiry(RespExecution& execution) {
  switch (execution.command->id) {
    case RespCommandId::Expire:
      return expire(execution, TimeUnit::Seconds, false);
    case RespCommandId::Pexpire:
      return expire(execution, TimeUnit::Milliseconds, false);
    case RespCommandId::Expireat:
      return expire(execution, TimeUnit::Seconds, true);
    case RespCommandId::Pexpireat:
      return expire(execution, TimeUnit::Milliseconds, true);
    case RespCommandId::Ttl:
      return tell_expiry(execution, TimeUnit::Seconds, execution.store.now_ms());
    case RespCommandId::Pttl:
      return tell_expiry(execution, TimeUnit::Milliseconds, execution.store.now_ms());
    case RespCommandId::Expiretime:
      return tell_expiry(execution, TimeUnit::Seconds, 0);
    case RespCommandId::Pexpiretime:
      return tell_expiry(execution, TimeUnit::Milliseconds, 0);
    default:
      return persist(execution);
  }
}

}  // namespace kvstrata
