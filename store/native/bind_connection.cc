#include "store/native/bind_connection.h"

#include <algorithm>
#include <new>

#include "store/native/bind_gil.h"
#include "transport/native/greeting.h"
#include "transport/native/ring_stream.h"

namespace nb = nanobind;

namespace kvstrata {

// One thread at a time: the flag is read and written with the GIL held.
class Connection::Use {
 public:
  explicit Use(Connection* connection) : connection_(connection) {
    if (connection->in_use_) {
      PyErr_SetString(PyExc_RuntimeError, "this connection is in use by another thread");
      throw nb::python_error();
    }
    connection->in_use_ = true;
  }
  ~Use() { connection_->in_use_ = false; }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

 private:
  Connection* connection_;
};

Connection::Connection(const ConnectionOptions& options) {
  WithoutGil without_gil;
  Socket socket;
  Socket memory;
  std::string error;
  Deadline deadline = Deadline::after_ms(options.timeout_ms);
  bool by_tcp = options.unix_path.empty();
  Status status =
      by_tcp ? greet(options.host, options.port, options.hello, deadline, &socket, &node_, &error)
             : greet_unix(options.unix_path, options.trusts_any_owner, options.hello, deadline,
                          &socket, &node_, &memory, &error);
  stays_on_host_ = !by_tcp || (socket && kvstrata::stays_on_host(socket));
  std::string name = by_tcp ? endpoint_name(options.host, options.port) : options.unix_path;
  auto open = [&](std::unique_ptr<Stream> stream, bool verify) {
    initiator_ =
        std::make_unique<Initiator>(std::move(stream), node_, name, verify, options.spin_us);
  };
  std::unique_ptr<SharedMemory> rings;
  if (status == Status::Ok && shares_memory()) {
    rings = RingStream::map_memory(memory, &error);
    if (rings == nullptr) status = Status::Unsupported;
  }
  if (rings == nullptr) {
    open(std::make_unique<SocketStream>(std::move(socket)), options.verify);
  } else {
    auto stream =
        std::make_unique<RingStream>(std::move(socket), std::move(rings), RingSide::Client);
    auto table = std::make_unique<RegionTable>(options.regions, stream.get());
    // Within one host the node hashes while it copies; no network is there to do harm.
    open(std::move(stream), false);
    initiator_->use_regions(std::move(table));
  }
  if (status != Status::Ok) initiator_->close(status, error);
}

void Connection::execute(nb::handle operations, int64_t timeout_ms) {
  std::vector<Operation*> list;
  std::vector<nb::object> kept;
  for (nb::handle each : nb::iter(operations)) {
    list.push_back(nb::cast<Operation*>(each));
    kept.push_back(nb::borrow(each));
  }
  run(list, timeout_ms);
}

void Connection::execute_one(nb::handle operation, int64_t timeout_ms) {
  run({nb::cast<Operation*>(operation)}, timeout_ms);
}

void Connection::run(const std::vector<Operation*>& operations, int64_t timeout_ms) {
  Use use(this);
  Deadline deadline = Deadline::after_ms(timeout_ms);
  auto deadline_ms = static_cast<uint32_t>(std::clamp<int64_t>(timeout_ms, 1, UINT32_MAX));
  for (Operation* operation : operations) operation->begin(deadline_ms);
  std::exception_ptr error;
  try {
    for (bool submitted = false, idle = false; !idle; submitted = true) {
      {
        WithoutGil without_gil;
        for (Operation* operation : operations) {
          if (!submitted) operation->submit(initiator_.get());
        }
        idle = initiator_->drive(deadline);
        if (idle && initiator_->tend_regions()) idle = initiator_->drive(deadline);
      }
      if (!idle && PyErr_CheckSignals() != 0) throw nb::python_error();
    }
  } catch (...) {
    error = std::current_exception();
    initiator_->close(kStatusClosed, "the call was interrupted, so the connection was closed");
  }
  for (Operation* operation : operations) operation->finish();
  if (error) std::rethrow_exception(error);
  for (Operation* operation : operations) operation->raise_error();
}

// Runs a step of the state machine; one that lacks memory leaves it in the middle of something, so
// that is its end.
template <typename Step>
void Connection::without_gil(Step step) {
  try {
    WithoutGil without_gil;
    step();
  } catch (const std::bad_alloc&) {
    initiator_->close(kStatusClosed, "out of memory, so the connection was closed");
  }
}

void Connection::submit(nb::handle operation) {
  Use use(this);
  auto* native = nb::cast<Operation*>(operation);
  native->begin(0);
  submitted_.add({nb::borrow(operation), native});
  without_gil([&] { native->submit(initiator_.get()); });
}

void Connection::tend() {
  Use use(this);
  without_gil([&] { initiator_->tend_regions(); });
}

nb::list Connection::progress() {
  Use use(this);
  without_gil([&] { initiator_->progress(); });
  return take_finished();
}

nb::list Connection::take_finished() {
  nb::list finished;
  submitted_.take_finished([&](const Submitted& each) {
    finished.append(each.object);
    each.operation->finish();
  });
  return finished;
}

void Connection::close() {
  Use use(this);
  initiator_->close(kStatusClosed, "the connection was closed by its owner");
  take_finished();
}

}  // namespace kvstrata
