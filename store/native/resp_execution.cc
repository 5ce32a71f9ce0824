#include "store/native/resp_execution.h"

#include <chrono>
#include <string>

namespace kvstrata {

namespace {

void ping(RespExecution& execution) {
  size_t size = execution.arguments.size();
  if (size > 2) {
    execution.writer().error("ERR wrong number of arguments for 'ping' command");
  } else if (size == 2) {
    execution.writer().bulk_string(execution.arguments[1]);
  } else {
    execution.writer().simple_string("PONG");
  }
}

void tell_time(RespExecution& execution) {
  auto now = std::chrono::system_clock::now().time_since_epoch();
  auto us = std::chrono::duration_cast<std::chrono::microseconds>(now).count();
  RespWriter writer = execution.writer();
  writer.array(2);
  writer.bulk_string(as_bytes(std::to_string(us / 1'000'000)));
  writer.bulk_string(as_bytes(std::to_string(us % 1'000'000)));
}

}  // namespace

Status execute(RespExecution& execution) {
  switch (execution.command->id) {
    case RespCommandId::Get:
    case RespCommandId::Set:
    case RespCommandId::Setex:
    case RespCommandId::Psetex:
    case RespCommandId::Setnx:
    case RespCommandId::Getset:
    case RespCommandId::Getdel:
    case RespCommandId::Getex:
    case RespCommandId::Mget:
    case RespCommandId::Mset:
    case RespCommandId::Msetnx:
    case RespCommandId::Msetex:
    case RespCommandId::Getrange:
    case RespCommandId::Strlen:
      return execute_string(execution);
    case RespCommandId::Incr:
    case RespCommandId::Decr:
    case RespCommandId::Incrby:
    case RespCommandId::Decrby:
    case RespCommandId::Append:
    case RespCommandId::Delifeq:
      return execute_number(execution);
    case RespCommandId::Expire:
    case RespCommandId::Pexpire:
    case RespCommandId::Expireat:
    case RespCommandId::Pexpireat:
    case RespCommandId::Ttl:
    case RespCommandId::Pttl:
    case RespCommandId::Expiretime:
    case RespCommandId::Pexpiretime:
    case RespCommandId::Persist:
      return execute_expiry(execution);
    case RespCommandId::Ping:
      ping(execution);
      return Status::Ok;
    case RespCommandId::Echo:
      execution.writer().bulk_string(execution.arguments[1]);
      return Status::Ok;
    case RespCommandId::Time:
      tell_time(execution);
      return Status::Ok;
    default:
      return execute_keyspace(execution);
  }
}

}  // namespace kvstrata
