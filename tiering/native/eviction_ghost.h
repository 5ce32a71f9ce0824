// Fingerprints of the keys that were evicted last, two bytes each.
//
// Keys are spread over buckets of 32 by their hash; a bucket forgets its oldest when it is full.
// As hashes are even, that forgets in nearly the order of a single queue, without links or times.
// A stranger passes for a ghost about once in 2,000 times.
#pragma once

#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>

namespace kvstrata {

class GhostSet {
 public:
  // Keeps room for at least this many keys. When the number has grown by a quarter or fallen to
  // a third, all are forgotten.
  void fit(uint64_t key_count);
  void insert(uint64_t hash);
  bool erase(uint64_t hash);  // True if the key was there.
  uint64_t memory_bytes() const { return bucket_count_ * sizeof(Bucket); }

 private:
  using Bucket = std::array<uint16_t, 32>;  // The latest first; 0 is empty.
  struct Free {
    void operator()(Bucket* buckets) const { std::free(buckets); }
  };

  Bucket& bucket(uint64_t hash) const { return buckets_.get()[(hash >> 32) * bucket_count_ >> 32]; }

  std::unique_ptr<Bucket, Free> buckets_;
  uint64_t bucket_count_ = 0;
};

}  // namespace kvstrata
