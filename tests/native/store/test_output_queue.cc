// What a connection has yet to send goes out byte by byte in order, and every extent is let go
// once.
#include <doctest/doctest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <list>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "store/native/output_queue.h"
#include "tests/native/store/store_fixture.h"

namespace kvstrata {
namespace {

// Two ends of a stream whose buffers are as small as the kernel lets them be.
class TinyPipe {
 public:
  TinyPipe() {
    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0);
    int bytes = 1;
    ::setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
    ::setsockopt(ends[1], SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
    stream_ = std::make_unique<SocketStream>(Socket(ends[0]));
    reader_ = Socket(ends[1]);
  }
  Stream* stream() { return stream_.get(); }
  void drain(Value* received, size_t count_max) {
    Value buffer(count_max);
    ssize_t count = ::read(reader_.fd(), buffer.data(), buffer.size());
    if (count > 0) received->insert(received->end(), buffer.begin(), buffer.begin() + count);
  }

 private:
  std::unique_ptr<SocketStream> stream_;
  Socket reader_;
};

class Model {
 public:
  explicit Model(uint64_t seed) : random_(seed) {}

  void add() { add(&queue_); }
  void add(OutputQueue* queue) {
    if (random_() % 2 == 0) {
      Value bytes = make_value(random_() % 300, random_());
      queue->bytes()->append(bytes);
      expected_.insert(expected_.end(), bytes.begin(), bytes.end());
      return;
    }
    extents_.push_back(make_value(1 + random_() % (random_() % 4 == 0 ? 20'000 : 50), random_()));
    const Value& data = extents_.back();
    uint64_t number = extents_.size();
    queue->add_piece(data.data(),
                     {{number * limits::kPageBytes, limits::kPageBytes}, 0, data.size()},
                     static_cast<uint32_t>(number % 3));
    expected_.insert(expected_.end(), data.begin(), data.end());
    ends_[number] = expected_.size();
  }

  // Written elsewhere, and moved here in steps.
  void add_from_another() {
    OutputQueue other;
    std::vector<OutputQueue::Mark> marks;
    for (uint64_t count = random_() % 10; count > 0; --count) {
      add(&other);
      marks.push_back(other.end());
    }
    for (const OutputQueue::Mark& mark : marks) {
      if (random_() % 2 == 0) queue_.append(&other, mark);
    }
    queue_.append(&other);
    REQUIRE(other.empty());
    REQUIRE(other.pinned_bytes() == 0);
    REQUIRE(other.bytes()->size() == 0);
  }

  void send() {
    int64_t count = queue_.flush(pipe_.stream(), 1 + random_() % 5000, &released_);
    REQUIRE((count > 0 || queue_.empty() || errno == EAGAIN));
    sent_ += count > 0 ? static_cast<uint64_t>(count) : 0;
    REQUIRE(sent_ + queue_.pinned_bytes() + queue_.owned_bytes() == expected_.size());
    check_released(sent_);
  }

  // By somebody else, while the queue grows.
  void send_batch() {
    std::unique_ptr<OutputBatch> batch = queue_.next_batch(1 + random_() % 50'000);
    for (uint32_t count = random_() % 20; count > 0; --count) add();
    ssize_t count = ::sendmsg(pipe_.stream()->fd(), &batch->message, MSG_NOSIGNAL | MSG_DONTWAIT);
    REQUIRE((count > 0 || batch->length == 0 || errno == EAGAIN));
    auto sent = static_cast<uint64_t>(std::max<ssize_t>(count, 0));
    REQUIRE(sent <= batch->length);
    queue_.note_sent(sent, &released_);
    sent_ += sent;
    REQUIRE(sent_ + queue_.pinned_bytes() + queue_.owned_bytes() == expected_.size());
    check_released(sent_);
  }

  void receive() { pipe_.drain(&received_, 1 + random_() % 4000); }

  void finish() {
    while (!queue_.empty() || received_.size() < sent_) {
      send();
      receive();
    }
    CHECK(received_ == expected_);
    check_released(expected_.size());
    check_each_once();
    CHECK(released_.size() == extents_.size());
    CHECK(queue_.bytes()->size() == 0);
  }

  void discard() {
    queue_.discard(&released_);
    check_each_once();
    CHECK(released_.size() == extents_.size());
    CHECK(queue_.empty());
    CHECK(queue_.pinned_bytes() == 0);
    CHECK(queue_.owned_bytes() == 0);
  }

 private:
  void check_each_once() {
    std::map<uint64_t, uint32_t> counts;
    for (const OwnedExtent& each : released_) {
      uint64_t number = each.extent.offset / limits::kPageBytes;
      REQUIRE(++counts[number] == 1);
      REQUIRE(each.shard == number % 3);
    }
  }
  // Exactly the extents whose last byte has gone.
  void check_released(uint64_t sent) {
    if (sent == checked_) return;
    checked_ = sent;
    auto is_sent = [&](const auto& end) { return end.second <= sent; };
    REQUIRE(released_.size() ==
            static_cast<size_t>(std::count_if(ends_.begin(), ends_.end(), is_sent)));
  }

  std::mt19937_64 random_;
  TinyPipe pipe_;
  OutputQueue queue_;
  std::list<Value> extents_;
  std::map<uint64_t, uint64_t> ends_;  // Where an extent ends in the stream.
  Value expected_;
  Value received_;
  std::vector<OwnedExtent> released_;
  uint64_t sent_ = 0;
  uint64_t checked_ = UINT64_MAX;
};

}  // namespace

TEST_CASE("bytes and extents go out in order whatever the kernel takes at a time") {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    Model model(seed);
    std::mt19937_64 random(seed);
    for (uint32_t step = 0; step < 400; ++step) {
      uint32_t dice = random() % 6;
      if (dice == 0) {
        for (uint32_t i = random() % 80; i > 0; --i) model.add();
      }
      if (dice == 4) model.add_from_another();
      if (dice == 1) model.receive();
      if (dice == 2) model.send_batch();
      if (dice == 3 || dice == 5) model.send();
    }
    if (seed % 4 == 0) {
      model.discard();
    } else {
      model.finish();
    }
  }
}

TEST_CASE("a queue that is never empty does not grow") {
  TinyPipe pipe;
  OutputQueue queue;
  Value block = make_value(1000, 1);
  Value received;
  std::vector<OwnedExtent> released;
  queue.bytes()->append(block);
  for (uint32_t round = 0; round < 5000; ++round) {
    queue.bytes()->append(block);
    queue.add_piece(block.data(), {{limits::kPageBytes, limits::kPageBytes}, 0, 10}, 0);
    while (queue.owned_bytes() + queue.pinned_bytes() > 1000) {
      queue.flush(pipe.stream(), 700, &released);
      pipe.drain(&received, 4000);
    }
    REQUIRE(!queue.empty());
    REQUIRE(queue.bytes()->capacity() < 1 << 20);
  }
  CHECK(released.size() > 4990);
}

}  // namespace kvstrata
