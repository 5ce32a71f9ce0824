// The parts of the extension module, each bound in its own file.
#pragma once

#include <nanobind/nanobind.h>

namespace kvstrata {

void bind_client(nanobind::module_& module);
void bind_load(nanobind::module_& module);
void bind_node(nanobind::module_& module);
void bind_region(nanobind::module_& module);

}  // namespace kvstrata
