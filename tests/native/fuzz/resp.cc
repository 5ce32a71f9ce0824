// A Valkey client's stream: whatever its cuts, and whether large arguments are taken out of it or
// not, it holds the same commands and ends in the same fault. What is read of it several commands
// at a time is what is read one by one.
//
// The first byte is made of choices, the second says how the stream is cut.
#include "tests/native/fuzz/input.h"
#include "tests/native/transport/resp_owner.h"
#include "transport/native/resp_pipeline.h"

using namespace kvstrata;

namespace {

constexpr size_t kInputBytesMax = 8 * 1024;
constexpr RespLimits kSmallLimits{.argument_bytes_max = 1'000, .large_argument_bytes_min = 8};

// Feeds parts of up to `part_bytes_max`, of lengths that `seed` stirs.
RespOwner read_in_parts(Bytes stream, bool authenticated, bool diverts, size_t part_bytes_max,
                        uint32_t seed) {
  RespOwner owner(kSmallLimits, authenticated, diverts);
  while (!stream.empty()) {
    seed = seed * 1'664'525 + 1'013'904'223;
    size_t count = std::min<size_t>(1 + (seed >> 8) % part_bytes_max, stream.size());
    owner.feed(stream.first(count));
    stream = stream.subspan(count);
  }
  return owner;
}

void check_pipeline(Bytes stream) {
  RespPipeline pipeline;
  size_t count = pipeline.read(stream);
  if (count == 0) return;
  RespOwner one_by_one({}, true, false);
  one_by_one.feed(stream.first(pipeline.end(count - 1)));
  require(one_by_one.commands.size() == count, "another number of commands in a pipeline");
  require(one_by_one.unread_bytes() == 0, "a pipeline ends within a command");
  for (size_t index = 0; index < count; ++index) {
    RespArguments arguments = pipeline.arguments(index);
    const RespOwner::Words& words = one_by_one.commands[index];
    require(arguments.size() == words.size(), "another number of arguments in a pipeline");
    for (size_t at = 0; at < words.size(); ++at) {
      require(as_text(arguments[at]) == words[at], "another argument in a pipeline");
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2 || size > kInputBytesMax) return -1;
  std::vector<std::byte> stream = exact_copy(data + 2, size - 2);
  bool authenticated = (data[0] & 1) != 0;
  RespOwner whole(kSmallLimits, authenticated, false);
  whole.feed(stream);
  for (bool diverts : {false, true}) {
    RespOwner parts = read_in_parts(stream, authenticated, diverts, 1 + data[1] % 64, data[0]);
    require(parts.commands == whole.commands, "other commands when cut");
    require(parts.error == whole.error, "another fault when cut");
    require(parts.offered_count == whole.offered_count, "other large arguments when cut");
    require(parts.empty_count == whole.empty_count, "other empty requests when cut");
    bool same_rest =
        diverts || !whole.error.empty() || parts.unread_bytes() == whole.unread_bytes();
    require(same_rest, "another rest when cut");
  }
  check_pipeline(stream);
  require(whole.reader().held_bytes() <= 64 * 1024, "more memory than the bytes can need");
  return 0;
}
