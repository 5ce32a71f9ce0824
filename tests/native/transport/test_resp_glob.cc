// Patterns of keys: what each part means, the corners that a Valkey 9.1 server was seen to have,
// and that no pattern takes for ever.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "transport/native/resp_glob.h"

namespace kvstrata {

namespace {

using namespace std::string_literals;

bool matches(const std::string& pattern, const std::string& text) {
  CAPTURE(pattern);
  CAPTURE(text);
  std::vector<char> exact(pattern.begin(), pattern.end());  // So that a look beyond it is seen.
  return glob_matches(as_bytes({exact.data(), exact.size()}), as_bytes(text));
}

// Tries every way, without a thought for time: what '*' and '?' mean.
bool matches_slowly(std::string_view pattern, std::string_view text) {
  if (pattern.empty()) return text.empty();
  if (pattern[0] == '*') {
    return matches_slowly(pattern.substr(1), text) ||
           (!text.empty() && matches_slowly(pattern, text.substr(1)));
  }
  return !text.empty() && (pattern[0] == '?' || pattern[0] == text[0]) &&
         matches_slowly(pattern.substr(1), text.substr(1));
}

// All texts of up to `length_max` of the letters.
std::vector<std::string> all_texts(std::string_view letters, size_t length_max) {
  std::vector<std::string> texts = {""};
  for (size_t i = 0; i < texts.size(); ++i) {
    if (texts[i].size() == length_max) continue;
    for (char letter : letters) texts.push_back(texts[i] + letter);
  }
  return texts;
}

}  // namespace

TEST_CASE("a pattern without signs matches itself") {
  CHECK(matches("key", "key"));
  CHECK(!matches("key", "keys"));
  CHECK(!matches("keys", "key"));
  CHECK(!matches("key", "Key"));
  CHECK(matches("", ""));
  CHECK(!matches("", "a"));
  CHECK(matches("a\0\xff"s, "a\0\xff"s));
  CHECK(!matches("a\0b"s, "a\0c"s));
}

TEST_CASE("stars and question marks mean what a search without shortcuts finds") {
  std::vector<std::string> texts = all_texts("ab", 5);
  for (const std::string& pattern : all_texts("ab*?", 5)) {
    for (const std::string& text : texts) {
      bool expected = matches_slowly(pattern, text);
      // No text matches only "*": the one place where Valkey is of another mind.
      if (text.empty()) expected = pattern.empty() || pattern == "*";
      if (matches(pattern, text) != expected) FAIL(pattern, " with ", text);
    }
  }
}

TEST_CASE("a class stands for one of its bytes") {
  CHECK(matches("h[ae]llo", "hello"));
  CHECK(!matches("h[ae]llo", "hillo"));
  CHECK(!matches("h[ae]llo", "haello"));
  CHECK(matches("h[^e]llo", "hallo"));
  CHECK(!matches("h[^e]llo", "hello"));
  CHECK(matches("[a-c]", "b"));
  CHECK(matches("[c-a]", "b"));
  CHECK(!matches("[a-c]", "d"));
  CHECK(matches("[a-cx]", "x"));
  CHECK(matches("[^a-c]", "-"));
  CHECK(matches("*[0-9]*[x]", "abc1defx"));
}

TEST_CASE("a backslash takes a sign's meaning away") {
  CHECK(matches("a\\*", "a*"));
  CHECK(!matches("a\\*", "ab"));
  CHECK(matches("\\a\\?\\[\\\\", "a?[\\"));
  CHECK(matches("a\\", "a\\"));
  CHECK(matches("*\\", "ab\\"));
  CHECK(matches("[\\]]", "]"));
  CHECK(matches("[\\^a]", "^"));
}

TEST_CASE("the corners of classes are Valkey's") {
  CHECK(!matches("[]", "a"));
  CHECK(!matches("[]a]", "a"));
  CHECK(matches("[^]a]", "xa]"));
  CHECK(matches("[abc", "b"));
  CHECK(!matches("[abc", "d"));
  CHECK(!matches("[abc", "bb"));
  CHECK(!matches("[", "["));
  CHECK(matches("[^", "x"));
  CHECK(matches("[a-]", "^"));  // From ']' to 'a', and never closed.
  CHECK(!matches("[a-]", "-"));
  CHECK(matches("[a-", "-"));
  CHECK(!matches("[a-", "B"));
  CHECK(matches("[\\a-z]", "-"));  // 'a', '-' and 'z'.
  CHECK(!matches("[\\a-z]", "b"));
  CHECK(matches("[\x80-\xff]", "\x90"));
  CHECK(matches("[a-\xff]", "A"));  // From -1 to 97.
  CHECK(!matches("[a-\xff]", "b"));
}

TEST_CASE("no text at all matches one star, not two") {
  CHECK(matches("*", ""));
  CHECK(!matches("**", ""));
  CHECK(!matches("?", ""));
  CHECK(!matches("[^a]", ""));
}

TEST_CASE("many stars take no time") {
  std::string stars;
  for (int i = 0; i < 5'000; ++i) stars += "a*";
  CHECK(!matches(stars + "b", std::string(10'000, 'a')));
  CHECK(matches(stars + "b", std::string(10'000, 'a') + "b"));
  CHECK(matches(std::string(100'000, '*') + "b", std::string(1'000, 'a') + "b"));
}

}  // namespace kvstrata
