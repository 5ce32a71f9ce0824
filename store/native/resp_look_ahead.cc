#include "store/native/resp_look_ahead.h"

#include <array>
#include <string_view>

#include "store/native/node.h"
#include "store/native/partition.h"
#include "store/native/shard.h"
#include "store/native/slot.h"

namespace kvstrata {

namespace {

// As many misses as a core can have under way, and few enough that nothing is evicted before use.
constexpr size_t kCommandCount = 16;
constexpr size_t kDigitsMax = 6;

// The number of a line "<mark>123\r\n" at `*at`, which goes on behind it. False for anything else.
bool read_line(std::string_view text, char mark, size_t* at, size_t* number) noexcept {
  size_t next = *at;
  if (next >= text.size() || text[next++] != mark) return false;
  size_t value = 0;
  size_t digits = next;
  while (next < text.size() && text[next] >= '0' && text[next] <= '9') {
    if (next - digits == kDigitsMax) return false;
    value = value * 10 + static_cast<size_t>(text[next++] - '0');
  }
  if (next == digits || text.substr(next, 2) != "\r\n") return false;
  *at = next + 2;
  *number = value;
  return true;
}

// The first argument behind the name of a whole command at `*at`, which goes on behind it.
bool read_command(std::string_view text, size_t* at, std::string_view* key) noexcept {
  size_t next = *at;
  size_t count = 0;
  if (!read_line(text, '*', &next, &count) || count < 2) return false;
  for (size_t index = 0; index < count; ++index) {
    size_t length = 0;
    if (!read_line(text, '$', &next, &length) || text.size() < next + length + 2) return false;
    if (index == 1) *key = text.substr(next, length);
    next += length + 2;
  }
  *at = next;
  return true;
}

}  // namespace

size_t look_ahead_resp(Shard& shard, PoolId pool, Bytes commands) noexcept {
  ObjectStore& store = shard.store();
  const Partition* partition = store.partition(pool);
  std::string_view text = as_text(commands);
  uint32_t shard_count = shard.node().shard_count();
  std::array<uint64_t, kCommandCount> hashes;
  size_t count = 0;
  size_t at = 0;
  std::string_view key;
  for (size_t seen = 0; seen < kCommandCount && read_command(text, &at, &key); ++seen) {
    bool is_here =
        shard_count == 1 || slot_shard(key_slot(as_bytes(key)), shard_count) == shard.index();
    if (is_here) hashes[count++] = store.hash(as_bytes(key));
  }
  // One alone gains nothing.
  if (count > 1 && partition != nullptr) {
    store.prefetch(*partition, std::span(hashes).first(count));
  }
  return at == 0 ? commands.size() : at;
}

}  // namespace kvstrata
