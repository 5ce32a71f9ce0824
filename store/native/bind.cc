// The Python face of kvcore: converts arguments, releases the GIL and calls.
#include "store/native/bind.h"

#include <nanobind/stl/string.h>

#include "store/native/bind_buffers.h"
#include "store/native/slot.h"
#include "transport/native/checksum.h"
#include "transport/native/client_status.h"
#include "transport/native/reactor.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

std::string status_name(int status) {
  if (status == static_cast<int>(kvstrata::kStatusClosed)) return "CLOSED";
  if (status == static_cast<int>(kvstrata::kStatusTimedOut)) return "TIMED_OUT";
  return std::string(kvstrata::status_name(static_cast<kvstrata::Status>(status)));
}

uint16_t key_slot(nb::handle key) {
  kvstrata::HeldBuffers held;
  return kvstrata::key_slot(held.hold_key(key));
}

uint64_t chunk_checksum(nb::handle data) {
  kvstrata::HeldBuffers held;
  return kvstrata::chunk_checksum(held.hold(data, "data"));
}

}  // namespace

NB_MODULE(_kernel, module) {
  // At the end of a forked child its parent's threads still hold what they held: no leak of ours.
  nb::set_leak_warnings(false);
  module.doc() = "The native core of kvstrata.";
  module.def(
      "uring_is_usable", [] { return kvstrata::uring_is_usable(); },
      "Whether shards can wait for their connections with io_uring here.");
  module.def(
      "version", [] { return KVSTRATA_VERSION; }, "Version of the package this was built from.");
  module.def("status_name", status_name, "status"_a);
  module.def("key_slot", key_slot, "key"_a);
  module.def("chunk_checksum", chunk_checksum, "data"_a);
  kvstrata::bind_region(module);
  kvstrata::bind_client(module);
  kvstrata::bind_load(module);
  kvstrata::bind_node(module);
}
