#include "store/native/load_driver.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>

#include "transport/native/greeting.h"

namespace kvstrata {

namespace {

constexpr size_t kKeyDigits = 12;
constexpr int kEventCount = 64;
constexpr int kRoundsMax = 4;  // For one connection, before the others get their turn.

}  // namespace

// One command in flight, with its memory; begun anew as soon as it has ended.
class LoadDriver::Lane {
 public:
  Lane(Link* link, const LoadOptions& options)
      : link_(link), key_(options.key_prefix + std::string(kKeyDigits, '0')) {
    sink_.resize(options.value_bytes);
  }

  void set_number(uint64_t number) noexcept {
    for (size_t i = key_.size(); i > key_.size() - kKeyDigits; number /= 10) {
      key_[--i] = static_cast<char>('0' + number % 10);
    }
  }

  Link* link_;
  std::string key_;
  std::vector<std::byte> sink_;
  std::optional<Transfer> transfer_;
  Clock::time_point begun_;
};

// One connection and its lanes.
class LoadDriver::Link final : public TransferOwner {
 public:
  void provide_sinks(Transfer& /*transfer*/, size_t /*first*/, size_t /*count*/) noexcept override {
  }
  void ended(Transfer& transfer) noexcept override {
    auto lane = std::ranges::find_if(lanes_, [&](const auto& each) {
      return each->transfer_ && &*each->transfer_ == &transfer;
    });
    ended_.push_back(lane->get());
  }

