// Free runs of equal units, in bins by their length, so that the best fit is found by a bit scan:
// one bin per length up to kExact, eight per doubling above, up to kLengthMax. Runs are numbers;
// their links and lengths lie with whoever cuts the runs.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "tiering/native/index_list.h"

namespace kvstrata {

// `exact` is a power of two, 8 or more.
constexpr uint32_t length_bin(uint32_t length, uint32_t exact) noexcept {
  if (length <= exact) return length - 1;
  uint32_t doubling = std::bit_width(length) - std::bit_width(exact);
  uint32_t eighth = length >> (std::bit_width(length) - 4) & 7;
  return exact + doubling * 8 + eighth;
}

template <uint32_t kExact, uint32_t kLengthMax>
class LengthBins {
 public:
  LengthBins() noexcept { heads_.fill(kListEnd); }

  template <typename LinksOf>
  void insert(uint32_t run, uint32_t length, LinksOf&& links) noexcept {
    uint32_t bin = length_bin(length, kExact);
    list_push_front(&heads_[bin], run, links);
    filled_[bin / 64] |= uint64_t{1} << bin % 64;
  }

  template <typename LinksOf>
  void remove(uint32_t run, uint32_t length, LinksOf&& links) noexcept {
    uint32_t bin = length_bin(length, kExact);
    list_remove(&heads_[bin], run, links);
    if (heads_[bin] == kListEnd) filled_[bin / 64] &= ~(uint64_t{1} << bin % 64);
  }

  // A run of at least `length`, none of the bins below having one; kListEnd if there is none.
  // `links` and `length_of` tell of a run.
  template <typename LinksOf, typename LengthOf>
  uint32_t find(uint32_t length, LinksOf&& links, LengthOf&& length_of) const noexcept {
    uint32_t bin = length_bin(length, kExact);
    if (length > kExact) {
      // Its own bin may hold shorter runs too.
      uint32_t best = kListEnd;
      for (uint32_t run = heads_[bin]; run != kListEnd; run = links(run).next) {
        if (length_of(run) < length) continue;
        if (best == kListEnd || length_of(run) < length_of(best)) best = run;
      }
      if (best != kListEnd) return best;
      ++bin;
    }
    uint64_t mask = ~uint64_t{0} << bin % 64;
    for (uint32_t word = bin / 64; word < kWordCount; ++word, mask = ~uint64_t{0}) {
      uint64_t filled = filled_[word] & mask;
      if (filled != 0) return heads_[word * 64 + static_cast<uint32_t>(std::countr_zero(filled))];
    }
    return kListEnd;
  }

 private:
  static_assert(std::has_single_bit(kExact) && kExact >= 8);
  static constexpr uint32_t kBinCount = length_bin(kLengthMax, kExact) + 1;
  // Room for a search that begins behind the last bin, and finds nothing there.
  static constexpr uint32_t kWordCount = kBinCount / 64 + 1;

  std::array<uint32_t, kBinCount> heads_;
  std::array<uint64_t, kWordCount> filled_{};
};

}  // namespace kvstrata
