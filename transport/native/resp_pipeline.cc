#include "transport/native/resp_pipeline.h"

#include "store/limits.h"

namespace kvstrata {

namespace {

// Longer arguments may be wanted elsewhere than in a buffer.
constexpr size_t kNumberMax = limits::kRespLargeArgumentBytesMin - 1;

// The line "<mark>123\r\n" at the front of `text`, which goes on behind it. False for any other,
// one with a leading zero included: a number has one spelling.
bool read_line(std::string_view* text, char mark, size_t* number) noexcept {
  const char* at = text->data();
  const char* end = at + text->size();
  if (end - at < 4 || *at != mark) return false;
  size_t value = 0;
  const char* digits = ++at;
  for (; at != end; ++at) {
    auto digit = static_cast<unsigned char>(*at - '0');
    if (digit > 9) break;
    if (at != digits && value == 0) return false;
    value = value * 10 + digit;
    if (value > kNumberMax) return false;
  }
  if (at == digits || end - at < 2 || at[0] != '\r' || at[1] != '\n') return false;
  text->remove_prefix(static_cast<size_t>(at + 2 - text->data()));
  *number = value;
  return true;
}

}  // namespace

size_t RespPipeline::read(Bytes bytes) noexcept {
  input_ = bytes.data();
  std::string_view text = as_text(bytes);
  const char* begin = text.data();
  size_t next_piece = 0;
  for (size_t count = 0; count < kCommandCountMax; ++count) {
    size_t argument_count = 0;
    if (!read_line(&text, '*', &argument_count) || argument_count == 0) return count;
    if (argument_count > kArgumentCountMax - next_piece) return count;
    for (size_t index = 0; index < argument_count; ++index) {
      size_t length = 0;
      if (!read_line(&text, '$', &length) || text.size() < length + 2) return count;
      if (text[length] != '\r' || text[length + 1] != '\n') return count;
      pieces_[next_piece + index] = {static_cast<size_t>(text.data() - begin), length};
      text.remove_prefix(length + 2);
    }
    commands_[count] = {static_cast<uint32_t>(next_piece), static_cast<uint32_t>(argument_count),
                        static_cast<size_t>(text.data() - begin)};
    next_piece += argument_count;
  }
  return kCommandCountMax;
}

}  // namespace kvstrata
