// How long values live, as the arguments of commands say it: EX seconds, PXAT milliseconds,
// KEEPTTL.
#pragma once

#include <optional>
#include <string_view>

#include "store/native/resp_execution.h"

namespace kvstrata {

enum class ExpiryKind : uint8_t {
  None,     // Nothing was said.
  At,       // `at_ms`.
  Keep,     // As it is.
  Persist,  // For ever.
};

struct ExpiryOption {
  ExpiryKind kind = ExpiryKind::None;
  int64_t at_ms = 0;  // Unix time.
};

enum class TimeUnit : uint8_t { Seconds, Milliseconds };

// A point in time from a number, which counts from `base_ms` on. False beyond 64 bits.
bool to_unix_ms(int64_t number, TimeUnit unit, uint64_t base_ms, int64_t* at_ms) noexcept;

// Writes what is wrong, if `number` is not a time that lies after 1970: false then.
bool parse_expiry(RespExecution& execution, std::string_view number, TimeUnit unit,
                  bool is_absolute, int64_t* at_ms);

// Options of SET and its kin. `next` is the argument to look at; true if it is one of expiry, which
// may take the next one as well. Anything wrong is an error of syntax: `*valid` is false then.
class ExpiryReader {
 public:
  explicit ExpiryReader(bool may_keep, bool may_persist) noexcept
      : may_keep_(may_keep), may_persist_(may_persist) {}
  bool read(const RespExecution& execution, size_t* next, bool* valid) noexcept;
  // After the last option. False if the number is no time: the error was written.
  bool finish(RespExecution& execution, ExpiryOption* option);

 private:
  bool may_keep_;
  bool may_persist_;
  ExpiryKind kind_ = ExpiryKind::None;
  TimeUnit unit_ = TimeUnit::Seconds;
  bool is_absolute_ = false;
  std::string_view number_;
};

// Whether an argument is this word, which is in upper case, in any case.
bool is_word(std::string_view argument, std::string_view word) noexcept;

}  // namespace kvstrata
