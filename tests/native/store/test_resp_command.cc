#include <doctest/doctest.h>

#include <string>
#include <string_view>

#include "store/native/resp_command.h"

namespace kvstrata {

namespace {

std::string_view own_name(const RespCommand& command) {
  return command.name.substr(command.name.size() - command.name_bytes);
}

std::string in_upper_case(std::string_view name) {
  std::string upper(name);
  for (char& letter : upper) letter = static_cast<char>(std::toupper(letter));
  return upper;
}

}  // namespace

TEST_CASE("every command is found by its name, in any case") {
  uint8_t number = 0;
  for (const RespCommand& command : resp_commands()) {
    CAPTURE(command.name);
    CHECK(static_cast<uint8_t>(command.id) == ++number);
    std::string_view name = own_name(command);
    CHECK(find_resp_command(name, command.container) == &command);
    CHECK(find_resp_command(in_upper_case(name), command.container) == &command);
  }
  CHECK(number == kRespCommandCount);
  CHECK(find_resp_command("pExPiReTiMe")->id == RespCommandId::Pexpiretime);
}

TEST_CASE("what is no command is not found") {
  const std::string_view strangers[] = {"",
                                        "GE",
                                        "GETT",
                                        "hgetall",
                                        "g-t",
                                        "GET ",
                                        "{ET",
                                        "ge4",
                                        "\xE7"
                                        "ET",
                                        "CLIENT|ID",
                                        "COUNTKEYSINSLOT",
                                        "COUNTKEYSINSLOTS",
                                        "COUNTKEYSINSLOTSS"};
  for (std::string_view stranger : strangers) {
    CAPTURE(stranger);
    CHECK(find_resp_command(stranger) == nullptr);
  }
  CHECK(find_resp_command(std::string_view("get\0", 4)) == nullptr);
  CHECK(find_resp_command("no\revict", RespCommandId::Client) == nullptr);
}

TEST_CASE("a subcommand is found in its container only") {
  const RespCommand* found = find_resp_command("Info", RespCommandId::Cluster);
  REQUIRE(found != nullptr);
  CHECK(found->name == "cluster|info");
  CHECK(find_resp_command("info")->id == RespCommandId::Info);
  CHECK(find_resp_command("usage") == nullptr);
  CHECK(find_resp_command("usage", RespCommandId::Object) == nullptr);
  CHECK(find_resp_command("", RespCommandId::Object) == nullptr);
}

TEST_CASE("arity counts the name, and is a minimum where it is negative") {
  const RespCommand& get = *find_resp_command("get");
  CHECK_FALSE(get.takes(1));
  CHECK(get.takes(2));
  CHECK_FALSE(get.takes(3));
  const RespCommand& set = *find_resp_command("set");
  CHECK_FALSE(set.takes(2));
  CHECK(set.takes(3));
  CHECK(set.takes(1 << 20));
}

TEST_CASE("keys lie where Valkey has them") {
  const RespKeyPlaces& mset = find_resp_command("mset")->keys;
  CHECK((mset.first == 1 && mset.last == -1 && mset.step == 2 && mset.count_at == 0));
  const RespKeyPlaces& msetex = find_resp_command("msetex")->keys;
  CHECK((msetex.first == 2 && msetex.step == 2 && msetex.count_at == 1));
  CHECK(find_resp_command("usage", RespCommandId::Memory)->keys.first == 2);
  CHECK(find_resp_command("ping")->keys.step == 0);
}

TEST_CASE("replies about a command are there in both versions") {
  const RespCommandReplies& get = resp_command_replies(RespCommandId::Get);
  CHECK(get.info_resp2.starts_with("*10\r\n$3\r\nget\r\n:2\r\n*2\r\n+readonly\r\n+fast\r\n:1\r\n"));
  CHECK(get.info_resp3.starts_with("*10\r\n$3\r\nget\r\n:2\r\n~2\r\n+readonly\r\n+fast\r\n:1\r\n"));
  CHECK(get.docs_resp2.starts_with("$3\r\nget\r\n*10\r\n$7\r\nsummary\r\n"));
  CHECK(get.docs_resp3.starts_with("$3\r\nget\r\n%5\r\n$7\r\nsummary\r\n"));
}

}  // namespace kvstrata
