// Descriptors that travel beside the bytes of a UNIX socket.
#pragma once

#include <sys/types.h>

#include "transport/native/bytes.h"
#include "transport/native/socket.h"

namespace kvstrata {

// As send(2) without waiting; `descriptor` comes with the first byte, and stays the caller's.
ssize_t send_with_descriptor(const Socket& socket, Bytes bytes, int descriptor) noexcept;

// As recv(2) with these flags. `descriptor` is the one that came with the bytes, if any did; of
// several only one is taken.
ssize_t receive_with_descriptor(const Socket& socket, MutableBytes into, int flags,
                                Socket* descriptor) noexcept;

}  // namespace kvstrata
