// The client's half of the hello: from a host name to a connection that takes capsules.
#pragma once

#include <string>

#include "transport/native/deadline.h"
#include "transport/native/hello.h"
#include "transport/native/socket.h"

namespace kvstrata {

// Connects to a node and exchanges hellos. `node` holds the node's answer afterwards.
// Returns: Ok; the node's refusal (Denied, Busy, Unsupported, ...); Invalid (it speaks something
// else); kStatusClosed; kStatusTimedOut. `error` says what was wrong and what to do.
Status greet(const std::string& host, uint16_t port, const ClientHello& client, Deadline deadline,
             Socket* socket, NodeHello* node, std::string* error);

// The same over a UNIX socket. `memory` receives the descriptor of the rings, where the hello asks
// for them and the answer grants them. Denied also where a secret would be shown to a node of
// another user than root or this process's, unless `trusts_any_owner`: then only the path says who
// that is.
Status greet_unix(const std::string& path, bool trusts_any_owner, const ClientHello& client,
                  Deadline deadline, Socket* socket, NodeHello* node, Socket* memory,
                  std::string* error);

}  // namespace kvstrata
