// Replies in both versions of RESP: the bytes that a Valkey 9.1 server was seen to send.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>

#include "transport/native/resp_writer.h"

namespace kvstrata {

namespace {

template <typename Write>
std::string written(RespVersion version, Write write) {
  ByteBuffer buffer;
  RespWriter writer(&buffer, version);
  write(writer);
  return std::string(as_text(buffer.view()));
}

template <typename Write>
void check(Write write, const std::string& resp2, const std::string& resp3) {
  CHECK(written(RespVersion::Resp2, write) == resp2);
  CHECK(written(RespVersion::Resp3, write) == resp3);
}

template <typename Write>
void check(Write write, const std::string& both) {
  check(write, both, both);
}

std::string double_text(double value) {
  std::string reply =
      written(RespVersion::Resp3, [=](RespWriter& writer) { writer.double_number(value); });
  CHECK(reply.starts_with(","));
  CHECK(reply.ends_with("\r\n"));
  return reply.substr(1, reply.size() - 3);
}

}  // namespace

TEST_CASE("lines, numbers and strings are the same in both versions") {
  check([](RespWriter& writer) { writer.simple_string("OK"); }, "+OK\r\n");
  check([](RespWriter& writer) { writer.error("ERR syntax error"); }, "-ERR syntax error\r\n");
  check([](RespWriter& writer) { writer.integer(12345); }, ":12345\r\n");
  check([](RespWriter& writer) { writer.integer(INT64_MIN); }, ":-9223372036854775808\r\n");
  check([](RespWriter& writer) { writer.bulk_string(as_bytes("Hello World")); },
        "$11\r\nHello World\r\n");
  check([](RespWriter& writer) { writer.bulk_string({}); }, "$0\r\n\r\n");
  check([](RespWriter& writer) { writer.array(3); }, "*3\r\n");
}

TEST_CASE("ends of lines in an error do not end the reply") {
  check([](RespWriter& writer) { writer.error("ERR unknown command 'a\r\n+OK\r\n'"); },
        "-ERR unknown command 'a  +OK  '\r\n");
}

TEST_CASE("a string's bytes may come from elsewhere") {
  auto in_parts = [](RespWriter& writer) {
    writer.begin_bulk_string(UINT64_C(1) << 40);
    writer.end_bulk_string();
  };
  check(in_parts, "$1099511627776\r\n\r\n");
}

TEST_CASE("what RESP2 lacks is folded into what it has") {
  check([](RespWriter& writer) { writer.null(); }, "$-1\r\n", "_\r\n");
  check([](RespWriter& writer) { writer.null_array(); }, "*-1\r\n", "_\r\n");
  check([](RespWriter& writer) { writer.map(3); }, "*6\r\n", "%3\r\n");
  check([](RespWriter& writer) { writer.set(3); }, "*3\r\n", "~3\r\n");
  check([](RespWriter& writer) { writer.push(2); }, "*2\r\n", ">2\r\n");
  check([](RespWriter& writer) { writer.boolean(true); }, ":1\r\n", "#t\r\n");
  check([](RespWriter& writer) { writer.boolean(false); }, ":0\r\n", "#f\r\n");
  check([](RespWriter& writer) { writer.double_number(3.141); }, "$5\r\n3.141\r\n", ",3.141\r\n");
  check([](RespWriter& writer) { writer.verbatim_string("This is a verbatim\nstring"); },
        "$25\r\nThis is a verbatim\nstring\r\n", "=29\r\ntxt:This is a verbatim\nstring\r\n");
}

TEST_CASE("replies follow each other in the buffer") {
  auto write = [](RespWriter& writer) {
    writer.map(1);
    writer.bulk_string(as_bytes("proto"));
    writer.integer(3);
  };
  check(write, "*2\r\n$5\r\nproto\r\n:3\r\n", "%1\r\n$5\r\nproto\r\n:3\r\n");
}

TEST_CASE("doubles are laid out as Valkey does") {
  struct Example {
    double value;
    const char* text;
  };
  for (auto [value, text] : std::initializer_list<Example>{
           {0, "0"},
           {-0.0, "0"},
           {-1, "-1"},
           {1e17, "100000000000000000"},
           {123456789012345680.0, "123456789012345680"},
           {4e18, "4000000000000000000"},
           {-6.906181212650734e+18, "-6906181212650734000"},
           {9e18, "9e+18"},
           {5.1234567891e18, "5.1234567891e+18"},
           {5.12345678912e18, "5123456789120000000"},
           {1e20, "1e+20"},
           {-1.5e20, "-1.5e+20"},
           {1.7976931348623157e308, "1.7976931348623157e+308"},
           {5e-324, "5e-324"},
           {1e-6, "0.000001"},
           {1e-7, "1e-7"},
           {1.1e-5, "0.000011"},
           {1.5e-6, "1.5e-6"},
           {-1.234567e-10, "-1.234567e-10"},
           {0.000123456789, "1.23456789e-4"},
           {0.3333333333333333, "0.3333333333333333"},
           {123.456, "123.456"},
           {1234567890.125, "1234567890.125"},
           {HUGE_VAL, "inf"},
           {-HUGE_VAL, "-inf"},
           {std::numeric_limits<double>::quiet_NaN(), "nan"},
       }) {
    CHECK(double_text(value) == text);
  }
}

}  // namespace kvstrata
