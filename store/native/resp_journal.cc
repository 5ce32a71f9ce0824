#include "store/native/resp_journal.h"

#include <algorithm>
#include <chrono>
#include <limits>

namespace kvstrata {

namespace {

// As Valkey keeps them.
constexpr size_t kArgumentCountMax = 32;
constexpr size_t kArgumentBytesMax = 128;
constexpr size_t kSpikeCountMax = 160;

int64_t unix_seconds() noexcept {
  auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(now).count();
}

std::vector<std::string> shorten(const RespArguments& arguments) {
  std::vector<std::string> texts;
  size_t count = std::min(arguments.size(), kArgumentCountMax);
  for (size_t index = 0; index < count; ++index) {
    std::string_view text = as_text(arguments[index]);
    bool is_last = index + 1 == kArgumentCountMax;
    if (is_last && arguments.size() > kArgumentCountMax) {
      size_t left = arguments.size() - kArgumentCountMax + 1;
      texts.push_back("... (" + std::to_string(left) + " more arguments)");
    } else if (text.size() > kArgumentBytesMax) {
      std::string more = std::to_string(text.size() - kArgumentBytesMax);
      texts.push_back(std::string(text.substr(0, kArgumentBytesMax)) + "... (" + more +
                      " more bytes)");
    } else {
      texts.emplace_back(text);
    }
  }
  return texts;
}

}  // namespace

void RespJournal::note_slow(const RespArguments& arguments, uint64_t nanoseconds,
                            const std::string& peer, const std::string& name,
                            const std::string& pool, bool is_fast_command) {
  std::lock_guard lock(mutex_);
  uint64_t us = nanoseconds / 1000;
  if (slow_us_ >= 0 && us >= static_cast<uint64_t>(slow_us_) && slow_count_max_ != 0) {
    slow_.push_back({next_id_++, unix_seconds(), us, shorten(arguments), peer, name, pool});
    while (slow_.size() > slow_count_max_) slow_.pop_front();
  }
  if (spike_ms_ == 0 || us / 1000 < spike_ms_) return;
  Spikes& spikes = spikes_[is_fast_command ? "fast-command" : "command"];
  int64_t now = unix_seconds();
  if (!spikes.empty() && spikes.back().first == now) {
    spikes.back().second = std::max(spikes.back().second, us / 1000);
    return;
  }
  spikes.emplace_back(now, us / 1000);
  if (spikes.size() > kSpikeCountMax) spikes.pop_front();
}

std::vector<RespJournal::SlowCommand> RespJournal::slow_commands() const {
  std::lock_guard lock(mutex_);
  return {slow_.rbegin(), slow_.rend()};
}

void RespJournal::clear_slow_commands() {
  std::lock_guard lock(mutex_);
  slow_.clear();
}

void RespJournal::set_slow_log(int64_t threshold_us, uint64_t length_max) {
  std::lock_guard lock(mutex_);
  slow_us_ = threshold_us;
  slow_count_max_ = length_max;
  while (slow_.size() > slow_count_max_) slow_.pop_front();
  update_interest();
}

std::map<std::string, RespJournal::Spikes> RespJournal::spikes() const {
  std::lock_guard lock(mutex_);
  return spikes_;
}

uint64_t RespJournal::clear_spikes(const std::vector<std::string>& events) {
  std::lock_guard lock(mutex_);
  uint64_t count = spikes_.size();
  if (events.empty()) {
    spikes_.clear();
    return count;
  }
  count = 0;
  for (const std::string& event : events) count += spikes_.erase(event);
  return count;
}

void RespJournal::set_spike_threshold(uint64_t milliseconds) {
  std::lock_guard lock(mutex_);
  spike_ms_ = milliseconds;
  update_interest();
}

void RespJournal::update_interest() noexcept {
  uint64_t interesting = std::numeric_limits<uint64_t>::max();
  if (slow_us_ >= 0) interesting = static_cast<uint64_t>(slow_us_) * 1000;
  if (spike_ms_ != 0) interesting = std::min(interesting, spike_ms_ * 1'000'000);
  interesting_ns_.store(interesting, std::memory_order_relaxed);
}

}  // namespace kvstrata
