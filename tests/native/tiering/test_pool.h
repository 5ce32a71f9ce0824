// A small segment pool for tests, and a check that a call ends the process.
#pragma once

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <memory>
#include <string>

#include "tiering/native/segment_pool.h"

namespace kvstrata {

inline std::unique_ptr<SegmentPool> make_pool(const SegmentPoolOptions& options) {
  std::unique_ptr<SegmentPool> pool;
  std::string error;
  Status status = SegmentPool::create(options, &pool, &error);
  REQUIRE_MESSAGE(status == Status::Ok, error);
  return pool;
}

inline std::unique_ptr<SegmentPool> make_pool(uint64_t memory_bytes, uint64_t segment_bytes = 0) {
  return make_pool({.memory_bytes = memory_bytes, .segment_bytes = segment_bytes});
}

// True if `action` aborts, as a failed assert does. It runs in a child process, which has none of
// the pool's threads.
template <typename Action>
bool aborts(Action&& action) {
  pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    signal(SIGABRT, SIG_DFL);
    alarm(10);
    if (std::freopen("/dev/null", "w", stderr) == nullptr) _exit(1);
    action();
    _exit(0);
  }
  int outcome = 0;
  REQUIRE(waitpid(child, &outcome, 0) == child);
  return WIFSIGNALED(outcome) && WTERMSIG(outcome) == SIGABRT;
}

}  // namespace kvstrata
