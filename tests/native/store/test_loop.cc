// What a shard's loop is made of: when it spins, what counts as a stall, and how it is woken.
#include <doctest/doctest.h>
#include <poll.h>

#include <chrono>
#include <thread>
#include <vector>

#include "store/native/mailbox.h"
#include "store/native/spin_gate.h"
#include "store/native/turn_watch.h"

namespace kvstrata {

namespace {

constexpr uint64_t kBudgetNs = 10'000;

// Work in close order, up to `now`.
uint64_t work_closely(SpinGate* gate, uint64_t now) {
  for (uint32_t i = 0; i < 8; ++i) gate->note_work(now += kBudgetNs / 2, false);
  return now;
}

// Uses the processor until `own_ns` of this thread's time have gone by.
void toil(uint64_t own_ns) {
  uint64_t end = TurnWatch::thread_ns() + own_ns;
  while (TurnWatch::thread_ns() < end) continue;
}

}  // namespace

TEST_CASE("a loop spins only after work in close order, and only for its budget") {
  SpinGate gate(kBudgetNs);
  CHECK(!gate.open(0));
  uint64_t now = 1'000'000'000;
  gate.note_work(now, false);
  CHECK(!gate.open(now));
  now = work_closely(&gate, now);
  CHECK(gate.open(now));
  CHECK(gate.open(now + kBudgetNs));
  CHECK(!gate.open(now + kBudgetNs + 1));
  // A loop's clock may still stand at the beginning of the turn that did the work.
  CHECK(gate.open(now - kBudgetNs / 2));
}

TEST_CASE("a long gap or bulk data stop the spinning until work comes in close order again") {
  SpinGate gate(kBudgetNs);
  uint64_t now = work_closely(&gate, 1'000'000'000);
  gate.note_work(now += 3 * kBudgetNs, false);
  CHECK(!gate.open(now));
  now = work_closely(&gate, now);
  CHECK(gate.open(now));
  gate.note_work(now += 100, true);
  CHECK(!gate.open(now));
  gate.note_work(now += 100, false);
  CHECK(!gate.open(now));
  now = work_closely(&gate, now);
  CHECK(gate.open(now));
}

TEST_CASE("without a budget a loop never spins") {
  SpinGate gate(0);
  uint64_t now = work_closely(&gate, 1'000'000'000);
  CHECK(!gate.open(now + 1));
}

TEST_CASE("a turn is a stall when it took too long of the thread's own time") {
  TurnWatch watch;
  // A turn that is long, but no stall, makes the next one be measured by the processor's time.
  uint64_t begin = TurnWatch::monotonic_ns();
  watch.begin(begin);
  CHECK(watch.end(begin + TurnWatch::kStallNs / 2) == 0);
  watch.begin(TurnWatch::monotonic_ns());
  toil(3 * TurnWatch::kStallNs);
  CHECK(watch.end(TurnWatch::monotonic_ns()) >= 3 * TurnWatch::kStallNs);
  watch.begin(TurnWatch::monotonic_ns());
  std::this_thread::sleep_for(std::chrono::nanoseconds(3 * TurnWatch::kStallNs));
  CHECK(watch.end(TurnWatch::monotonic_ns()) == 0);
}

TEST_CASE("short turns are no stalls") {
  TurnWatch watch;
  for (uint32_t i = 0; i < 100; ++i) {
    uint64_t begin = TurnWatch::monotonic_ns();
    watch.begin(begin);
    REQUIRE(watch.end(begin + TurnWatch::kStallNs) == 0);
  }
}

TEST_CASE("no letter is lost between a mailbox's owner falling asleep and those who write to it") {
  constexpr uint32_t kWriters = 3;
  constexpr uint32_t kLetters = 20'000;
  struct Owner {
    uint32_t received[kWriters] = {};
    bool in_order = true;
  } owner;
  Mailbox<Owner> mailbox;
  std::vector<std::thread> writers;
  for (uint32_t writer = 0; writer < kWriters; ++writer) {
    writers.emplace_back([&mailbox, writer] {
      for (uint32_t i = 0; i < kLetters; ++i) {
        mailbox.post([writer, i](Owner& to) {
          to.in_order = to.in_order && to.received[writer] == i;
          ++to.received[writer];
        });
        if (i % 64 == 0) std::this_thread::yield();
      }
    });
  }
  auto total = [&] { return owner.received[0] + owner.received[1] + owner.received[2]; };
  bool woken = true;
  while (total() < kWriters * kLetters && woken) {
    if (mailbox.may_sleep()) {
      pollfd waits{mailbox.fd(), POLLIN, 0};
      // A wake-up that was lost would let this run out.
      woken = ::poll(&waits, 1, 10'000) == 1;
      mailbox.awake();
      mailbox.clear_wake();
    }
    uint32_t before = total();
    mailbox.deliver(owner, [&] { return total() - before == 3; });
  }
  for (std::thread& writer : writers) writer.join();
  CHECK(woken);
  CHECK(owner.in_order);
  CHECK(total() == kWriters * kLetters);
  CHECK(!mailbox.has_letters());
}

TEST_CASE("letters written while letters are delivered wait for the next time") {
  struct Owner {
    uint32_t count = 0;
  } owner;
  Mailbox<Owner> mailbox;
  mailbox.post([&mailbox](Owner& to) {
    ++to.count;
    mailbox.post([](Owner& again) { again.count += 10; });
  });
  auto never = [] { return false; };
  mailbox.deliver(owner, never);
  CHECK(owner.count == 1);
  CHECK(mailbox.has_letters());
  CHECK(!mailbox.may_sleep());
  mailbox.deliver(owner, never);
  CHECK(owner.count == 11);
  CHECK(mailbox.may_sleep());
}

TEST_CASE("letters that one turn has no time for are the next one's first") {
  struct Owner {
    std::vector<uint32_t> seen;
  } owner;
  Mailbox<Owner> mailbox;
  for (uint32_t number = 0; number < 3; ++number) {
    mailbox.post([number](Owner& to) { to.seen.push_back(number); });
  }
  mailbox.deliver(owner, [&] { return owner.seen.size() == 2; });
  CHECK(owner.seen.size() == 2);
  CHECK(mailbox.has_letters());
  CHECK(!mailbox.may_sleep());
  mailbox.post([](Owner& to) { to.seen.push_back(3); });
  auto never = [] { return false; };
  mailbox.deliver(owner, never);
  mailbox.deliver(owner, never);
  CHECK(owner.seen == std::vector<uint32_t>{0, 1, 2, 3});
  CHECK(mailbox.may_sleep());
}

}  // namespace kvstrata
