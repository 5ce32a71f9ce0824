// The Python face of kvcore: converts arguments, releases the GIL and calls.
#include "store/native/bind.h"

NB_MODULE(_kernel, module) {
  module.doc() = "The native core of kvstrata.";
  module.def(
      "version", [] { return KVSTRATA_VERSION; }, "Version of the package this was built from.");
  kvstrata::bind_client(module);
}
