// Quoting in inline commands, as a Valkey 9.1 server was seen to read it.
#include <doctest/doctest.h>

#include <optional>
#include <string>

#include "transport/native/resp_inline.h"

namespace kvstrata {

namespace {

using Words = std::vector<std::string>;
using namespace std::string_literals;

std::optional<Words> split(std::string_view line) {
  CAPTURE(line);
  std::vector<char> exact(line.begin(), line.end());  // So that a look beyond it is seen.
  ByteBuffer text;
  std::vector<RespPiece> pieces;
  if (!split_inline({exact.data(), exact.size()}, &text, &pieces)) return std::nullopt;
  Words words;
  for (const RespPiece& piece : pieces) {
    words.emplace_back(as_text(text.view().subspan(piece.offset, piece.length)));
  }
  return words;
}

}  // namespace

TEST_CASE("words stand between blanks") {
  CHECK(split("") == Words{});
  CHECK(split(" \t\r\v\f") == Words{});
  CHECK(split("PING") == Words{"PING"});
  CHECK(split("  SET\tkey \rvalue  ") == Words{"SET", "key", "value"});
  CHECK(split("\v\fa\vb\fc\v") == Words{"a\vb\fc\v"});
  CHECK(split("a\x80 \xfe b") == Words{"a\x80", "\xfe", "b"});
  CHECK(split("a b\0 c"s) == Words{"a", "b"});  // As Valkey's own strings, a line ends there.
}

TEST_CASE("double quotes know escapes") {
  CHECK(split(R"("a b" "" "'")") == Words{"a b", "", "'"});
  CHECK(split(R"("\n\r\t\b\a\q\\\"\'.")") == Words{"\n\r\t\b\aq\\\"'."});
  CHECK(split(R"("\x41\xaF\x00")") == Words{"A\xAF\0"s});
  CHECK(split(R"("\x4" "\x" "\xzz" "\x0g" "\x4 1" "\X41")") ==
        Words{"x4", "x", "xzz", "x0g", "x4 1", "X41"});
}

TEST_CASE("single quotes know but one escape") {
  CHECK(split(R"('a b' '' '"')") == Words{"a b", "", "\""});
  CHECK(split(R"('\x41\n\\ \'.')") == Words{R"(\x41\n\\ '.)"});
}

TEST_CASE("quotes begin and end within words, and outside them nothing is escaped") {
  CHECK(split(R"(a"b c"d 'e'f "g""h"'i')") == Words{"ab cd", "ef", "ghi"});
  CHECK(split(R"(a\nb \x41)") == Words{R"(a\nb)", R"(\x41)"});
}

TEST_CASE("a backslash before the line's last byte stands for itself") {
  CHECK(split(R"("a\")") == Words{"a\\"});
  CHECK(split(R"('a\')") == Words{"a\\"});
  CHECK(split(R"("\")") == Words{"\\"});
  CHECK(split(R"('a\'')") == Words{"a'"});
}

TEST_CASE("a quote that is not closed makes the line invalid") {
  for (const char* line : {"\"", "'", "a\"", "a'", "\"abc", "'abc", "x \"a\\", "'a\\", "'a\\' ",
                           "\"a\\\" ", "\"\\x41", "\"\\x4", "\"\\n", "a\\\"b"}) {
    CHECK(!split(line).has_value());
  }
}

}  // namespace kvstrata
