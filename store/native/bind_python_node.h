// The node as Python holds it.
#pragma once

#include <nanobind/nanobind.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "store/native/bind_gil.h"
#include "store/native/node.h"

namespace kvstrata {

namespace nb = nanobind;

// The node and, until they are answered, the administrative calls Python has taken.
class PythonNode {
 public:
  PythonNode(const NodeOptions& options, const std::vector<PoolSettings>& pools) {
    std::string error;
    {
      WithoutGil without_gil;
      node_ = Node::create(options, &error);
    }
    if (node_ == nullptr) {
      PyErr_SetString(PyExc_OSError, error.c_str());
      throw nb::python_error();
    }
    for (const PoolSettings& pool : pools) {
      error = node_->set_pool(pool);
      if (!error.empty()) throw nb::value_error(error.c_str());
    }
  }
  ~PythonNode() {
    WithoutGil without_gil;
    // A forked child has none of the threads, and what it shares with them must be left alone.
    if (::getpid() != process_) static_cast<void>(node_.release());
    node_.reset();
  }

  Node& node() noexcept { return *node_; }
  void listen_unix(const std::string& path) {
    std::string error;
    {
      WithoutGil without_gil;
      error = node_->listen_unix(path);
    }
    if (error.empty()) return;
    PyErr_SetString(PyExc_OSError, error.c_str());
    throw nb::python_error();
  }
  bool stop(uint64_t timeout_ms) {
    WithoutGil without_gil;
    return node_->stop(timeout_ms);
  }
  nb::object next_admin_call() {
    std::optional<AdminCall> call = node_->admin().pop();
    return call.has_value() ? nb::cast(std::move(*call)) : nb::none();
  }

 private:
  std::unique_ptr<Node> node_;
  pid_t process_ = ::getpid();
};

// What it knows of its connections and of Valkey clients' commands.
void bind_observation(nb::class_<PythonNode>& node);
nb::dict resp_commands_of(const ShardStatistics& shard);
nb::dict resp_errors_of(const ShardStatistics& shard);

}  // namespace kvstrata
