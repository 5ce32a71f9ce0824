// Hellos of both ends; what is understood can be written and read again.
#include "tests/native/fuzz/input.h"

using namespace kvstrata;

namespace {

template <typename Hello>
void read(const std::vector<std::byte>& bytes) {
  Hello hello;
  std::string error;
  Status status = decode(bytes, &hello, &error);
  require(status == Status::Ok || !error.empty(), "refused without a word");
  if (status != Status::Ok) return;
  ByteBuffer written;
  encode(hello, &written);
  Hello again;
  require(hello_crc_matches(written.view()), "written with a wrong CRC");
  require(decode(written.view(), &again, &error) == Status::Ok, "cannot read what was written");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<std::byte> bytes = exact_copy(data, size);
  HelloPrefix prefix;
  if (size < kHelloPrefixBytes || !decode(bytes.data(), &prefix)) return 0;
  if (prefix.body_length != size - kHelloPrefixBytes) return 0;
  read<ClientHello>(bytes);
  read<NodeHello>(bytes);
  return 0;
}
