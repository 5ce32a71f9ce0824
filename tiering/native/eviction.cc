#include "tiering/native/eviction.h"

#include "tiering/native/eviction_lru.h"
#include "tiering/native/eviction_s3fifo.h"

namespace kvstrata {

std::unique_ptr<EvictionPolicy> make_eviction_policy(EvictionKind kind, EvictionSource* source) {
  switch (kind) {
    case EvictionKind::None:
      return nullptr;
    case EvictionKind::Lru:
      return std::make_unique<LruPolicy>(source);
    case EvictionKind::S3Fifo:
      return std::make_unique<S3FifoPolicy>(source);
  }
  return nullptr;
}

}  // namespace kvstrata
