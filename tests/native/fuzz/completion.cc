// Outcomes of every kind, as a client reads them.
#include "tests/native/fuzz/input.h"

using namespace kvstrata;

namespace {

template <typename Outcome>
void read_all(Bytes body) {
  OutcomeReader reader(body);
  Outcome outcome;
  while (reader.read(&outcome)) {
    if constexpr (requires { outcome.checksums; }) {
      for (uint32_t index = 0; index < outcome.checksums.size(); ++index) {
        [[maybe_unused]] volatile uint64_t touched = outcome.checksums[index];
      }
    }
    if constexpr (requires { outcome.attributes; }) {
      AttributeReader attributes(outcome.attributes);
      Attribute attribute;
      while (attributes.next(&attribute)) continue;
    }
    require(static_cast<uint8_t>(outcome.status) < kStatusCount, "a status without a name");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<std::byte> bytes = exact_copy(data, size);
  CompletionHeader header;
  if (size < kHeaderBytes || !decode(bytes.data(), &header)) return 0;
  Bytes body = Bytes(bytes).subspan(kHeaderBytes);
  read_all<ReadOutcome>(body);
  read_all<WriteOutcome>(body);
  read_all<StatOutcome>(body);
  read_all<RetainOutcome>(body);
  return 0;
}
