#include "store/native/resp_execution.h"

namespace kvstrata {

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
    default:
      return execute_keyspace(execution);
  }
}

}  // namespace kvstrata
