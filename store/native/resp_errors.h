// How many errors Valkey clients were answered, by the error's code.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

namespace kvstrata {

// Under a lock, since counts are read by others: only failures take it.
class RespErrors {
 public:
  // `error` is the text, its code first.
  void note(std::string_view error) {
    std::string code(error.substr(0, error.find_first_of(" \r\n")).substr(0, kCodeBytesMax));
    std::lock_guard lock(mutex_);
    if (counts_.size() < kCodesMax || counts_.contains(code)) ++counts_[code];
  }
  std::map<std::string, uint64_t> counts() const {
    std::lock_guard lock(mutex_);
    return counts_;
  }

 private:
  static constexpr size_t kCodesMax = 128;
  static constexpr size_t kCodeBytesMax = 32;

  mutable std::mutex mutex_;
  std::map<std::string, uint64_t> counts_;
};

}  // namespace kvstrata
