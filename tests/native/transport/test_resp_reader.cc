// Commands from a stream: the same whatever its cuts, and what bounds them. Every text of an error
// is what a Valkey 9.1 server was seen to answer.
#include <doctest/doctest.h>

#include <random>

#include "tests/native/transport/resp_owner.h"
#include "transport/native/resp_reader.h"
#include "transport/native/resp_writer.h"

namespace kvstrata {

namespace {

using Words = RespOwner::Words;
using namespace std::string_literals;

struct Reading {
  std::vector<Words> commands;
  std::string error;
  bool operator==(const Reading&) const = default;
};

struct Way {
  bool authenticated = true;
  bool diverts = false;
  RespLimits limits = {};
};

// `cuts`: lengths of the parts, the last of which is repeated.
Reading read(std::string_view stream, const std::vector<size_t>& cuts, const Way& way) {
  RespOwner owner(way.limits, way.authenticated, way.diverts);
  for (size_t i = 0; !stream.empty(); ++i) {
    size_t count = std::min(cuts[std::min(i, cuts.size() - 1)], stream.size());
    owner.feed(as_bytes(stream.substr(0, count)));
    stream.remove_prefix(count);
  }
  return {owner.commands, owner.error};
}

// The same in one part, in two with every cut, and byte by byte.
Reading read_all_ways(const std::string& stream, const Way& way = {}) {
  Reading whole = read(stream, {stream.size()}, way);
  for (size_t cut = 1; cut < stream.size(); ++cut) {
    CAPTURE(cut);
    CHECK(read(stream, {cut, stream.size()}, way) == whole);
  }
  CHECK(read(stream, {1}, way) == whole);
  return whole;
}

std::string error_of(const std::string& stream, const Way& way = {}) {
  Reading reading = read_all_ways(stream, way);
  CHECK(reading.commands.empty());
  return reading.error;
}

std::string encode(const Words& words) {
  ByteBuffer stream;
  RespWriter writer(&stream, RespVersion::Resp2);  // A command has a reply's form.
  writer.array(words.size());
  for (const std::string& word : words) writer.bulk_string(as_bytes(word));
  return std::string(as_text(stream.view()));
}

const std::string kNotACount = "ERR Protocol error: invalid multibulk length";
const std::string kNotALength = "ERR Protocol error: invalid bulk length";
const std::string kNoLineEnd = "ERR Protocol error: invalid CRLF in request";

}  // namespace

TEST_CASE("commands are the same whatever the cuts of the stream") {
  std::vector<Words> commands = {
      {"PING"}, {"SET", "key", "value", "EX", "10"},          {"GET", ""},
      {""},     {"SET", "\0\r\n$*"s, "*1\r\n$4\r\nPING\r\n"}, {"ECHO", std::string(30, 'x')}};
  std::string stream;
  for (const Words& words : commands) stream += encode(words);
  for (bool diverts : {false, true}) {
    Reading reading = read_all_ways(stream, {.diverts = diverts, .limits = {1000, 5}});
    CHECK(reading.commands == commands);
    CHECK(reading.error.empty());
  }
}

TEST_CASE("inline commands stand among the others") {
  Reading reading = read_all_ways("PING\r\n" + encode({"GET", "a"}) + "SET 'b c' \"\\x00\"\n");
  CHECK(reading.commands == std::vector<Words>{{"PING"}, {"GET", "a"}, {"SET", "b c", "\0"s}});
  // The end of the line is none of its bytes.
  CHECK(read_all_ways("ECHO \"a\\\"\r\n").commands == std::vector<Words>{{"ECHO", "a\\"}});
}

TEST_CASE("the words of an inline command are kept no longer than it") {
  RespOwner owner({}, true, false);
  for (int i = 0; i < 1000; ++i) owner.feed(as_bytes("ECHO something\n"));
  CHECK(owner.commands.size() == 1000);
  CHECK(owner.reader().held_bytes() <= 1024);
}

TEST_CASE("requests without arguments are passed over") {
  std::string stream = "\r\n\n  \t\r\n*0\r\n*-1\r\n*-9223372036854775808\r\n";
  CHECK(read_all_ways(stream + "PING\r\n").commands == std::vector<Words>{{"PING"}});
  RespOwner owner({}, true, false);
  owner.feed(as_bytes(stream));
  CHECK(owner.empty_count == 6);
  CHECK(owner.unread_bytes() == 0);
}

TEST_CASE("a count that is none ends the stream") {
  for (std::string count : {"abc", "", "-0", "+1", "01", " 1", "1 ", "1048577",
                            "9223372036854775808", "-9223372036854775809", "\0"}) {
    CAPTURE(count);
    CHECK(error_of("*" + count + "\r\n") == kNotACount);
  }
  CHECK(error_of("*1\r.") == kNoLineEnd);
}

TEST_CASE("a length that is none ends the stream") {
  for (std::string length : {"abc", "", "-1", "+4", "04", "536870913", "9223372036854775808"}) {
    CAPTURE(length);
    CHECK(error_of("*1\r\n$" + length + "\r\nPING\r\n") == kNotALength);
  }
  CHECK(error_of("*1\r\n$4\r.PING\r\n") == kNoLineEnd);
  for (std::string end : {"xx", "\rx", "x\n", "\n\r"}) {
    CHECK(error_of("*1\r\n$4\r\nPING" + end) == kNoLineEnd);
  }
}

TEST_CASE("what stands where a length should is quoted") {
  for (char found : {'f', '*', '%', '\xff', '\0', '\r', '\n'}) {
    CAPTURE(found);
    std::string error = error_of("*1\r\n"s + found + "oo\r\n");
    CHECK(error == "ERR Protocol error: expected '$', got '"s + found + "'");
  }
}

TEST_CASE("nothing is read behind a fault") {
  RespOwner owner({}, true, false);
  owner.feed(as_bytes("*1\r\n$4\r\nPING\r\n*x\r\n*1\r\n$4\r\nPING\r\n"));
  CHECK(owner.commands == std::vector<Words>{{"PING"}});
  CHECK(owner.error == kNotACount);
  RespReader reader;
  size_t used = 1;
  CHECK(reader.read(as_bytes("*x\r\n"), &used) == RespEvent::Fault);
  CHECK(reader.read(as_bytes("PING\r\n"), &used) == RespEvent::Fault);
  CHECK(used == 0);
  CHECK(reader.error() == kNotACount);
}

TEST_CASE("a line of 65,536 bytes is read, of one more refused, however it comes") {
  auto error_of_line = [](const std::string& line, const std::string& end) {
    std::string inside = read(line + end, {line.size() + end.size()}, {}).error;
    CHECK(read(line + end, {1000}, {}).error == inside);
    CHECK(read(line + end, {line.size(), 1}, {}).error == inside);
    return inside;
  };
  std::string longest(65'535, '1');
  CHECK(error_of_line("P" + longest, "\n") == "");
  CHECK(error_of_line("P1" + longest, "") == "ERR Protocol error: too big inline request");
  CHECK(error_of_line("P1" + longest, "\r\n") == "ERR Protocol error: too big inline request");
  CHECK(error_of_line("*" + longest, "\r\n") == kNotACount);
  CHECK(error_of_line("*1" + longest, "") == "ERR Protocol error: too big mbulk count string");
  CHECK(error_of_line("*1" + longest, "\r\n") == "ERR Protocol error: too big mbulk count string");
  CHECK(error_of_line("*1\r\n$" + longest, "\r\n") == kNotALength);
  for (char mark : {'$', 'f'}) {
    CHECK(error_of_line("*1\r\n"s + mark + "1" + longest, "") ==
          "ERR Protocol error: too big bulk count string");
  }
}

TEST_CASE("who has not authenticated may send little") {
  Way stranger{.authenticated = false};
  CHECK(error_of("*10\r\n", stranger) == "");
  CHECK(error_of("*11\r\n", stranger) == "ERR Protocol error: unauthenticated multibulk length");
  CHECK(error_of("*1048577\r\n", stranger) == kNotACount);
  CHECK(error_of("*1\r\n$16384\r\n", stranger) == "");
  CHECK(error_of("*1\r\n$16385\r\n", stranger) ==
        "ERR Protocol error: unauthenticated bulk length");
  CHECK(error_of("*1\r\n$536870913\r\n", stranger) == kNotALength);
  RespReader reader;
  size_t used = 0;
  std::string auth = encode({"AUTH", "secret"});
  CHECK(reader.read(as_bytes(auth), &used) == RespEvent::Command);
  reader.set_authenticated(true);
  CHECK(reader.read(as_bytes("*11\r\n"), &used) == RespEvent::Partial);
}

TEST_CASE("the bound on an argument's bytes is the owner's") {
  Way way{.limits = {.argument_bytes_max = 5}};
  CHECK(read_all_ways(encode({"12345"}), way).commands == std::vector<Words>{{"12345"}});
  CHECK(error_of(encode({"123456"}), way) == kNotALength);
}

TEST_CASE("arguments lie in the bytes given") {
  RespReader reader;
  reader.set_authenticated(true);
  std::string stream = encode({"SET", "key", "value"});
  size_t used = 0;
  REQUIRE(reader.read(as_bytes(stream), &used) == RespEvent::Command);
  CHECK(used == stream.size());
  RespArguments arguments = reader.arguments();
  REQUIRE(arguments.size() == 3);
  CHECK(as_text(arguments[1]).data() == stream.data() + stream.find("key"));
  CHECK(as_text(arguments[2]).data() == stream.data() + stream.find("value"));
}

TEST_CASE("a large argument is offered once, with those before it") {
  std::string stream = encode({"SET", "key", std::string(16'384, 'v'), "NX"});
  size_t begin = stream.find('v');
  RespReader reader;
  reader.set_authenticated(true);
  size_t used = 0;
  CHECK(reader.read(as_bytes(stream).first(begin - 1), &used) == RespEvent::Partial);
  REQUIRE(reader.read(as_bytes(stream).first(begin), &used) == RespEvent::LargeArgument);
  CHECK(used == 0);
  CHECK(reader.large_argument_bytes() == 16'384);
  REQUIRE(reader.arguments().size() == 2);
  CHECK(as_text(reader.arguments()[1]) == "key");

  SUBCASE("and may be read like others") {
    CHECK(reader.read(as_bytes(stream).first(begin), &used) == RespEvent::Partial);
    CHECK(reader.read(as_bytes(stream), &used) == RespEvent::Command);
    CHECK(used == stream.size());
    CHECK(reader.arguments()[2].size() == 16'384);
  }
  SUBCASE("and may be taken out") {
    CHECK(reader.divert() == begin);
    stream = stream.substr(begin + reader.large_argument_bytes());
    CHECK(reader.read({}, &used) == RespEvent::Partial);
    REQUIRE(reader.read(as_bytes(stream), &used) == RespEvent::Command);
    CHECK(used == stream.size());
    RespArguments arguments = reader.arguments();
    REQUIRE(arguments.size() == 4);
    CHECK(as_text(arguments[0]) == "SET");
    CHECK(as_text(arguments[1]) == "key");
    CHECK(arguments[2].empty());
    CHECK(as_text(arguments[3]) == "NX");
  }
  SUBCASE("and must end as others do") {
    reader.divert();
    CHECK(reader.read(as_bytes("\r."), &used) == RespEvent::Fault);
    CHECK(reader.error() == kNoLineEnd);
  }
}

TEST_CASE("a command's name is never offered") {
  RespOwner owner({1000, 5}, true, true);
  owner.feed(as_bytes(encode({"a long name", "a long key", "tiny", "a long value"})));
  CHECK(owner.offered_count == 2);
  CHECK(owner.commands ==
        std::vector<Words>{{"a long name", "a long key", "tiny", "a long value"}});
}

TEST_CASE("random commands in random parts are what was sent") {
  std::mt19937 random(42);
  auto below = [&](size_t end) {
    return std::uniform_int_distribution<size_t>(0, end - 1)(random);
  };
  for (int round = 0; round < 200; ++round) {
    CAPTURE(round);
    std::vector<Words> commands(1 + below(20));
    std::string stream;
    for (Words& words : commands) {
      words.resize(1 + below(6));
      for (std::string& word : words) {
        word.resize(below(8) == 0 ? below(300) : below(12));
        for (char& each : word) each = "\r\n$*1a\0\xff"[below(8)];
      }
      stream += encode(words);
    }
    std::vector<size_t> cuts(stream.size());
    for (size_t& cut : cuts) cut = 1 + below(1 + below(100));
    for (bool diverts : {false, true}) {
      Reading reading = read(stream, cuts, {.diverts = diverts, .limits = {1000, 40}});
      CHECK(reading.commands == commands);
      CHECK(reading.error.empty());
    }
  }
}

TEST_CASE("a million commands in one pipeline need no memory but their bytes'") {
  constexpr size_t kCommandCount = 1'000'000;
  constexpr size_t kPartBytes = 16'000;
  std::string stream;
  for (size_t i = 0; i < kCommandCount; ++i) {
    stream += encode({"GET", "key:" + std::to_string(i)});
  }
  RespReader reader;
  reader.set_authenticated(true);
  ByteBuffer unread;
  size_t count = 0;
  size_t unexpected_count = 0;
  for (std::string_view rest = stream; !rest.empty();) {
    std::string_view part = rest.substr(0, kPartBytes);
    rest.remove_prefix(part.size());
    unread.append(as_bytes(part));
    size_t begin = 0;
    size_t used = 0;
    while (reader.read(unread.view().subspan(begin), &used) == RespEvent::Command) {
      RespArguments arguments = reader.arguments();
      bool expected =
          arguments.size() == 2 && as_text(arguments[1]) == "key:" + std::to_string(count);
      if (!expected) ++unexpected_count;
      ++count;
      begin += used;
    }
    unread.erase_front(begin);
  }
  CHECK(count == kCommandCount);
  CHECK(unexpected_count == 0);
  CHECK(unread.empty());
  CHECK(unread.capacity() <= 2 * kPartBytes + 768);
  CHECK(reader.held_bytes() <= 64);
}

TEST_CASE("a command of the most arguments is read from parts, and its memory given back") {
  std::string stream = "*1048576\r\n";
  RespOwner owner({}, true, false);
  owner.feed(as_bytes(stream));
  CHECK(owner.reader().held_bytes() == 0);  // What the count promises takes nothing.

  for (int i = 0; i < 1'048'576; ++i) stream += "$1\r\nx\r\n";
  RespReader reader;
  reader.set_authenticated(true);
  size_t used = 0;
  for (size_t come = 1000; come < stream.size(); come += 1000) {
    REQUIRE(reader.read(as_bytes(stream).first(come), &used) == RespEvent::Partial);
  }
  reader.release_memory();  // Within a command, nothing may be lost.
  REQUIRE(reader.read(as_bytes(stream), &used) == RespEvent::Command);
  CHECK(used == stream.size());
  CHECK(reader.arguments().size() == 1'048'576);
  CHECK(as_text(reader.arguments()[1'048'575]) == "x");
  CHECK(reader.held_bytes() <= 8 * stream.size());
  reader.release_memory();
  CHECK(reader.held_bytes() == 0);
  CHECK(reader.read(as_bytes("PING\r\n"), &used) == RespEvent::Command);
  CHECK(as_text(reader.arguments()[0]) == "PING");
}

}  // namespace kvstrata
