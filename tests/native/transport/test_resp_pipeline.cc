// Commands read several at a time: those that a reader reads one by one, as far as they are plain.
#include <doctest/doctest.h>

#include <memory>
#include <random>

#include "tests/native/transport/resp_owner.h"
#include "transport/native/resp_pipeline.h"
#include "transport/native/resp_writer.h"

namespace kvstrata {

namespace {

using Words = RespOwner::Words;
using namespace std::string_literals;

std::string encode(const Words& words) {
  ByteBuffer stream;
  RespWriter writer(&stream, RespVersion::Resp2);  // A command has a reply's form.
  writer.array(words.size());
  for (const std::string& word : words) writer.bulk_string(as_bytes(word));
  return std::string(as_text(stream.view()));
}

// From memory of just the stream's size, so that a look beyond its end does not go unseen.
std::vector<Words> read_pipeline(std::string_view stream, size_t* used) {
  std::vector<std::byte> bytes(as_bytes(stream).begin(), as_bytes(stream).end());
  auto pipeline = std::make_unique<RespPipeline>();
  size_t count = pipeline->read(bytes);
  std::vector<Words> commands;
  for (size_t index = 0; index < count; ++index) {
    RespArguments arguments = pipeline->arguments(index);
    Words& words = commands.emplace_back();
    for (size_t at = 0; at < arguments.size(); ++at) words.emplace_back(as_text(arguments[at]));
    *used = pipeline->end(index);
  }
  return commands;
}

size_t count_read(const std::string& stream) {
  size_t used = 0;
  return read_pipeline(stream, &used).size();
}

// Whatever stands in the stream: a prefix of what a reader makes of it, and of its bytes.
size_t check_against_reader(const std::string& stream) {
  size_t used = 0;
  std::vector<Words> commands = read_pipeline(stream, &used);
  RespOwner whole({}, true, false);
  whole.feed(as_bytes(stream.substr(0, used)));
  CHECK(whole.commands == commands);
  CHECK(whole.unread_bytes() == 0);
  CHECK(whole.empty_count == 0);
  CHECK(whole.error.empty());
  return commands.size();
}

}  // namespace

TEST_CASE("whole commands are read until sixteen are") {
  std::string stream;
  std::vector<Words> commands;
  for (int i = 0; i < 17; ++i) {
    commands.push_back({"SET", "key" + std::to_string(i), "\0\r\n$*"s, ""});
    stream += encode(commands.back());
  }
  size_t used = 0;
  std::vector<Words> read = read_pipeline(stream, &used);
  CHECK(read == std::vector<Words>(commands.begin(), commands.begin() + 16));
  CHECK(stream.substr(used) == encode(commands.back()));
}

TEST_CASE("what is not plain ends a pipeline, and is not read") {
  std::string plain = encode({"GET", "a"});
  std::string longest(16'383, 'x');
  CHECK(count_read(plain + encode({"SET", "a", longest}) + plain) == 3);
  CHECK(count_read(encode(Words(128, "x"))) == 1);
  for (const std::string& other :
       {"GET a\r\n"s, "\r\n"s, "*0\r\n"s, "*-1\r\n"s, "*01\r\n$4\r\nPING\r\n"s,
        "*1\r\n$04\r\nPING\r\n"s, "*1\r\n$00\r\n\r\n"s, "*1\r\n$-1\r\n"s, "*1\r\n$\r\n\r\n"s,
        "*1\r\n$4\r\nPINGxx"s, "*1\r.$4\r\nPING\r\n"s, "*1\r\n+4\r\nPING\r\n"s,
        "*1\r\n$18446744073709551620\r\nPING\r\n"s, encode({"SET", "a", longest + "x"}),
        encode(Words(129, "x"))}) {
    CAPTURE(other);
    CHECK(count_read(plain + other + plain) == 1);
    CHECK(count_read(other + plain) == 0);
  }
}

TEST_CASE("a command that is cut anywhere is not read") {
  std::string plain = encode({"GET", "a"});
  std::string cut = encode({"SET", "key:1", "123456789012", ""});
  for (size_t length = 0; length < cut.size(); ++length) {
    CAPTURE(length);
    CHECK(count_read(plain + cut.substr(0, length)) == 1);
  }
  CHECK(count_read(plain + cut) == 2);
}

TEST_CASE("whatever a stream holds, a reader reads the same of it") {
  std::mt19937 random(20);
  const std::vector<std::string> parts = {"*1\r\n",
                                          "*2\r\n",
                                          "*10\r\n",
                                          "*",
                                          "$",
                                          "1",
                                          "0",
                                          "$1\r\n",
                                          "$0\r\n",
                                          "$10\r\n",
                                          "\r\n",
                                          "x",
                                          "\r",
                                          "\n",
                                          "-1",
                                          "xx",
                                          "x\r\n",
                                          "0123456789\r\n",
                                          encode({"GET", "a"}),
                                          encode({"SET", "a", ""}),
                                          "PING\r\n"};
  size_t read_count = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string stream;
    size_t length = 1 + random() % 20;
    for (size_t i = 0; i < length; ++i) stream += parts[random() % parts.size()];
    CAPTURE(stream);
    read_count += check_against_reader(stream);
  }
  CHECK(read_count > 1'000);
}

}  // namespace kvstrata
