// Where liburing's header was missing when this was built.
#include "transport/native/reactor.h"

namespace kvstrata {

std::unique_ptr<Reactor> make_uring_reactor() { return nullptr; }
bool uring_is_usable() noexcept { return false; }

}  // namespace kvstrata
