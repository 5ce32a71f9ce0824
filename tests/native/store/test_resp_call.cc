// What becomes of a call's parts on their shards, how their replies become one, and where a walk
// through a node goes on.
#include <doctest/doctest.h>

#include "store/native/resp_call.h"
#include "store/native/scan_cursor.h"
#include "tests/native/store/store_fixture.h"

namespace kvstrata {

namespace {

constexpr uint32_t kShardCount = 3;
constexpr uint64_t kMemoryBytes = 16 << 20;

// What a call answers whose parts answered these.
std::string joined(RespJoin join, std::initializer_list<std::string_view> replies,
                   uint64_t count = 0, uint64_t cursor = 0) {
  RespCall call;
  call.command = find_resp_command("MGET");
  call.join = join;
  for (std::string_view reply : replies) {
    RespCall::Part& part = call.add_part(call.command, 1);
    call.replies_of_shard(1).bytes()->append(as_bytes(reply));
    call.end_reply(&part);
    part.count = count;
    part.cursor = cursor;
  }
  OutputQueue output;
  call.join_parts(kShardCount, &output);
  return std::string(as_text(output.bytes()->view()));
}

void add(RespCall* call, uint32_t shard, std::initializer_list<std::string_view> arguments) {
  call->add_part(find_resp_command(*arguments.begin()), shard);
  for (std::string_view argument : arguments) call->add_argument(as_bytes(argument));
}

std::string replies_of(RespCall* call) {
  OutputQueue output;
  for (const RespCall::Part& part : call->parts) call->take_reply(part, &output);
  return std::string(as_text(output.bytes()->view()));
}

}  // namespace

TEST_CASE("commands that travel together are carried out where they belong, and answer in order") {
  StoreFixture fixture(kMemoryBytes);
  Partition& partition = fixture.add_pool(1, EvictionKind::None);
  RespCall call;
  // Before it is used again, and after.
  for (uint32_t round = 0; round < 2; ++round) {
    call.join = RespJoin::Each;
    call.replies_made_at_once().bytes()->append(as_bytes("+1\r\n"));
    for (uint32_t number = 0; number < 20; ++number) {
      std::string key = "key" + std::to_string(number);
      add(&call, 1, {"SET", key, "value"});
      add(&call, 2, {"GET", key});
      call.replies_made_at_once().bytes()->append(as_bytes("+2\r\n"));
      call.replies_made_at_once().bytes()->append(as_bytes("+3\r\n"));
    }
    CHECK(call.perform(fixture.store, &partition, 1, {&call, 1}) == Status::Ok);
    CHECK(call.perform(fixture.store, &partition, 2, {&call, 2}) == Status::Ok);
    std::string expected = "+1\r\n";
    for (uint32_t number = 0; number < 20; ++number) {
      expected += "+OK\r\n$5\r\nvalue\r\n+2\r\n+3\r\n";
    }
    CHECK(replies_of(&call) == expected);
    CHECK(call.arguments_of(call.parts[2]).size() == 2);
    CHECK(as_text(call.arguments_of(call.parts[2])[1]) == "key0");
    call.reset();
  }
}

TEST_CASE("what a shard gives up is its own parts") {
  StoreFixture fixture(kMemoryBytes);
  RespCall call;
  add(&call, 1, {"GET", "a"});
  add(&call, 2, {"GET", "b"});
  add(&call, 1, {"GET", "c"});
  call.give_up(fixture.store, {&call, 1});
  CHECK(call.parts[0].done);
  CHECK(!call.parts[1].done);
  CHECK(call.parts[2].done);
  CHECK(call.replies_of_shard(2).empty());
  CHECK(call.perform(fixture.store, nullptr, 2, {&call, 2}) == Status::Ok);
  std::string oom = "-OOM command not allowed when used memory > 'maxmemory'.\r\n";
  CHECK(replies_of(&call) == oom + "-ERR the pool was dropped\r\n" + oom);
}

TEST_CASE("a call holds no more commands than make a turn, and keeps little memory for the next") {
  RespCall call;
  std::string value(1000, 'v');
  while (!call.is_full()) {
    add(&call, 0, {"SET", "key", value});
    ++call.command_count;
  }
  CHECK(call.parts.size() <= 64);
  CHECK(call.parts.capacity() != 0);
  call.reset();
  CHECK(call.parts.capacity() == 0);
  CHECK(!call.is_full());
}

TEST_CASE("replies of parts become one") {
  CHECK(joined(RespJoin::Only, {"+PONG\r\n"}) == "+PONG\r\n");
  CHECK(joined(RespJoin::Only, {}) == "");
  CHECK(joined(RespJoin::Array, {"$1\r\na\r\n", "$-1\r\n"}) == "*2\r\n$1\r\na\r\n$-1\r\n");
  CHECK(joined(RespJoin::Array, {}) == "*0\r\n");
  CHECK(joined(RespJoin::Arrays, {":1\r\n:2\r\n", ":3\r\n:4\r\n"}, 2) ==
        "*4\r\n:1\r\n:2\r\n:3\r\n:4\r\n");
  CHECK(joined(RespJoin::Sum, {":1\r\n", ":0\r\n", ":41\r\n"}) == ":42\r\n");
  CHECK(joined(RespJoin::AllOk, {"+OK\r\n", "+OK\r\n"}) == "+OK\r\n");
  CHECK(joined(RespJoin::AnyOne, {"$-1\r\n", "$1\r\na\r\n", "$-1\r\n"}) == "$1\r\na\r\n");
  CHECK(joined(RespJoin::AnyOne, {"_\r\n", "_\r\n"}) == "_\r\n");
  CHECK(joined(RespJoin::AnyOne, {"$2\r\n-1\r\n", "$-1\r\n"}) == "$2\r\n-1\r\n");
}

TEST_CASE("the first error stands for all") {
  CHECK(joined(RespJoin::Sum, {":1\r\n", "-ERR a\r\n", "-ERR b\r\n"}) == "-ERR a\r\n");
  CHECK(joined(RespJoin::AllOk, {"+OK\r\n", "-OOM a\r\n"}) == "-OOM a\r\n");
  CHECK(joined(RespJoin::Scan, {"-ERR syntax error\r\n"}) == "-ERR syntax error\r\n");
}

TEST_CASE("a step of a scan tells where the next begins") {
  CHECK(joined(RespJoin::Scan, {"$1\r\na\r\n"}, 1) ==
        "*2\r\n$18\r\n576460752303423488\r\n*1\r\n$1\r\na\r\n");
  CHECK(joined(RespJoin::Scan, {""}, 0, uint64_t{1} << 63) ==
        "*2\r\n$18\r\n432345564227567616\r\n*0\r\n");
}

TEST_CASE("the refusal of a transaction is all there is") {
  RespCall call;
  call.command = find_resp_command("EXEC");
  call.join = RespJoin::Array;
  call.add_part(find_resp_command("GET"), 0);
  call.is_refused = true;
  RespWriter(call.replies_of_shard(2).bytes(), RespVersion::Resp2).null_array();
  OutputQueue output;
  call.join_parts(kShardCount, &output);
  CHECK(as_text(output.bytes()->view()) == "*-1\r\n");
}

TEST_CASE("a scan goes from shard to shard, and ends behind the last") {
  CHECK(ScanCursor::from(0).shard == 0);
  CHECK(ScanCursor::from(0).index_cursor == 0);
  for (uint32_t shard = 0; shard < kShardCount; ++shard) {
    ScanCursor within{shard, uint64_t{5} << 40};
    ScanCursor again = ScanCursor::from(within.next(kShardCount));
    CHECK(again.shard == shard);
    CHECK(again.index_cursor == within.index_cursor);
    ScanCursor next = ScanCursor::from(ScanCursor{shard, 0}.next(kShardCount));
    CHECK(next.shard == (shard + 1) % kShardCount);
    CHECK(next.index_cursor == 0);
  }
  CHECK(ScanCursor{kShardCount - 1, 0}.next(kShardCount) == 0);
  CHECK(ScanCursor{0, 0}.next(1) == 0);
}

}  // namespace kvstrata
