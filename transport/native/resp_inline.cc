#include "transport/native/resp_inline.h"

#include <algorithm>

namespace kvstrata {

namespace {

constexpr std::string_view kBetweenWords = " \t\n\v\f\r";
constexpr std::string_view kEndsWord = " \t\n\r";  // The other two may stand within a word.

int hex_digit(char character) noexcept {
  if (character >= '0' && character <= '9') return character - '0';
  if (character >= 'a' && character <= 'f') return character - 'a' + 10;
  if (character >= 'A' && character <= 'F') return character - 'A' + 10;
  return -1;
}

char unescaped(char character) noexcept {
  switch (character) {
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    case 'b':
      return '\b';
    case 'a':
      return '\a';
    default:
      return character;
  }
}

class Splitter {
 public:
  // As in C, a line ends before a zero byte.
  Splitter(std::string_view line, ByteBuffer* text) noexcept
      : line_(line.substr(0, line.find('\0'))), text_(text) {}

  // Skips to the next word; false when there is none.
  bool find_word() noexcept {
    at_ = std::min(line_.find_first_not_of(kBetweenWords, at_), line_.size());
    return at_ < line_.size();
  }
  bool read_word() {
    while (at_ < line_.size() && kEndsWord.find(line_[at_]) == kEndsWord.npos) {
      char character = line_[at_++];
      bool quoted = character == '"' || character == '\'';
      if (!quoted) {
        text_->append_le(character);
      } else if (!read_quoted(character)) {
        return false;
      }
    }
    return true;
  }

 private:
  bool read_quoted(char quote) {
    while (at_ < line_.size()) {
      char character = line_[at_++];
      if (character == quote) return true;
      bool escapes = character == '\\' && at_ + 1 < line_.size();
      if (escapes && (quote == '"' || line_[at_] == quote)) character = read_escaped(quote);
      text_->append_le(character);
    }
    return false;
  }
  char read_escaped(char quote) noexcept {
    char character = line_[at_++];
    if (quote == '\'') return character;
    if (character == 'x' && at_ + 1 < line_.size()) {
      int high = hex_digit(line_[at_]);
      int low = hex_digit(line_[at_ + 1]);
      if (high >= 0 && low >= 0) {
        at_ += 2;
        return static_cast<char>(high * 16 + low);
      }
    }
    return unescaped(character);
  }

  std::string_view line_;
  ByteBuffer* text_;
  size_t at_ = 0;
};

}  // namespace

bool split_inline(std::string_view line, ByteBuffer* text, std::vector<RespPiece>* words) {
  Splitter splitter(line, text);
  while (splitter.find_word()) {
    size_t begin = text->size();
    if (!splitter.read_word()) return false;
    words->push_back({begin, text->size() - begin});
  }
  return true;
}

}  // namespace kvstrata
