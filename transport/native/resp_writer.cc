#include "transport/native/resp_writer.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <charconv>
#include <cmath>
#include <cstring>
#include <string>

namespace kvstrata {

namespace {

constexpr std::string_view kLineEnd = "\r\n";
constexpr std::string_view kTextFormat = "txt:";

// The fewest digits that read back as the same number, laid out as Valkey does: in full where that
// takes few zeros, else with an exponent.
std::string lay_out(std::string digits, int exponent) {
  auto count = static_cast<int>(digits.size());
  int zeros = exponent + 1 - count;  // Behind the digits; negative: digits behind the point.
  if (zeros >= 0 && exponent < count + 7) return digits.append(static_cast<size_t>(zeros), '0');
  if (zeros < 0 && (zeros > -7 || std::abs(exponent) < 4)) {
    if (exponent < 0) digits.insert(0, static_cast<size_t>(-exponent), '0');
    return digits.insert(static_cast<size_t>(std::max(exponent, 0) + 1), 1, '.');
  }
  if (count > 1) digits.insert(1, 1, '.');
  return digits + (exponent < 0 ? "e-" : "e+") + std::to_string(std::abs(exponent));
}

std::string format(double value) {
  constexpr double kIntegerMax = 4611686018427387904.0;  // 2^62: up to here, in full.
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  if (std::trunc(value) == value && std::abs(value) <= kIntegerMax) {
    return std::to_string(static_cast<int64_t>(value));
  }
  std::array<char, 32> text;  // d.ddde-xxx, of up to 17 digits.
  char* end = std::to_chars(text.data(), text.data() + text.size(), std::abs(value),
                            std::chars_format::scientific)
                  .ptr;
  std::string_view whole(text.data(), static_cast<size_t>(end - text.data()));
  size_t mark = whole.find('e');
  std::string digits(whole.substr(0, mark));
  std::erase(digits, '.');
  int exponent = std::stoi(std::string(whole.substr(mark + 1)));
  std::string sign = value < 0 ? "-" : "";
  return sign.append(lay_out(std::move(digits), exponent));
}

// Room for every number, and the end of the line.
constexpr size_t kNumberLineBytesMax = 24;

char* put_line_end(char* at) noexcept {
  at[0] = '\r';
  at[1] = '\n';
  return at + kLineEnd.size();
}

char* put_number_line(char* at, char mark, int64_t number) noexcept {
  *at = mark;
  return put_line_end(std::to_chars(at + 1, at + kNumberLineBytesMax - 2, number).ptr);
}

}  // namespace

char* RespWriter::room_for(size_t count) { return reinterpret_cast<char*>(buffer_->extend(count)); }

void RespWriter::number_line(char mark, int64_t number) {
  size_t begin = buffer_->size();
  char* line = room_for(kNumberLineBytesMax);
  char* end = put_number_line(line, mark, number);
  buffer_->truncate(begin + static_cast<size_t>(end - line));
}

void RespWriter::ok() { append("+OK\r\n"); }

void RespWriter::simple_string(std::string_view text) {
  assert(text.find_first_of(kLineEnd) == text.npos);
  append("+");
  append(text);
  append(kLineEnd);
}

void RespWriter::error(std::string_view text) {
  text = text.substr(0, text.find_last_not_of(kLineEnd) + 1);
  append("-");
  size_t begin = buffer_->size();
  append(text);
  for (std::byte* at = buffer_->data() + begin; at != buffer_->data() + buffer_->size(); ++at) {
    if (*at == std::byte{'\r'} || *at == std::byte{'\n'}) *at = std::byte{' '};
  }
  append(kLineEnd);
}

void RespWriter::integer(int64_t value) { number_line(':', value); }

// All of it in one piece of the buffer, which most replies are.
void RespWriter::bulk_string(Bytes bytes) {
  size_t begin = buffer_->size();
  char* line = room_for(kNumberLineBytesMax + bytes.size() + kLineEnd.size());
  char* end = put_number_line(line, '$', static_cast<int64_t>(bytes.size()));
  if (!bytes.empty()) std::memcpy(end, bytes.data(), bytes.size());
  end = put_line_end(end + bytes.size());
  buffer_->truncate(begin + static_cast<size_t>(end - line));
}

void RespWriter::begin_bulk_string(uint64_t length) {
  number_line('$', static_cast<int64_t>(length));
}

void RespWriter::end_bulk_string() { append(kLineEnd); }

void RespWriter::verbatim_string(std::string_view text) {
  if (!is_resp3()) return bulk_string(as_bytes(text));
  number_line('=', static_cast<int64_t>(kTextFormat.size() + text.size()));
  append(kTextFormat);
  append(text);
  append(kLineEnd);
}

void RespWriter::double_number(double value) {
  std::string text = format(value);
  if (!is_resp3()) return bulk_string(as_bytes(text));
  append(",");
  append(text);
  append(kLineEnd);
}

void RespWriter::boolean(bool value) {
  if (!is_resp3()) return integer(value ? 1 : 0);
  append(value ? "#t\r\n" : "#f\r\n");
}

void RespWriter::null() { append(is_resp3() ? "_\r\n" : "$-1\r\n"); }

void RespWriter::null_array() { append(is_resp3() ? "_\r\n" : "*-1\r\n"); }

void RespWriter::array(uint64_t count) { number_line('*', static_cast<int64_t>(count)); }

void RespWriter::map(uint64_t count) {
  if (!is_resp3()) return array(2 * count);
  number_line('%', static_cast<int64_t>(count));
}

void RespWriter::set(uint64_t count) {
  number_line(is_resp3() ? '~' : '*', static_cast<int64_t>(count));
}

void RespWriter::push(uint64_t count) {
  number_line(is_resp3() ? '>' : '*', static_cast<int64_t>(count));
}

}  // namespace kvstrata
