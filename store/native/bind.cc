// The Python face of kvcore: converts arguments, releases the GIL and calls.
#include "store/native/bind.h"

#include "store/native/held_buffers.h"
#include "store/native/slot.h"
#include "transport/native/checksum.h"
#include "transport/native/client_status.h"

namespace nb = nanobind;
using namespace nb::literals;

NB_MODULE(_kernel, module) {
  module.doc() = "The native core of kvstrata.";
  module.def(
      "version", [] { return KVSTRATA_VERSION; }, "Version of the package this was built from.");
  kvstrata::bind_client(module);
  kvstrata::bind_node(module);
}
