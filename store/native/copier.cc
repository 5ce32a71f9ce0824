#include "store/native/copier.h"

#include <pthread.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "transport/native/bytes.h"

namespace kvstrata {

namespace {

constexpr uint64_t kTileBytes = 32 * 1024;
// What a thread takes at a time: some 30 us of copying, beside which to take it costs nothing.
constexpr uint64_t kShareBytes = 256 * 1024;

}  // namespace

void Copier::copy(const CopyPiece& piece) noexcept {
  if (piece.checksum == nullptr) {
    std::memcpy(piece.to, piece.from, piece.length_bytes);
    return;
  }
  if (piece.length_bytes <= kTileBytes) {
    std::memcpy(piece.to, piece.from, piece.length_bytes);
    store_le(piece.checksum, chunk_checksum({piece.to, piece.length_bytes}));
    return;
  }
  hash_.reset();
  for (uint64_t at = 0; at < piece.length_bytes; at += kTileBytes) {
    uint64_t count = std::min(kTileBytes, piece.length_bytes - at);
    std::memcpy(piece.to + at, piece.from + at, count);
    hash_.update({piece.to + at, count});
  }
  store_le(piece.checksum, hash_.digest());
}

Copiers::Copiers(uint32_t thread_count) {
  for (uint32_t index = 0; index < thread_count; ++index) {
    threads_.emplace_back([this, index] {
      std::string name = "kvs-copier-" + std::to_string(index);
      ::pthread_setname_np(::pthread_self(), name.c_str());
      run();
    });
  }
}

uint64_t CopyJob::bytes() const noexcept {
  uint64_t sum = 0;
  for (const CopyPiece& piece : pieces) sum += piece.length_bytes;
  return sum;
}

void Copiers::stop() noexcept {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  jobs_.clear();
}

void Copiers::start(std::shared_ptr<CopyJob> job) {
  job->left_ = job->pieces.size();
  uint64_t bytes = job->bytes();
  {
    std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  if (bytes > kShareBytes) {
    changed_.notify_all();
  } else {
    changed_.notify_one();
  }
}

void Copiers::dispose(std::shared_ptr<void> memory) {
  {
    std::lock_guard lock(mutex_);
    disposed_.push_back(std::move(memory));
  }
  changed_.notify_one();
}

void Copiers::run() {
  Copier copier;
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || !jobs_.empty() || !disposed_.empty(); });
    if (stopping_) return;
    if (!jobs_.empty()) {
      work(&copier, &lock);
      continue;
    }
    auto disposed = std::exchange(disposed_, {});
    lock.unlock();
    disposed.clear();
    lock.lock();
  }
}

// A share of the first job, whose next share has its turn behind those of the others.
void Copiers::work(Copier* copier, std::unique_lock<std::mutex>* lock) {
  std::shared_ptr<CopyJob> job = std::move(jobs_.front());
  jobs_.pop_front();
  size_t first = job->next_;
  for (uint64_t bytes = 0; bytes < kShareBytes && job->next_ < job->pieces.size(); ++job->next_) {
    bytes += job->pieces[job->next_].length_bytes;
  }
  size_t count = job->next_ - first;
  if (job->next_ < job->pieces.size()) jobs_.push_back(job);
  lock->unlock();
  for (const CopyPiece& piece : std::span(job->pieces).subspan(first, count)) copier->copy(piece);
  if (job->left_.fetch_sub(count) == count) job->done();
  job.reset();
  lock->lock();
}

}  // namespace kvstrata
