// How often operations in flight are looked at, and that none is overlooked.
#include <doctest/doctest.h>

#include <random>
#include <utility>
#include <vector>

#include "store/native/submissions.h"

namespace kvstrata {

namespace {

struct FakeOperation {
  int number;
  bool done = false;
  bool sent = false;
};

struct Item {
  FakeOperation* operation;
  int* look_count;
  bool finished() const {
    ++*look_count;
    return operation->done;
  }
  bool unsent() const { return !operation->sent; }
};

constexpr int kOperationCount = 5000;
constexpr int kCredits = 128;

std::vector<FakeOperation> make_operations(int count) {
  std::vector<FakeOperation> operations;
  for (int i = 0; i < count; ++i) operations.push_back({.number = i});
  return operations;
}

std::vector<int> take(Submissions<Item>* submissions) {
  std::vector<int> taken;
  submissions->take_finished([&](const Item& item) { taken.push_back(item.operation->number); });
  return taken;
}

}  // namespace

TEST_CASE("looks at thousands in flight grow with their number, not with its square") {
  std::vector<FakeOperation> operations = make_operations(kOperationCount);
  Submissions<Item> submissions;
  int look_count = 0;
  for (FakeOperation& operation : operations) submissions.add({&operation, &look_count});

  std::mt19937 choose(5);
  std::vector<FakeOperation*> sent;
  size_t sent_count = 0;
  // The worst case: each answer comes alone, in any order.
  for (int answer = 0; answer < kOperationCount; ++answer) {
    while (sent.size() < kCredits && sent_count < operations.size()) {
      sent.push_back(&operations[sent_count++]);
      sent.back()->sent = true;
    }
    std::swap(sent[choose() % sent.size()], sent.back());
    sent.back()->done = true;
    REQUIRE(take(&submissions) == std::vector{sent.back()->number});
    sent.pop_back();
  }
  CHECK(look_count <= kOperationCount * (kCredits + 1));
}

TEST_CASE("all that have finished are taken in order, also those that failed unsent") {
  std::vector<FakeOperation> operations = make_operations(5);
  Submissions<Item> submissions;
  int look_count = 0;
  for (FakeOperation& operation : operations) {
    operation.done = operation.sent = true;
    submissions.add({&operation, &look_count});
  }
  operations[1].done = false;
  operations[2].sent = false;
  CHECK(take(&submissions) == std::vector{0, 2, 3, 4});
  CHECK(take(&submissions).empty());
  operations[1].done = true;
  CHECK(take(&submissions) == std::vector{1});
}

}  // namespace kvstrata
