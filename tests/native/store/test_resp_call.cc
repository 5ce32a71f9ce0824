// How the replies of a call's parts become one, and where a walk through a node goes on.
#include <doctest/doctest.h>

#include "store/native/resp_call.h"
#include "store/native/scan_cursor.h"

namespace kvstrata {

namespace {

constexpr uint32_t kShardCount = 3;

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

}  // namespace

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
