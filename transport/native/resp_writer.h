// Replies to Valkey clients, in the version of RESP that the client asked for. What RESP2 lacks
// becomes what Valkey makes of it there: maps and sets are arrays, the rest strings and integers.
#pragma once

#include <string_view>

#include "transport/native/bytes.h"

namespace kvstrata {

enum class RespVersion : uint8_t { Resp2 = 2, Resp3 = 3 };

// Appends to a buffer, of which it keeps nothing. Everything throws std::bad_alloc.
class RespWriter {
 public:
  RespWriter(ByteBuffer* buffer, RespVersion version) noexcept
      : buffer_(buffer), version_(version) {}

  // What most commands that change something answer.
  void ok();
  // One line: `text` must not hold the end of one.
  void simple_string(std::string_view text);
  // `text` begins with its code: "ERR syntax error". What it quotes may hold ends of lines, which
  // would end the reply: they become spaces, and at the end of it, nothing.
  void error(std::string_view text);
  void integer(int64_t value);
  void bulk_string(Bytes bytes);
  // For bytes that are sent from where they lie, `length` of them between these two.
  void begin_bulk_string(uint64_t length);
  void end_bulk_string();
  // Text for people to read, such as INFO's.
  void verbatim_string(std::string_view text);
  void double_number(double value);
  void boolean(bool value);

  // Nothing where a string, or an array, would have been.
  void null();
  void null_array();

  // What is to follow: `count` replies; of a map, `count` pairs of them.
  void array(uint64_t count);
  void map(uint64_t count);
  void set(uint64_t count);
  void push(uint64_t count);

 private:
  bool is_resp3() const noexcept { return version_ == RespVersion::Resp3; }
  char* room_for(size_t count);
  void number_line(char mark, int64_t number);
  void append(std::string_view text) { buffer_->append(as_bytes(text)); }

  ByteBuffer* buffer_;
  RespVersion version_;
};

}  // namespace kvstrata
