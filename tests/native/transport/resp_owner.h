// A reader's owner as a session is one, which writes down what it reads: keeps what is not used up,
// and takes large arguments out of the stream where it is told to.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "transport/native/resp_reader.h"

namespace kvstrata {

class RespOwner {
 public:
  using Words = std::vector<std::string>;

  RespOwner(const RespLimits& limits, bool authenticated, bool diverts)
      : reader_(limits), diverts_(diverts) {
    reader_.set_authenticated(authenticated);
  }

  // What has come is moved at every call to memory of just its size, so that a view of where it
  // was, or beyond its end, does not go unseen.
  void feed(Bytes part) {
    std::vector<std::byte> bytes(unread_);
    bytes.insert(bytes.end(), part.begin(), part.end());
    Bytes rest = bytes;
    while (error.empty()) {
      size_t taken = value_left_ != 0 ? take_value(rest) : read(rest);
      if (taken == 0) break;
      rest = rest.subspan(taken);
    }
    unread_.assign(rest.begin(), rest.end());
  }
  size_t unread_bytes() const { return unread_.size(); }
  const RespReader& reader() const { return reader_; }

  std::vector<Words> commands;
  std::string error;
  size_t offered_count = 0;
  size_t empty_count = 0;

 private:
  // Returns how many bytes were used up; 0 when more are needed.
  size_t read(Bytes bytes) {
    size_t used = 0;
    RespEvent event = reader_.read(bytes, &used);
    while (event == RespEvent::LargeArgument) {
      ++offered_count;
      if (diverts_) return divert();
      event = reader_.read(bytes, &used);
    }
    if (event == RespEvent::Fault) error = reader_.error();
    if (event == RespEvent::Empty) ++empty_count;
    if (event == RespEvent::Command) write_down();
    return used;
  }
  size_t divert() {
    values_.emplace_back(reader_.arguments().size(), "");
    value_left_ = reader_.large_argument_bytes();
    return reader_.divert();
  }
  size_t take_value(Bytes bytes) {
    size_t count = std::min<size_t>(value_left_, bytes.size());
    values_.back().second += as_text(bytes.first(count));
    value_left_ -= count;
    return count;
  }
  void write_down() {
    Words& words = commands.emplace_back();
    RespArguments arguments = reader_.arguments();
    for (size_t i = 0; i < arguments.size(); ++i) words.emplace_back(as_text(arguments[i]));
    for (auto& [index, value] : values_) words[index] = std::move(value);
    values_.clear();
  }

  RespReader reader_;
  bool diverts_;
  std::vector<std::byte> unread_;
  uint64_t value_left_ = 0;
  std::vector<std::pair<size_t, std::string>> values_;  // Diverted, by their place.
};

}  // namespace kvstrata
