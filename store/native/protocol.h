// What a connection speaks: bytes in, errands for the shards, replies out. A session asks it in
// turn; which one it is, the connection's first byte tells.
#pragma once

#include "store/native/errand.h"
#include "transport/native/bytes.h"

namespace kvstrata {

struct ConnectionReport;

class Protocol {
 public:
  virtual ~Protocol() = default;

  // Handles one thing at the beginning of `bytes`, which are not empty; returns how many bytes were
  // used up. 0: it is not there whole, or something is in the way.
  virtual size_t consume(Bytes bytes) = 0;
  // There is no more for now, or no more time.
  virtual void on_consumed() = 0;
  // How many bytes of a value are due, before anything else comes.
  virtual uint64_t data_left() const noexcept = 0;
  // Where the next of them belong, as far as it is one place; empty if they are to be dropped.
  virtual MutableBytes data_target() = 0;
  // They are there, or were dropped.
  virtual void take_data(Bytes bytes) = 0;
  // Can go on with nothing before an errand is done or there is room in the output.
  virtual bool is_paused() const noexcept = 0;

  // The output has room again, after `consume` was refused some.
  virtual void on_output_room() = 0;
  // Work that travelled, waited for memory, or was done by copiers is done.
  virtual void on_work_done(const Work& work) = 0;
  virtual void on_admin_done(Errand* errand, Status status, Bytes payload) = 0;
  // The connection is gone: what was begun is given up.
  virtual void on_closed() noexcept = 0;

  // The peer owes bytes that memory is held for.
  virtual bool owes_data() const noexcept = 0;
  // A peer that is yet to say who it is; it has little time for that.
  virtual bool is_greeted() const noexcept = 0;
  // Nothing was begun that more input would have to finish.
  virtual bool is_idle() const noexcept = 0;
  // Replies to what was asked are yet to come.
  virtual bool owes_replies() const noexcept = 0;
  virtual void describe(ConnectionReport* report) const = 0;
};

}  // namespace kvstrata
