// Who is at the other end of a connection, and what carries the bytes.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace kvstrata {

enum class Transport : uint8_t { Tcp, Unix, Shm };

constexpr std::string_view transport_name(Transport transport) noexcept {
  switch (transport) {
    case Transport::Tcp:
      return "tcp";
    case Transport::Unix:
      return "unix";
    case Transport::Shm:
      break;
  }
  return "shm";
}

struct Peer {
  std::string name;  // "address:port"; of a UNIX socket "path:pid", 0 for a pid not to be seen.
  Transport transport = Transport::Tcp;
  int64_t uid = -1;  // Of a UNIX socket, which shared memory has too.
};

}  // namespace kvstrata
