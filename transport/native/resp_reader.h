// Commands of a Valkey client, from a stream that comes in pieces: arrays of bulk strings, and
// inline commands. Knows nothing of what a command means.
//
// The reader holds positions, its owner the bytes: what is not used up is given again, with more
// behind it, and may have moved. What was searched or judged once is not again, arguments are views
// of the bytes given, and nothing is allocated for what a count or length only promises. So the
// memory that a command takes is bounded by what was sent of it.
//
//   size_t used = 0;
//   RespEvent event = reader.read(bytes, &used);     // Then drop `used` bytes of the front.
#pragma once

#include <string>
#include <vector>

#include "store/limits.h"
#include "transport/native/bytes.h"
#include "transport/native/resp_arguments.h"

namespace kvstrata {

enum class RespEvent : uint8_t {
  Partial,        // The bytes end within a request.
  Empty,          // A request without arguments, to which there is no answer.
  Command,        // A whole command: arguments().
  LargeArgument,  // A large argument begins, which divert() may take out of the stream.
  Fault,          // The stream has lost its meaning: error(). It stays so.
};

struct RespLimits {
  uint64_t argument_bytes_max = limits::kRespArgumentBytesMax;
  uint64_t large_argument_bytes_min = limits::kRespLargeArgumentBytesMin;
};

class RespReader {
 public:
  explicit RespReader(const RespLimits& limits = {}) noexcept : limits_(limits) {}

  // Until it is told otherwise, the client may not send more than AUTH needs.
  void set_authenticated(bool authenticated) noexcept { authenticated_ = authenticated; }

  // Reads up to the next event. `bytes` begins with the first that is not used up and has all that
  // it had at the last call. `used` is the request's length at Empty and Command, else 0. Throws
  // std::bad_alloc.
  RespEvent read(Bytes bytes, size_t* used);

  // Nothing of a request was read yet.
  bool is_between_requests() const noexcept {
    return stage_ == Stage::Request && scanned_ == 0 && fault_ == nullptr;
  }

  // Of the command; at LargeArgument, those before the large one. Valid until the next read() or
  // divert(), while the bytes given stay where they are.
  RespArguments arguments() const noexcept { return {pieces_, kept_count_, kept_.data(), input_}; }

  // After LargeArgument, to take the argument's bytes out of the stream; where that is not wanted,
  // read() goes on as with a small one. Returns how many of the bytes given last are used up, those
  // before the argument. The owner then takes large_argument_bytes() bytes, and gives read() what
  // comes behind them. The command's arguments() have an empty one in that place; those before it
  // are kept here.
  size_t divert();
  uint64_t large_argument_bytes() const noexcept { return argument_bytes_; }

  // After Fault, for the reply, its code first: "ERR Protocol error: ...", in Valkey's words.
  std::string error() const;

  // What is allocated here: places, and arguments that are not views of the bytes given.
  size_t held_bytes() const noexcept {
    return pieces_.capacity() * sizeof(RespPiece) + kept_.capacity();
  }
  // Frees that, arguments() included; within a command, it does nothing.
  void release_memory() noexcept;

 private:
  enum class Stage : uint8_t {
    Request,   // At the first byte of a request, or in its first line.
    Length,    // In the line with the next argument's length.
    Argument,  // In an argument.
    Diverted,  // Behind an argument that was taken out.
  };
  struct NumberLine;

  RespEvent read_inline(std::string_view text, size_t* used);
  RespEvent read_count(std::string_view text, size_t* used);
  RespEvent read_arguments(std::string_view text, size_t* used);
  bool read_length(std::string_view text) noexcept;
  bool read_argument(std::string_view text);
  bool read_number(std::string_view text, const NumberLine& line, int64_t* number) noexcept;
  bool find_line_end(std::string_view text, char mark, const char* fault_too_long) noexcept;
  bool fail(const char* fault) noexcept;
  // Why a step could not be done.
  RespEvent stopped() const noexcept {
    return fault_ == nullptr ? RespEvent::Partial : RespEvent::Fault;
  }
  void move_to(size_t position) noexcept { at_ = scanned_ = position; }
  size_t end_request(size_t length) noexcept;

  RespLimits limits_;
  bool authenticated_ = false;
  Stage stage_ = Stage::Request;
  char mark_found_ = 0;  // Where a length should have begun.
  uint32_t argument_count_ = 0;
  const char* fault_ = nullptr;
  uint64_t argument_bytes_ = 0;  // Of the present argument.
  // Positions in the bytes given.
  size_t at_ = 0;       // Of the line or argument that comes next.
  size_t scanned_ = 0;  // Up to here, no end of the line was found.
  const std::byte* input_ = nullptr;
  std::vector<RespPiece> pieces_;
  ByteBuffer kept_;
  size_t kept_count_ = 0;  // Pieces that lie in `kept_`, or were diverted: the first ones.
};

}  // namespace kvstrata
