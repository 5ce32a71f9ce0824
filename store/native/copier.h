// Copies between memory of clients and the arena, and the threads that copy what would hold up a
// shard's loop.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "transport/native/checksum.h"

namespace kvstrata {

// Bytes that go from one place to another.
struct CopyPiece {
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  uint64_t length_bytes = 0;
  std::byte* checksum = nullptr;  // Where the checksum of what has arrived goes; null: nowhere.
};

// One thread's.
class Copier {
 public:
  // In tiles that stay in the nearest cache until they are hashed. The copy is hashed, not its
  // source, which a client may change at any time.
  void copy(const CopyPiece& piece) noexcept;

 private:
  ChecksumStream hash_;
};

// Pieces that are copied by any threads, in any order.
class CopyJob {
 public:
  uint64_t bytes() const noexcept;

  std::vector<CopyPiece> pieces;
  std::vector<std::shared_ptr<void>> kept;  // Until the end: the memory they lie in.
  std::function<void()> done;               // Called once, by the thread that ends it.

 private:
  friend class Copiers;
  size_t next_ = 0;              // First piece that no thread has taken.
  std::atomic<size_t> left_{0};  // Pieces not yet copied.
};

// A few threads, for all shards of a node.
class Copiers {
 public:
  explicit Copiers(uint32_t thread_count);
  ~Copiers() { stop(); }
  Copiers(const Copiers&) = delete;
  Copiers& operator=(const Copiers&) = delete;

  // Any thread. Large jobs do not hold up small ones: they take turns.
  void start(std::shared_ptr<CopyJob> job);
  // Ends the threads; what they have not begun is dropped.
  void stop() noexcept;
  // Lets go of it elsewhere: to unmap memory takes as long as to copy some.
  void dispose(std::shared_ptr<void> memory);

 private:
  void run();
  void work(Copier* copier, std::unique_lock<std::mutex>* lock);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<CopyJob>> jobs_;
  std::vector<std::shared_ptr<void>> disposed_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace kvstrata
