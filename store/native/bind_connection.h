// The client's connection as Python sees it: runs operations on an Initiator, with the GIL
// released.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <string>
#include <vector>

#include "store/native/bind_operation.h"
#include "store/native/submissions.h"
#include "transport/native/initiator.h"

namespace kvstrata {

struct ConnectionOptions {
  std::string host;
  uint16_t port = 0;
  std::string unix_path;  // Of a UNIX socket to connect to instead; empty: TCP.
  bool trusts_any_owner = false;
  std::shared_ptr<const RegionSet> regions;  // Whose memory the node may be named.
  ClientHello hello;
  bool verify = true;
  uint32_t spin_us = 0;
  int64_t timeout_ms = 0;
};

class Connection {
 public:
  explicit Connection(const ConnectionOptions& options);

  void execute(nanobind::handle operations, int64_t timeout_ms);
  void execute_one(nanobind::handle operation, int64_t timeout_ms);

  void submit(nanobind::handle operation);
  nanobind::list progress();
  // Tells the node of regions that were closed: with what goes next, or progress().
  void tend();
  void close();
  void abandon() noexcept { initiator_->abandon(); }

  const Initiator& initiator() const noexcept { return *initiator_; }
  const NodeHello& node() const noexcept { return node_; }
  bool stays_on_host() const noexcept { return stays_on_host_; }
  bool shares_memory() const noexcept { return (node_.features & kFeatureRings) != 0; }

 private:
  class Use;
  struct Submitted {
    nanobind::object object;  // Keeps the operation alive.
    Operation* operation;
    bool finished() const noexcept { return operation->finished(); }
    bool unsent() const noexcept { return operation->unsent(); }
  };

  void run(const std::vector<Operation*>& operations, int64_t timeout_ms);
  template <typename Step>
  void without_gil(Step step);
  nanobind::list take_finished();

  NodeHello node_;
  Submissions<Submitted> submitted_;  // Of event loops; destroyed after the initiator.
  std::unique_ptr<Initiator> initiator_;
  bool stays_on_host_ = false;
  bool in_use_ = false;
};

}  // namespace kvstrata
