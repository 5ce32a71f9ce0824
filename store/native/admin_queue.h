// Administrative commands on their way to Python: a bounded queue and an eventfd. The command is
// parked on its shard meanwhile.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace kvstrata {

struct AdminCall {
  uint64_t id = 0;
  uint32_t shard = 0;
  std::string name;
  std::vector<std::byte> payload;
  std::string pool;
  uint32_t rights = 0;
  std::string peer;
  // Of a command of a Valkey client, which is answered with a reply as it travels: the arguments,
  // its name first.
  std::vector<std::string> arguments;
  uint32_t resp_version = 0;  // 0: it is none.
  uint64_t client_id = 0;
};

class AdminQueue {
 public:
  AdminQueue();
  ~AdminQueue();
  AdminQueue(const AdminQueue&) = delete;
  AdminQueue& operator=(const AdminQueue&) = delete;

  // Readable while calls wait.
  int fd() const noexcept { return fd_; }
  // False when too many wait.
  bool push(AdminCall call);
  std::optional<AdminCall> pop();

 private:
  static constexpr size_t kWaitingMax = 256;
  int fd_;
  std::mutex mutex_;
  std::deque<AdminCall> calls_;
};

}  // namespace kvstrata
