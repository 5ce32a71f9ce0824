// Commands that read and write whole values.
#include <string>

#include "store/native/resp_expiry.h"
#include "store/native/resp_value.h"
#include "transport/native/decimal.h"

namespace kvstrata {

namespace {

struct SetOptions {
  enum class Condition : uint8_t { None, IfAbsent, IfPresent, IfEqual };
  Condition condition = Condition::None;
  Bytes comparison;
  bool replies_with_old = false;
  ExpiryOption expiry;
};

void get(RespExecution& execution) {
  Location location = look_up(execution, execution.arguments[1]);
  if (location == 0) {
    execution.writer().null();
  } else {
    reply_with_value(execution, location);
  }
}

// From argument `next` on. False if an error was written.
bool read_set_options(RespExecution& execution, size_t next, SetOptions* options) {
  using Condition = SetOptions::Condition;
  bool is_set = execution.command->id == RespCommandId::Set;
  ExpiryReader expiry(true, false);
  bool valid = true;
  while (valid && next < execution.arguments.size()) {
    if (expiry.read(execution, &next, &valid)) continue;
    std::string_view word = execution.text(next++);
    if (is_word(word, "NX")) {
      valid = options->condition == Condition::None || options->condition == Condition::IfAbsent;
      options->condition = Condition::IfAbsent;
    } else if (is_word(word, "XX")) {
      valid = options->condition == Condition::None || options->condition == Condition::IfPresent;
      options->condition = Condition::IfPresent;
    } else if (is_set && is_word(word, "GET")) {
      options->replies_with_old = true;
    } else if (is_set && is_word(word, "IFEQ")) {
      valid = options->condition == Condition::None && next < execution.arguments.size();
      options->condition = Condition::IfEqual;
      if (valid) options->comparison = execution.arguments[next++];
    } else {
      valid = false;
    }
  }
  if (valid) return expiry.finish(execution, &options->expiry);
  execution.writer().error(resp_error::kSyntax);
  return false;
}

bool allows(const RespExecution& execution, const SetOptions& options, Location present) noexcept {
  switch (options.condition) {
    case SetOptions::Condition::None:
      return true;
    case SetOptions::Condition::IfAbsent:
      return present == 0;
    case SetOptions::Condition::IfPresent:
      return present != 0;
    case SetOptions::Condition::IfEqual:
      return present != 0 && value_equals(execution.store, present, options.comparison);
  }
  return false;
}

uint64_t expiry_of(const RespExecution& execution, const ExpiryOption& option,
                   Location present) noexcept {
  if (option.kind == ExpiryKind::At) return static_cast<uint64_t>(option.at_ms);
  if (option.kind != ExpiryKind::Keep || present == 0) return kExpiryOfPool;
  return execution.store.view(present).expiry_ms();
}

// What stands before the reply is the old value, if that was asked for.
Status set(RespExecution& execution, const SetOptions& options, Bytes key, Bytes value) {
  ObjectStore& store = execution.store;
  RespWriter writer = execution.writer();
  Location present = options.replies_with_old
                         ? look_up(execution, key)
                         : store.find(execution.partition, store.hash(key), key);
  bool allowed = allows(execution, options, present);
  uint64_t expiry_ms = expiry_of(execution, options.expiry, present);
  if (!allowed || execution.partition.settings.immutable) {
    // Nothing of an immutable pool is replaced, so its old value is all that there is to say.
    bool refused = allowed && present != 0;
    if (!allowed || refused) {
      abandon_open(execution);
      if (refused) {
        reply_with_refusal(execution, Status::Immutable, 0);
      } else if (options.replies_with_old && present != 0) {
        reply_with_value(execution, present);
      } else {
        writer.null();
      }
      return Status::Ok;
    }
  }
  // The old value is pinned, or copied, before it goes; where the new one is refused it is taken
  // back.
  OutputQueue old;
  OutputQueue* reply = execution.reply;
  if (options.replies_with_old) {
    execution.reply = &old;
    if (present == 0) {
      execution.writer().null();
    } else {
      reply_with_value(execution, present);
    }
    execution.reply = reply;
  }
  bool stored = false;
  Status status = store_value(execution, key, value, expiry_ms, &stored);
  if (status == Status::Busy || !stored) {
    std::vector<OwnedExtent> released;
    old.discard(&released);
    for (const OwnedExtent& owned : released) store.release(owned.extent);
    return status;
  }
  if (options.replies_with_old) {
    reply->append(&old);
  } else {
    writer.ok();
  }
  return Status::Ok;
}

// Without options, the value takes the place of whatever the key names, unseen.
Status set_plainly(RespExecution& execution) {
  bool stored = false;
  Status status = store_value(execution, execution.arguments[1], execution.arguments[2],
                              kExpiryOfPool, &stored);
  if (stored) execution.writer().ok();
  return status;
}

Status set(RespExecution& execution) {
  if (execution.arguments.size() == 3 && !execution.partition.settings.immutable) {
    return set_plainly(execution);
  }
  SetOptions options;
  if (!read_set_options(execution, 3, &options)) {
    abandon_open(execution);
    return Status::Ok;
  }
  return set(execution, options, execution.arguments[1], execution.arguments[2]);
}

Status set_with_expiry(RespExecution& execution, TimeUnit unit) {
  SetOptions options;
  options.expiry.kind = ExpiryKind::At;
  if (!parse_expiry(execution, execution.text(2), unit, false, &options.expiry.at_ms)) {
    abandon_open(execution);
    return Status::Ok;
  }
  return set(execution, options, execution.arguments[1], execution.arguments[3]);
}

Status set_if_absent(RespExecution& execution) {
  ObjectStore& store = execution.store;
  Bytes key = execution.arguments[1];
  if (store.find(execution.partition, store.hash(key), key) != 0) {
    abandon_open(execution);
    execution.writer().integer(0);
    return Status::Ok;
  }
  bool stored = false;
  Status status = store_value(execution, key, execution.arguments[2], kExpiryOfPool, &stored);
  if (stored) execution.writer().integer(1);
  return status;
}

Status get_and_set(RespExecution& execution) {
  SetOptions options;
  options.replies_with_old = true;
  return set(execution, options, execution.arguments[1], execution.arguments[2]);
}

Status get_and_delete(RespExecution& execution) {
  get(execution);
  remove_key(execution, execution.arguments[1]);
  return Status::Ok;
}

Status get_and_expire(RespExecution& execution) {
  ExpiryReader reader(false, true);
  ExpiryOption expiry;
  bool valid = true;
  for (size_t next = 2; valid && next < execution.arguments.size();) {
    valid = reader.read(execution, &next, &valid) && valid;
  }
  if (!valid) {
    execution.writer().error(resp_error::kSyntax);
    return Status::Ok;
  }
  if (!reader.finish(execution, &expiry)) return Status::Ok;
  ObjectStore& store = execution.store;
  Bytes key = execution.arguments[1];
  uint64_t hash = store.hash(key);
  bool changes = expiry.kind != ExpiryKind::None;
  if (changes && store.find(execution.partition, hash, key) != 0) {
    auto at_ms = static_cast<uint64_t>(expiry.at_ms);
    bool is_over = expiry.kind == ExpiryKind::At && at_ms <= store.now_ms();
    uint64_t ttl_ms =
        expiry.kind == ExpiryKind::At && !is_over ? at_ms - store.now_ms() : kTtlNever;
    Status status = is_over ? Status::Ok : store.expire(execution.partition, hash, key, ttl_ms);
    if (status == Status::Busy && execution.may_wait) return status;
    if (status != Status::Ok && status != Status::NotFound) {
      reply_with_refusal(execution, Status::NoSpace, 0);
      return Status::Ok;
    }
    get(execution);
    if (is_over) remove_key(execution, key);
    return Status::Ok;
  }
  get(execution);
  return Status::Ok;
}

void get_many(RespExecution& execution) {
  execution.writer().array(execution.arguments.size() - 1);
  for (size_t index = 1; index < execution.arguments.size(); ++index) {
    Location location = look_up(execution, execution.arguments[index]);
    if (location == 0) {
      execution.writer().null();
    } else {
      reply_with_value(execution, location);
    }
  }
}

// Of several values none may wait: what was stored already would be stored again. False if an error
// was written.
bool store_pairs(RespExecution& execution, size_t first, size_t end, const ExpiryOption& expiry) {
  execution.may_wait = false;
  for (size_t index = first; index < end; index += 2) {
    ObjectStore& store = execution.store;
    Bytes key = execution.arguments[index];
    Location present = 0;
    if (expiry.kind == ExpiryKind::Keep) {
      present = store.find(execution.partition, store.hash(key), key);
    }
    bool stored = false;
    store_value(execution, key, execution.arguments[index + 1],
                expiry_of(execution, expiry, present), &stored);
    if (!stored) return false;
  }
  return true;
}

bool any_exists(RespExecution& execution, size_t first, size_t end, bool wanted) noexcept {
  for (size_t index = first; index < end; index += 2) {
    ObjectStore& store = execution.store;
    Bytes key = execution.arguments[index];
    if ((store.find(execution.partition, store.hash(key), key) != 0) == wanted) return true;
  }
  return false;
}

void set_many(RespExecution& execution) {
  bool only_absent = execution.command->id == RespCommandId::Msetnx;
  size_t end = execution.arguments.size();
  if (end % 2 == 0) {
    execution.writer().error("ERR wrong number of arguments for '" +
                             std::string(execution.command->name) + "' command");
    return;
  }
  if (only_absent && any_exists(execution, 1, end, true)) {
    execution.writer().integer(0);
    return;
  }
  if (!store_pairs(execution, 1, end, {})) return;
  if (only_absent) {
    execution.writer().integer(1);
  } else {
    execution.writer().ok();
  }
}

void set_many_with_options(RespExecution& execution) {
  int64_t count = 0;
  if (!parse_decimal(execution.text(1), &count) || count <= 0 || count > INT32_MAX) {
    execution.writer().error("ERR invalid numkeys value or out of range");
    return;
  }
  size_t end = 2 + 2 * static_cast<size_t>(count);
  if (end > execution.arguments.size()) {
    execution.writer().error(resp_error::kSyntax);
    return;
  }
  SetOptions options;
  if (!read_set_options(execution, end, &options)) return;
  using Condition = SetOptions::Condition;
  bool refused =
      (options.condition == Condition::IfAbsent && any_exists(execution, 2, end, true)) ||
      (options.condition == Condition::IfPresent && any_exists(execution, 2, end, false));
  if (refused) {
    execution.writer().integer(0);
    return;
  }
  if (store_pairs(execution, 2, end, options.expiry)) execution.writer().integer(1);
}

void get_range(RespExecution& execution) {
  int64_t start = 0;
  int64_t end = 0;
  if (!parse_decimal(execution.text(2), &start) || !parse_decimal(execution.text(3), &end)) {
    execution.writer().error(resp_error::kNotInteger);
    return;
  }
  Location location = look_up(execution, execution.arguments[1]);
  auto length = location == 0 ? int64_t{0}
                              : static_cast<int64_t>(execution.store.view(location).value_length());
  // Negative numbers count from the end on.
  bool is_empty = length == 0 || (start < 0 && end < 0 && start > end);
  if (start < 0) start = std::max(length + start, int64_t{0});
  if (end < 0) end = std::max(length + end, int64_t{0});
  end = std::min(end, length - 1);
  if (is_empty || start > end) {
    execution.writer().bulk_string({});
    return;
  }
  reply_with_value(execution, location, static_cast<uint64_t>(start),
                   static_cast<uint64_t>(end) + 1);
}

void tell_length(RespExecution& execution) {
  Location location = look_up(execution, execution.arguments[1]);
  uint64_t length = location == 0 ? 0 : execution.store.view(location).value_length();
  execution.writer().integer(static_cast<int64_t>(length));
}

}  // namespace

Status execute_string(RespExecution& execution) {
  switch (execution.command->id) {
    case RespCommandId::Get:
      get(execution);
      return Status::Ok;
    case RespCommandId::Set:
      return set(execution);
    case RespCommandId::Setex:
      return set_with_expiry(execution, TimeUnit::Seconds);
    case RespCommandId::Psetex:
      return set_with_expiry(execution, TimeUnit::Milliseconds);
    case RespCommandId::Setnx:
      return set_if_absent(execution);
    case RespCommandId::Getset:
      return get_and_set(execution);
    case RespCommandId::Getdel:
      return get_and_delete(execution);
    case RespCommandId::Getex:
      return get_and_expire(execution);
    case RespCommandId::Mget:
      get_many(execution);
      return Status::Ok;
    case RespCommandId::Mset:
    case RespCommandId::Msetnx:
      set_many(execution);
      return Status::Ok;
    case RespCommandId::Msetex:
      set_many_with_options(execution);
      return Status::Ok;
    case RespCommandId::Getrange:
      get_range(execution);
      return Status::Ok;
    default:
      tell_length(execution);
      return Status::Ok;
  }
}

}  // namespace kvstrata
