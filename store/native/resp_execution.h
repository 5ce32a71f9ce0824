// One command of a Valkey client where it is carried out: on the shard that owns its keys.
#pragma once

#include "store/native/object_store.h"
#include "store/native/output_queue.h"
#include "store/native/partition.h"
#include "store/native/resp_command.h"
#include "transport/native/resp_arguments.h"
#include "transport/native/resp_writer.h"

namespace kvstrata {

struct RespExecution {
  ObjectStore& store;
  Partition& partition;
  uint32_t shard = 0;
  const RespCommand* command = nullptr;
  RespArguments arguments;
  RespVersion version = RespVersion::Resp2;
  OutputQueue* reply = nullptr;
  // The open record of a value that came before the command was whole, or that waits for memory.
  Location* open = nullptr;
  Status open_status = Status::Ok;  // Why a value of `value_bytes` that streamed in has none.
  uint64_t value_bytes = 0;
  // Of a walk through the shard's keys, which goes in steps: where it is, 0 at either end, and how
  // many elements its reply has so far.
  uint64_t* cursor = nullptr;
  uint64_t* count = nullptr;
  bool touches = true;   // Reads count as uses.
  bool may_wait = true;  // For memory; else what does not fit at once is refused.

  RespWriter writer() const noexcept { return RespWriter(reply->bytes(), version); }
  std::string_view text(size_t index) const noexcept { return as_text(arguments[index]); }
};

// What Valkey quotes in its errors ends before a zero byte.
constexpr std::string_view quotable(std::string_view text,
                                    size_t bytes_max = std::string_view::npos) noexcept {
  return text.substr(0, std::min(text.find('\0'), bytes_max));
}

// Carries the command out and writes its reply. Busy: nothing was done or written yet, since there
// is no memory; call again with the same execution.
Status execute(RespExecution& execution);

// What execute() does for each kind of command; each returns as execute() does.
Status execute_string(RespExecution& execution);
Status execute_number(RespExecution& execution);
Status execute_expiry(RespExecution& execution);
Status execute_keyspace(RespExecution& execution);

// The errors of more than one command.
namespace resp_error {
inline constexpr std::string_view kSyntax = "ERR syntax error";
inline constexpr std::string_view kNotInteger = "ERR value is not an integer or out of range";
inline constexpr std::string_view kNoSuchKey = "ERR no such key";
}  // namespace resp_error

}  // namespace kvstrata
