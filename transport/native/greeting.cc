#include "transport/native/greeting.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "store/limits.h"
#include "transport/native/descriptor_passing.h"
#include "transport/native/unix_socket.h"

namespace kvstrata {

namespace {

// One hello in flight: an answer that does not come in full by the deadline is an error with words.
class Greeting {
 public:
  Greeting(const Socket& socket, std::string name, Deadline deadline, std::string* error)
      : socket_(socket), name_(std::move(name)), deadline_(deadline), error_(error) {}

  // What came with the answer.
  Socket take_descriptor() { return std::move(descriptor_); }

  Status send_all(Bytes bytes) {
    while (!bytes.empty()) {
      ssize_t count = ::send(socket_.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count > 0) {
        bytes = bytes.subspan(static_cast<size_t>(count));
      } else if (Status status = wait_for(POLLOUT); status != Status::Ok) {
        return status;
      }
    }
    return Status::Ok;
  }

  Status receive(size_t count, ByteBuffer* buffer) {
    while (count != 0) {
      MutableBytes into{buffer->extend(count), count};
      ssize_t received = receive_with_descriptor(socket_, into, 0, &descriptor_);
      size_t taken = received > 0 ? static_cast<size_t>(received) : 0;
      buffer->truncate(buffer->size() - count + taken);
      count -= taken;
      if (received == 0) {
        return fail(kStatusClosed, name_ + " closed the connection instead of answering the hello");
      }
      if (received > 0) continue;
      if (Status status = wait_for(POLLIN); status != Status::Ok) return status;
    }
    return Status::Ok;
  }

  Status fail(Status status, std::string why) {
    *error_ = std::move(why);
    return status;
  }

  const std::string& name() const { return name_; }

 private:
  // Called with errno of the call that did not go.
  Status wait_for(short events) {
    if (errno != EAGAIN && errno != EINTR) {
      return fail(kStatusClosed, "lost " + name_ + " during the hello: " + std::strerror(errno));
    }
    Wait wait = Wait::Interrupted;
    while (wait == Wait::Interrupted) wait = wait_ready(socket_.fd(), events, deadline_);
    if (wait == Wait::Ready) return Status::Ok;
    return fail(kStatusTimedOut, name_ + " accepted the connection but did not answer the hello: " +
                                     "is it a KVStrata node, and is it overloaded?");
  }

  const Socket& socket_;
  std::string name_;
  Deadline deadline_;
  std::string* error_;
  Socket descriptor_;
};

// What the rest of the client relies on; a node that lies here would make it divide by zero.
const char* find_fault(const NodeHello& node) {
  if (node.version != limits::kProtocolVersion) return "chose a protocol version we did not offer";
  if (node.chunk_bytes == 0) return "announced chunks of 0 bytes";
  if (node.credits == 0) return "granted no credits";
  return nullptr;
}

Status read_answer(Greeting* greeting, NodeHello* node, std::string* error) {
  ByteBuffer answer;
  if (Status status = greeting->receive(kHelloPrefixBytes, &answer); status != Status::Ok) {
    return status;
  }
  HelloPrefix prefix;
  if (!decode(answer.data(), &prefix)) {
    return greeting->fail(
        Status::Invalid, greeting->name() + " does not speak the capsule protocol: check the port");
  }
  if (Status status = greeting->receive(prefix.body_length, &answer); status != Status::Ok) {
    return status;
  }
  if (!hello_crc_matches(answer.view())) {
    return greeting->fail(Status::Corrupt, "the hello of " + greeting->name() + " has a wrong CRC");
  }
  std::string why;
  if (Status status = decode(answer.view(), node, &why); status != Status::Ok) {
    return greeting->fail(status, greeting->name() + ": " + why);
  }
  if (node->status != Status::Ok) {
    *error = node->message.empty()
                 ? greeting->name() + " refused: " + std::string(status_name(node->status))
                 : node->message;
    return node->status;
  }
  if (const char* fault = find_fault(*node)) {
    return greeting->fail(Status::Invalid, greeting->name() + " " + fault);
  }
  return Status::Ok;
}

Status exchange(const std::string& name, const ClientHello& client, Deadline deadline,
                Socket* socket, NodeHello* node, Socket* memory, std::string* error) {
  Greeting greeting(*socket, name, deadline, error);
  ByteBuffer hello;
  encode(client, &hello);
  Status status = greeting.send_all(hello.view());
  if (status == Status::Ok) status = read_answer(&greeting, node, error);
  if (status != Status::Ok) socket->close();
  *memory = greeting.take_descriptor();
  return status;
}

}  // namespace

Status greet(const std::string& host, uint16_t port, const ClientHello& client, Deadline deadline,
             Socket* socket, NodeHello* node, std::string* error) {
  Status status = connect_tcp(host, port, deadline, socket, error);
  if (status != Status::Ok) return status;
  Socket none;
  return exchange(endpoint_name(host, port), client, deadline, socket, node, &none, error);
}

Status greet_unix(const std::string& path, bool trusts_any_owner, const ClientHello& client,
                  Deadline deadline, Socket* socket, NodeHello* node, Socket* memory,
                  std::string* error) {
  Status status = connect_unix(path, deadline, socket, error);
  if (status != Status::Ok) return status;
  uid_t owner = peer_credentials(*socket).uid;
  if (!client.secret.empty() && !trusts_any_owner && !is_own_or_root(owner)) {
    *error = "the secret is not shown to " + path + ", which belongs to user " +
             std::to_string(owner) + ", neither this one nor root; with transport=unix it is";
    socket->close();
    return Status::Denied;
  }
  return exchange(path, client, deadline, socket, node, memory, error);
}

}  // namespace kvstrata
