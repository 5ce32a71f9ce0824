// Operations that move no values: EXISTS, DELETE, EXPIRE, PREFIX_LENGTH, RETAIN and what goes with
// it, STAT, SCAN and ADMIN.
#pragma once

#include "store/native/bind_operation.h"

namespace kvstrata {

class KeysOnly final : public Operation {
 public:
  KeysOnly(int opcode, nanobind::handle keys, uint64_t ttl_ms);

  uint64_t prefix_length() const noexcept;
  // Whether each key's status is OK.
  nanobind::list present() const;
};

class Retain final : public Operation {
 public:
  Retain(nanobind::handle keys, uint64_t ttl_ms, bool hard);

  // What each key's retention is called; 0 where its status is not OK.
  nanobind::list handles() const;
};

class Stat final : public SingleOperation {
 public:
  explicit Stat(nanobind::handle key);

  const StatOutcome& outcome() const noexcept { return only_transfer().stat; }
};

class Scan final : public Operation {
 public:
  Scan(nanobind::handle prefix, uint64_t cursor, uint32_t count);

  uint64_t cursor() const noexcept { return only_transfer().cursor; }
  // Pairs of key and value length.
  nanobind::list keys() const;
};

class Admin final : public SingleOperation {
 public:
  Admin(nanobind::str name, nanobind::bytes payload);
};

}  // namespace kvstrata
