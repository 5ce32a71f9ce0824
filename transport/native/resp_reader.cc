#include "transport/native/resp_reader.h"

#include <algorithm>
#include <cassert>

#include "transport/native/decimal.h"
#include "transport/native/resp_inline.h"

namespace kvstrata {

// A line of a mark and a number, and what is said when it is not that.
struct RespReader::NumberLine {
  char mark;
  const char* fault_too_long;
  const char* fault_invalid;

  static const NumberLine kCount;
  static const NumberLine kLength;
};

constexpr RespReader::NumberLine RespReader::NumberLine::kCount{'*', "too big mbulk count string",
                                                                "invalid multibulk length"};
constexpr RespReader::NumberLine RespReader::NumberLine::kLength{'$', "too big bulk count string",
                                                                 "invalid bulk length"};

namespace {

constexpr char kFaultLineEnd[] = "invalid CRLF in request";
constexpr char kFaultMark[] = "expected '$', got ";

}  // namespace

RespEvent RespReader::read(Bytes bytes, size_t* used) {
  *used = 0;
  if (fault_ != nullptr) return RespEvent::Fault;
  assert(bytes.size() >= at_);
  input_ = bytes.data();
  std::string_view text = as_text(bytes);
  if (stage_ != Stage::Request) return read_arguments(text, used);
  pieces_.clear();
  kept_.clear();
  kept_count_ = 0;
  if (text.empty()) return RespEvent::Partial;
  return text[0] == NumberLine::kCount.mark ? read_count(text, used) : read_inline(text, used);
}

RespEvent RespReader::read_inline(std::string_view text, size_t* used) {
  if (!find_line_end(text, '\n', "too big inline request")) return stopped();
  std::string_view line = text.substr(0, scanned_);
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (!split_inline(line, &kept_, &pieces_)) {
    fail("unbalanced quotes in request");
    return stopped();
  }
  kept_count_ = pieces_.size();
  *used = end_request(scanned_ + 1);
  return pieces_.empty() ? RespEvent::Empty : RespEvent::Command;
}

RespEvent RespReader::read_count(std::string_view text, size_t* used) {
  int64_t count = 0;
  if (!read_number(text, NumberLine::kCount, &count)) return stopped();
  auto count_max = static_cast<int64_t>(limits::kRespArgumentCountMax);
  auto unauthenticated_max = static_cast<int64_t>(limits::kRespUnauthenticatedArgumentCountMax);
  if (count > count_max) {
    fail(NumberLine::kCount.fault_invalid);
  } else if (count > unauthenticated_max && !authenticated_) {
    fail("unauthenticated multibulk length");
  }
  if (fault_ != nullptr) return stopped();
  if (count <= 0) {
    *used = end_request(at_);
    return RespEvent::Empty;
  }
  argument_count_ = static_cast<uint32_t>(count);
  stage_ = Stage::Length;
  return read_arguments(text, used);
}

RespEvent RespReader::read_arguments(std::string_view text, size_t* used) {
  do {
    if (stage_ == Stage::Length) {
      if (!read_length(text)) return stopped();
      bool is_large = argument_bytes_ >= limits_.large_argument_bytes_min;
      // Without the command's name, no one could say where a large argument belongs.
      if (is_large && !pieces_.empty()) return RespEvent::LargeArgument;
    }
    if (!read_argument(text)) return stopped();
  } while (pieces_.size() < argument_count_);
  *used = end_request(at_);
  return RespEvent::Command;
}

bool RespReader::read_length(std::string_view text) noexcept {
  int64_t length = 0;
  if (!read_number(text, NumberLine::kLength, &length)) return false;
  argument_bytes_ = static_cast<uint64_t>(length);
  if (length < 0 || argument_bytes_ > limits_.argument_bytes_max) {
    return fail(NumberLine::kLength.fault_invalid);
  }
  if (argument_bytes_ > limits::kRespUnauthenticatedArgumentBytesMax && !authenticated_) {
    return fail("unauthenticated bulk length");
  }
  stage_ = Stage::Argument;
  return true;
}

// An argument with the end of line behind it; only the latter, where the argument was diverted.
bool RespReader::read_argument(std::string_view text) {
  size_t length = stage_ == Stage::Diverted ? 0 : argument_bytes_;
  if (text.size() - at_ < length + 2) return false;
  size_t end = at_ + length;
  if (text[end] != '\r' || text[end + 1] != '\n') return fail(kFaultLineEnd);
  if (stage_ == Stage::Argument) pieces_.push_back({at_, length});
  move_to(end + 2);
  stage_ = Stage::Length;
  return true;
}

bool RespReader::read_number(std::string_view text, const NumberLine& line,
                             int64_t* number) noexcept {
  // The byte behind the '\r' must be there to be judged.
  if (!find_line_end(text, '\r', line.fault_too_long) || scanned_ + 1 == text.size()) return false;
  if (text[at_] != line.mark) {
    mark_found_ = text[at_];
    return fail(kFaultMark);
  }
  if (text[scanned_ + 1] != '\n') return fail(kFaultLineEnd);
  std::string_view digits = text.substr(at_ + 1, scanned_ - at_ - 1);
  if (!parse_decimal(digits, number)) return fail(line.fault_invalid);
  move_to(scanned_ + 2);
  return true;
}

// Moves `scanned_` on to the first `mark` of the line at `at_`; false when it is not there.
bool RespReader::find_line_end(std::string_view text, char mark,
                               const char* fault_too_long) noexcept {
  size_t end = std::min(text.size(), at_ + limits::kRespLineBytesMax + 1);
  while (scanned_ < end && text[scanned_] != mark) ++scanned_;
  if (scanned_ < end) return true;
  return scanned_ - at_ > limits::kRespLineBytesMax && fail(fault_too_long);
}

bool RespReader::fail(const char* fault) noexcept {
  fault_ = fault;
  return false;
}

// Positions count from the next request on. Returns `length`.
size_t RespReader::end_request(size_t length) noexcept {
  stage_ = Stage::Request;
  move_to(0);
  return length;
}

size_t RespReader::divert() {
  assert(stage_ == Stage::Argument);
  for (; kept_count_ < pieces_.size(); ++kept_count_) {
    RespPiece& piece = pieces_[kept_count_];
    size_t offset = kept_.size();
    kept_.append({input_ + piece.offset, piece.length});
    piece.offset = offset;
  }
  pieces_.push_back({});
  kept_count_ = pieces_.size();
  stage_ = Stage::Diverted;
  size_t used = at_;
  move_to(0);
  return used;
}

void RespReader::release_memory() noexcept {
  if (stage_ != Stage::Request) return;
  pieces_ = std::vector<RespPiece>();
  kept_.release_memory();
  kept_count_ = 0;
}

std::string RespReader::error() const {
  assert(fault_ != nullptr);
  std::string text = std::string("ERR Protocol error: ") + fault_;
  if (fault_ == kFaultMark) text.append({'\'', mark_found_, '\''});
  return text;
}

}  // namespace kvstrata
