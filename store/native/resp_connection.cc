// Commands that a Valkey client's connection answers by itself: who it is, what it may, what there
// is.
#include <string>

#include "store/native/node.h"
#include "store/native/resp_expiry.h"
#include "store/native/resp_protocol.h"
#include "store/native/resp_state.h"
#include "store/native/shard.h"
#include "store/native/slot.h"
#include "transport/native/decimal.h"

namespace kvstrata {

namespace {

// Commands and replies are those of this version of Valkey; clients look at it to learn what a
// server can do.
constexpr std::string_view kValkeyVersion = "9.1.2";

constexpr std::string_view kWrongPassword =
    "WRONGPASS invalid username-password pair or user is disabled.";

constexpr std::string_view kNoPassword =
    "ERR AUTH <password> called without any password configured for the default user. Are you sure "
    "your configuration is correct?";

// False where the pool `default` is open and this is not one of its secrets.
bool takes_secret(const Node& node, const std::string& secret) {
  PoolId id = 0;
  uint32_t rights = 0;
  std::string message;
  bool is_one =
      !secret.empty() && node.authenticate("default", secret, &id, &rights, &message) == Status::Ok;
  return is_one || node.authenticate("default", "", &id, &rights, &message) != Status::Ok;
}

// A subcommand's is "container|subcommand".
const RespCommand* find_by_full_name(std::string_view name) noexcept {
  size_t bar = name.find('|');
  const RespCommand* command = find_resp_command(name.substr(0, bar));
  if (command == nullptr || bar == std::string_view::npos) return command;
  return find_resp_command(name.substr(bar + 1), command->id);
}

}  // namespace

void RespProtocol::run_now(const Invocation& invocation) {
  switch (invocation.command.id) {
    case RespCommandId::Hello:
      hello(invocation);
      break;
    case RespCommandId::Auth:
      authenticate(invocation);
      break;
    case RespCommandId::Select:
      select(invocation);
      break;
    case RespCommandId::Quit:
      reply_writer().ok();
      session_->end_output();
      break;
    case RespCommandId::Reset:
      reset();
      break;
    case RespCommandId::Multi:
      multi();
      break;
    case RespCommandId::Exec:
      exec();
      return;
    case RespCommandId::Discard:
      discard();
      break;
    case RespCommandId::Watch:
      watch(invocation);
      return;
    case RespCommandId::Unwatch:
      unwatch();
      break;
    case RespCommandId::Asking:
    case RespCommandId::Readonly:
    case RespCommandId::Readwrite:
      reply_writer().ok();
      break;
    case RespCommandId::Command:
    case RespCommandId::CommandCount:
    case RespCommandId::CommandDocs:
    case RespCommandId::CommandInfo:
      describe_commands(invocation);
      break;
    case RespCommandId::CommandGetkeys:
      list_keys_of(invocation);
      break;
    case RespCommandId::ClusterKeyslot:
      reply_writer().integer(key_slot(invocation.arguments[2]));
      break;
    default:
      client(invocation);
  }
  shard_->statistics().resp_commands[static_cast<size_t>(invocation.command.id)].calls.add();
}

void RespProtocol::hello(const Invocation& invocation) {
  size_t size = invocation.arguments.size();
  int64_t version = static_cast<int64_t>(version_);
  if (size > 1) {
    if (!parse_decimal(invocation.text(1), &version)) {
      reply_error("ERR Protocol version is not an integer or out of range");
      return;
    }
    if (version < 2 || version > 3) {
      reply_error("NOPROTO unsupported protocol version");
      return;
    }
  }
  std::string name;
  bool names = false;
  for (size_t next = 2; next < size;) {
    size_t more = size - next - 1;
    if (is_word(invocation.text(next), "AUTH") && more >= 2) {
      if (!take_pool(std::string(invocation.text(next + 1)),
                     std::string(invocation.text(next + 2)))) {
        reply_error(kWrongPassword);
        return;
      }
      next += 3;
    } else if (is_word(invocation.text(next), "SETNAME") && more >= 1) {
      name = invocation.text(next + 1);
      names = true;
      if (!is_showable(name)) {
        reply_error("ERR Client names cannot contain spaces, newlines or special characters.");
        return;
      }
      next += 2;
    } else {
      reply_error("ERR Syntax error in HELLO option '" +
                  std::string(quotable(invocation.text(next))) + "'");
      return;
    }
  }
  if (!authenticated_) {
    reply_error(
        "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO "
        "<proto> AUTH <user> <pass> option can be used to authenticate the client and select the "
        "RESP protocol version at the same time");
    return;
  }
  if (names) client_details().name = name;
  version_ = static_cast<RespVersion>(version);
  RespWriter writer = reply_writer();
  auto text = [&](std::string_view key, std::string_view value) {
    writer.bulk_string(as_bytes(key));
    writer.bulk_string(as_bytes(value));
  };
  writer.map(7);
  text("server", "kvstrata");
  text("version", kValkeyVersion);
  writer.bulk_string(as_bytes("proto"));
  writer.integer(version);
  writer.bulk_string(as_bytes("id"));
  writer.integer(static_cast<int64_t>(session_->client_id()));
  text("mode", "cluster");
  text("role", "master");
  writer.bulk_string(as_bytes("modules"));
  writer.array(0);
}

// AUTH pool secret, or AUTH secret for the pool `default`.
void RespProtocol::authenticate(const Invocation& invocation) {
  size_t size = invocation.arguments.size();
  if (size > 3) {
    reply_error("ERR syntax error");
    return;
  }
  std::string pool = size == 3 ? std::string(invocation.text(1)) : "default";
  if (size == 2 && !takes_secret(shard_->node(), std::string(invocation.text(1)))) {
    reply_error(kNoPassword);
    return;
  }
  if (take_pool(pool, std::string(invocation.text(size - 1)))) {
    reply_writer().ok();
  } else {
    reply_error(kWrongPassword);
  }
}

bool RespProtocol::take_pool(const std::string& pool, const std::string& secret) {
  PoolId id = 0;
  uint32_t rights = 0;
  std::string message;
  Node& node = shard_->node();
  // A pool that needs no secret takes any, as Valkey's users without a password do.
  if (node.authenticate(pool, secret, &id, &rights, &message) != Status::Ok &&
      node.authenticate(pool, "", &id, &rights, &message) != Status::Ok) {
    return false;
  }
  pool_ = id;
  rights_ = rights;
  pool_name_ = pool;
  authenticated_ = true;
  reader_.set_authenticated(true);
  return true;
}

void RespProtocol::select(const Invocation& invocation) {
  int64_t number = 0;
  if (!parse_decimal(invocation.text(1), &number)) {
    reply_error(resp_error::kNotInteger);
  } else if (number < INT32_MIN || number > INT32_MAX) {
    reply_error("ERR value is out of range, value must between -2147483648 and 2147483647");
  } else if (number != 0) {
    reply_error("ERR DB index is out of range");
  } else {
    reply_writer().ok();
  }
}

void RespProtocol::reset() {
  end_transaction();
  version_ = RespVersion::Resp2;
  replies_ = Replies::On;
  touches_ = true;
  client_.reset();
  authenticated_ = false;
  reader_.set_authenticated(false);
  pool_name_.clear();
  rights_ = 0;
  take_pool("default", "");
  reply_writer().simple_string("RESET");
}

RespClient& RespProtocol::client_details() {
  if (client_ == nullptr) client_ = std::make_unique<RespClient>();
  return *client_;
}

void RespProtocol::client(const Invocation& invocation) {
  switch (invocation.command.id) {
    case RespCommandId::ClientId:
      reply_writer().integer(static_cast<int64_t>(session_->client_id()));
      return;
    case RespCommandId::ClientGetname:
      if (client_ == nullptr || client_->name.empty()) {
        reply_writer().null();
      } else {
        reply_writer().bulk_string(as_bytes(client_->name));
      }
      return;
    case RespCommandId::ClientSetname:
      if (!is_showable(invocation.text(2))) {
        reply_error("ERR Client names cannot contain spaces, newlines or special characters.");
        return;
      }
      client_details().name = invocation.text(2);
      break;
    case RespCommandId::ClientSetinfo:
      set_client_info(invocation);
      return;
    case RespCommandId::ClientReply:
      set_replies(invocation);
      return;
    default: {
      bool on = is_word(invocation.text(2), "ON");
      if ((!on && !is_word(invocation.text(2), "OFF")) ||
          (!on && invocation.arguments.size() > 3)) {
        reply_error("ERR syntax error");
        return;
      }
      if (invocation.command.id == RespCommandId::ClientTracking) {
        if (on) {
          reply_error("ERR this node does not track what clients cache; CLIENT TRACKING OFF works");
          return;
        }
      } else if (invocation.command.id == RespCommandId::ClientNoTouch) {
        touches_ = !on;
      } else {
        client_details().no_evict = on;
      }
    }
  }
  reply_writer().ok();
}

void RespProtocol::set_client_info(const Invocation& invocation) {
  std::string attribute(invocation.text(2));
  bool is_name = is_word(attribute, "LIB-NAME");
  if (!is_name && !is_word(attribute, "LIB-VER")) {
    reply_error("ERR Unrecognized option '" + std::string(quotable(attribute)) + "'");
    return;
  }
  if (!is_showable(invocation.text(3))) {
    reply_error("ERR " + attribute + " cannot contain spaces, newlines or special characters.");
    return;
  }
  RespClient& details = client_details();
  (is_name ? details.library_name : details.library_version) = invocation.text(3);
  reply_writer().ok();
}

void RespProtocol::set_replies(const Invocation& invocation) {
  std::string_view word = invocation.text(2);
  if (is_word(word, "ON")) {
    replies_ = Replies::On;
    reply_writer().ok();
  } else if (is_word(word, "OFF")) {
    replies_ = Replies::Off;
  } else if (is_word(word, "SKIP")) {
    if (replies_ != Replies::Off) replies_ = Replies::SkipNext;
  } else {
    reply_error("ERR syntax error");
  }
}

// COMMAND, COMMAND COUNT, COMMAND INFO and COMMAND DOCS.
void RespProtocol::describe_commands(const Invocation& invocation) {
  bool documents = invocation.command.id == RespCommandId::CommandDocs;
  bool is_resp3 = version_ == RespVersion::Resp3;
  std::vector<const RespCommand*> chosen;
  if (invocation.arguments.size() > 2) {
    for (size_t index = 2; index < invocation.arguments.size(); ++index) {
      const RespCommand* command = find_by_full_name(invocation.text(index));
      if (command != nullptr || !documents) chosen.push_back(command);
    }
  } else {
    for (const RespCommand& command : resp_commands()) {
      if (command.container == RespCommandId::None) chosen.push_back(&command);
    }
  }
  OutputQueue& reply = begin_reply();
  RespWriter writer(reply.bytes(), version_);
  if (invocation.command.id == RespCommandId::CommandCount) {
    writer.integer(static_cast<int64_t>(chosen.size()));
    return;
  }
  if (documents) {
    writer.map(chosen.size());
  } else {
    writer.array(chosen.size());
  }
  for (const RespCommand* command : chosen) {
    if (command == nullptr) {
      writer.null_array();
      continue;
    }
    const RespCommandReplies& replies = resp_command_replies(command->id);
    std::string_view text = documents ? (is_resp3 ? replies.docs_resp3 : replies.docs_resp2)
                                      : (is_resp3 ? replies.info_resp3 : replies.info_resp2);
    reply.bytes()->append(as_bytes(text));
  }
}

void RespProtocol::list_keys_of(const Invocation& invocation) {
  std::vector<RespPiece> pieces;
  const std::byte* base = invocation.arguments[2].data();
  for (size_t index = 2; index < invocation.arguments.size(); ++index) {
    Bytes argument = invocation.arguments[index];
    pieces.push_back({static_cast<size_t>(argument.data() - base), argument.size()});
  }
  RespArguments arguments(pieces, 0, nullptr, base);
  const RespCommand* command = find_resp_command(as_text(arguments[0]));
  if (command != nullptr && has_subcommands(command->id) && arguments.size() > 1) {
    command = find_resp_command(as_text(arguments[1]), command->id);
  }
  if (command == nullptr) {
    reply_error("ERR Invalid command specified");
    return;
  }
  if (command->keys.step == 0) {
    reply_error("ERR The command has no key arguments");
    return;
  }
  std::vector<size_t> places = key_places(*command, arguments);
  if (!command->takes(arguments.size())) {
    reply_error("ERR Invalid number of arguments specified for command");
    return;
  }
  if (places.empty()) {
    reply_error("ERR Invalid arguments specified for command");
    return;
  }
  RespWriter writer = reply_writer();
  writer.array(places.size());
  for (size_t place : places) writer.bulk_string(arguments[place]);
}

}  // namespace kvstrata
