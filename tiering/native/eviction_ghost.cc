#include "tiering/native/eviction_ghost.h"

#include <algorithm>

namespace kvstrata {
namespace {

uint16_t fingerprint(uint64_t hash) { return std::max<uint16_t>(1, static_cast<uint16_t>(hash)); }

}  // namespace

void GhostSet::fit(uint64_t key_count) {
  const uint64_t wanted = key_count / std::tuple_size_v<Bucket> + 1;
  if (bucket_count_ >= wanted && bucket_count_ / 4 <= wanted) return;
  // A quarter more, so that small changes do not forget. calloc hands out large areas
  // unpopulated: no pause, however many keys.
  const uint64_t count = wanted + wanted / 4;
  auto* buckets = static_cast<Bucket*>(std::calloc(count, sizeof(Bucket)));
  if (buckets == nullptr) return;  // Remembering less is not wrong.
  buckets_.reset(buckets);
  bucket_count_ = count;
}

void GhostSet::insert(uint64_t hash) {
  if (bucket_count_ == 0) return;
  Bucket& keys = bucket(hash);
  std::copy_backward(keys.begin(), keys.end() - 1, keys.end());
  keys.front() = fingerprint(hash);
}

bool GhostSet::erase(uint64_t hash) {
  if (bucket_count_ == 0) return false;
  Bucket& keys = bucket(hash);
  const auto found = std::find(keys.begin(), keys.end(), fingerprint(hash));
  if (found == keys.end()) return false;
  std::copy(found + 1, keys.end(), found);
  keys.back() = 0;
  return true;
}

}  // namespace kvstrata