  std::vector<std::unique_ptr<Lane>> lanes_;
  std::vector<Lane*> ended_;  // Room for all lanes is reserved, so push_back does not throw.
  uint32_t events_ = EPOLLIN;
  std::unique_ptr<Initiator> initiator_;  // Last, since closing it ends transfers.
};

std::unique_ptr<LoadDriver> LoadDriver::create(LoadOptions options, Status* status,
                                               std::string* error) {
  std::unique_ptr<LoadDriver> driver(new LoadDriver(std::move(options)));
  if (!driver->connect(status, error)) return nullptr;
  return driver;
}

LoadDriver::LoadDriver(LoadOptions options)
    : options_(std::move(options)), random_(options_.seed), value_(options_.value_bytes) {
  for (std::byte& each : value_) each = static_cast<std::byte>(random_());
}

LoadDriver::~LoadDriver() {
  if (epoll_ >= 0) ::close(epoll_);
}

bool LoadDriver::connect(Status* status, std::string* error) {
  epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
  if (epoll_ < 0) {
    *status = Status::Internal;
    *error = std::string("epoll_create1 failed: ") + std::strerror(errno);
    return false;
  }
  Deadline deadline = Deadline::after_ms(options_.timeout_ms);
  std::string name = endpoint_name(options_.host, options_.port);
  for (uint32_t i = 0; i < options_.connection_count; ++i) {
    auto link = std::make_unique<Link>();
    Socket socket;
    NodeHello node;
    *status = greet(options_.host, options_.port, options_.hello, deadline, &socket, &node, error);
    if (*status != Status::Ok) return false;
    link->initiator_ = std::make_unique<Initiator>(
        std::make_unique<SocketStream>(std::move(socket)), node, name, options_.verify, 0);
    for (uint32_t k = 0; k < options_.depth; ++k) {
      link->lanes_.push_back(std::make_unique<Lane>(link.get(), options_));
    }
    link->ended_.reserve(options_.depth);
    epoll_event event{.events = link->events_, .data = {.ptr = link.get()}};
    ::epoll_ctl(epoll_, EPOLL_CTL_ADD, link->initiator_->fd(), &event);
    links_.push_back(std::move(link));
  }
  last_completion_ = Clock::now();
  return true;
}

Status LoadDriver::advance(int64_t milliseconds, std::string* error) {
  Clock::time_point started = Clock::now();
  Clock::time_point until = started + std::chrono::milliseconds(milliseconds);
  if (begun_count_ == 0) {
    for (auto& link : links_) {
      for (auto& lane : link->lanes_) begin(lane.get());
      if (!work(link.get())) break;
    }
  }
  Clock::time_point now = started;
  while (failure_ == Status::Ok && in_flight_count_ != 0 && now < until) {
    wait_and_work(until);
    now = Clock::now();
    if (now - last_completion_ > std::chrono::milliseconds(options_.timeout_ms)) {
      failure_ = kStatusTimedOut;
      why_ = "no command completed within " + std::to_string(options_.timeout_ms) + " ms";
    }
  }
  report_.elapsed_ns += static_cast<uint64_t>(std::chrono::nanoseconds(now - started).count());
  if (failure_ != Status::Ok) *error = why_;
  if (failure_ == Status::Ok && in_flight_count_ != 0) return Status::Busy;
  return failure_;
}

// One round over all connections that have something to do. False after a failure.
bool LoadDriver::wait_and_work(Clock::time_point until) {
  auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
  int timeout_ms = eager_.empty() ? static_cast<int>(std::max<int64_t>(left, 0)) : 0;
  std::array<epoll_event, kEventCount> events;
  int count = ::epoll_wait(epoll_, events.data(), kEventCount, timeout_ms);
  std::vector<Link*> due;
  due.swap(eager_);
  for (int i = 0; i < count; ++i) {
    due.push_back(static_cast<Link*>(events[static_cast<size_t>(i)].data.ptr));
  }
  return std::ranges::all_of(due, [this](Link* link) { return work(link); });
}

// Sends and receives, and begins anew what has ended, a few times at most. False after a failure.
bool LoadDriver::work(Link* link) {
  Initiator& initiator = *link->initiator_;
  bool moved = true;
  for (int round = 0; moved && round < kRoundsMax; ++round) {
    moved = initiator.progress();
    if (link->ended_.empty()) continue;
    moved = true;
    last_completion_ = Clock::now();
    std::vector<Lane*> ended;
    ended.swap(link->ended_);
    link->ended_.reserve(options_.depth);
    for (Lane* lane : ended) {
      finished(*lane);
      if (failure_ != Status::Ok) return false;
      begin(lane);
    }
  }
  if (moved) eager_.push_back(link);
  uint32_t events = EPOLLIN | (initiator.wants_write() ? EPOLLOUT : 0U);
  if (events != link->events_) {
    link->events_ = events;
    epoll_event event{.events = events, .data = {.ptr = link}};
    ::epoll_ctl(epoll_, EPOLL_CTL_MOD, initiator.fd(), &event);
  }
  return true;
}

void LoadDriver::begin(Lane* lane) {
  if (begun_count_ >= options_.command_count) return;
  lane->set_number(options_.in_turn ? begun_count_ % options_.key_count
                                    : random_() % options_.key_count);
  ++begun_count_;
  ++in_flight_count_;
  bool puts = options_.put_percent != 0 && random_() % 100 < options_.put_percent;
  Transfer& transfer = lane->transfer_.emplace(lane->link_, puts ? Opcode::Put : options_.opcode);
  transfer.deadline_ms = static_cast<uint32_t>(options_.timeout_ms);
  TransferItem& item = transfer.items.emplace_back();
  item.key = as_bytes(lane->key_);
  if (opcode_writes(transfer.opcode)) item.source = value_;
  if (opcode_reads(transfer.opcode)) item.sink = lane->sink_;
  lane->begun_ = Clock::now();
  lane->link_->initiator_->submit(&transfer);
}

void LoadDriver::finished(const Lane& lane) {
  const Transfer& transfer = *lane.transfer_;
  const TransferItem& item = transfer.items.front();
  --in_flight_count_;
  Status status = item.status != Status::Ok ? item.status : transfer.status;
  if (status != Status::Ok && status != Status::NotFound) {
    failure_ = status;
    why_ = "key " + lane.key_ + ": " +
           (transfer.message.empty() ? std::string(status_name(status)) : transfer.message);
    return;
  }
  ++report_.completed_count;
  report_.absent_count += status == Status::NotFound;
  report_.value_bytes += opcode_writes(transfer.opcode) ? item.source.size() : item.moved;
  report_.latency.add(
      static_cast<uint64_t>(std::chrono::nanoseconds(last_completion_ - lane.begun_).count()));
}

}  // namespace kvstrata
