#include "store/native/shard.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <future>

#include "store/native/node.h"
#include "store/native/ring_channel.h"
#include "store/native/socket_channel.h"
#include "transport/native/spin.h"

namespace kvstrata {

namespace {

constexpr size_t kReadBufferBytes = 32 * 1024;
constexpr uint64_t kTickNs = 100'000'000;
constexpr int kIdleMs = 1000;
constexpr int kMemoryWaitMs = 1;  // While other shards make room.
// Even if the turn is long already: a stream of events must not hold up for ever what is due.
constexpr size_t kSessionsPerTurnMin = 2;
constexpr uint64_t kStepBytes = 68 * 1024;  // 64 KiB and what goes around them.
constexpr uint64_t kStepBytesAlone = 256 * 1024;
constexpr uint64_t kCrowdedNs = 10'000'000;
constexpr uint32_t kSessionsPerTick = 512;
// Idle commands that keep room for a batch; further ones give it back.
constexpr size_t kBatchesKept = 32;
// While rings are busy the reactor, which takes a system call, is asked only so often.
constexpr uint64_t kLookNs = 5'000;
constexpr uint64_t kRetryNs = 50'000;  // Of making room, in one turn.

uint64_t wall_clock_ms() noexcept {
  auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(now).count());
}

}  // namespace

Shard::Shard(Node* node, uint32_t index)
    : node_(node),
      index_(index),
      store_(node->segments(), node->hash_seed(), node->shard_count(), &statistics_),
      mailbox_watch_(mailbox_.fd(), nullptr),
      read_buffer_(kReadBufferBytes),
      releases_(node->shard_count()),
      letters_(node->shard_count()),
      spin_(uint64_t{node->options().spin_us} * 1000) {
  now_ns_ = TurnWatch::monotonic_ns();
  store_.set_clock(wall_clock_ms());
}

Shard::~Shard() {
  join();
  sessions_.clear();
}

// Returns once the shard listens.
void Shard::start() {
  std::promise<void> listens;
  thread_ = std::thread([this, &listens] {
    std::string name = "kvs-shard-" + std::to_string(index_);
    ::pthread_setname_np(::pthread_self(), name.c_str());
    open_reactor();
    listens.set_value();
    run();
  });
  listens.get_future().wait();
}

void Shard::begin_stop(uint64_t deadline_ns) {
  post([deadline_ns](Shard& shard) {
    shard.stop_deadline_ns_ = deadline_ns;
    if (shard.acceptor_) shard.acceptor_->stop();
  });
}

void Shard::join() {
  if (thread_.joinable()) thread_.join();
}

void Shard::open_reactor() {
  if (node_->options().reactor == ReactorKind::Uring) reactor_ = make_uring_reactor();
  if (reactor_ == nullptr) reactor_ = make_epoll_reactor();
  reactor_->watch(&mailbox_watch_, Input::Ready, false);
  if (index_ == 0) acceptor_.emplace(node_, this);
}

void Shard::run() {
  while (!stop_is_due()) turn(wait());
}

uint32_t Shard::wait() {
  if (next_event_ == event_count_) fetch_events();
  now_ns_ = read_clock();
  watch_.begin(now_ns_);
  store_.set_clock(wall_clock_ms());
  letters_seen_ = mailbox_.has_letters();
  if (letters_seen_) mailbox_.deliver(*this, [this] { return turn_is_long(); });
  uint32_t worked = rings_.work(now_ns_, [this] { return turn_is_long(); });
  size_t first = next_event_;
  while (next_event_ < event_count_) {
    const IoEvent& event = events_[next_event_++];
    handle(event);
    reactor_->finish(event);
    if (turn_is_long()) break;
  }
  return worked + static_cast<uint32_t>(next_event_ - first);
}

void Shard::fetch_events() {
  bool idle = !maintenance_due_ && !progressing_ && continue_due_.empty() && flush_due_.empty();
  bool spins = spin_.open(now_ns_);
  next_event_ = 0;
  event_count_ = 0;
  bool rings_work = rings_.has_work() || (idle && spins && rings_.linger());
  bool rings_busy = rings_work || (idle && spins && !rings_.empty());
  if (rings_busy && clock_ns_ - looked_ns_ < kLookNs) return;
  looked_ns_ = clock_ns_;
  bool may_sleep = idle && !spins && !rings_work && mailbox_.may_sleep() && rings_.may_sleep();
  event_count_ = reactor_->wait(events_, may_sleep ? timeout_ms() : 0, may_sleep);
  mailbox_.awake();
  if (event_count_ == 0 && idle && !may_sleep && !rings_work) give_way();
}

void Shard::turn(uint32_t event_count) {
  bool worked = event_count != 0 || letters_seen_;
  gauges_stale_ = gauges_stale_ || worked;
  continue_sessions();
  flush_sessions();
  if (!waiting_.empty()) retry_waiting();
  if (maintenance_due_ || now_ns_ >= next_tick_ns_) tick();
  send_releases();
  send_letters();
  // Events that wait may be about those that would go.
  if (reap_due_ && next_event_ == event_count_) reap();
  uint64_t end_ns = TurnWatch::monotonic_ns();
  statistics_.loop_turns.add();
  bool bulk = bulk_;
  if (worked) spin_.note_work(end_ns, std::exchange(bulk_, false));
  if (uint64_t stall = watch_.end(end_ns); stall != 0) {
    statistics_.loop_stalls.add();
    statistics_.loop_turn_ns_max.set(std::max(statistics_.loop_turn_ns_max.value(), stall));
  }
  if (bulk) give_way();
}

void Shard::handle(const IoEvent& event) {
  if (void* session = event.watch->owner(); session != nullptr) {
    handle(static_cast<Session*>(session), event);
  } else if (event.watch == &mailbox_watch_) {
    mailbox_.clear_wake();
    reactor_->watch(&mailbox_watch_, Input::Ready, false);
  } else {
    acceptor_->accept_connections(event.watch);
  }
}

void Shard::handle(Session* session, const IoEvent& event) {
  if (session->closed()) {
    reap_due_ = true;  // It may have waited for this.
    return;
  }
  session->channel().handle(event);
}

void Shard::adopt(Socket socket, Peer peer) {
  auto session = std::make_unique<Session>(this, std::move(peer));
  session->open(std::make_unique<SocketChannel>(session.get(), std::move(socket)));
  keep(std::move(session));
}

// Where no memory can be had, the answer to the hello says so, by not granting what was asked for.
void Shard::adopt_with_rings(Socket socket, Peer peer) {
  std::string error;
  auto memory = RingStream::make_memory(&error);
  peer.transport = memory == nullptr ? Transport::Unix : Transport::Shm;
  if (memory == nullptr) {
    adopt(std::move(socket), std::move(peer));
    return;
  }
  auto session = std::make_unique<Session>(this, std::move(peer));
  auto rings = std::make_unique<RingStream>(std::move(socket), std::move(memory), RingSide::Node);
  session->open(std::make_unique<RingChannel>(session.get(), std::move(rings)));
  keep(std::move(session));
}

void Shard::keep(std::unique_ptr<Session> session) {
  count_open(*session, 1);
  sessions_.push_back(std::move(session));
}

void Shard::count_open(const Session& session, int change) noexcept {
  auto amount = static_cast<uint64_t>(change);
  statistics_.connections_open.add(amount);
  Transport transport = session.peer().transport;
  if (transport == Transport::Unix) statistics_.connections_open_unix.add(amount);
  if (transport == Transport::Shm) statistics_.connections_open_shm.add(amount);
}

void Shard::hand_over(Session* session, uint32_t shard, const ClientHello& hello, Bytes unread) {
  auto socket = std::make_shared<Socket>(session->take_socket());
  std::vector<std::byte> rest(unread.begin(), unread.end());
  bool with_rings = session->wants_rings(hello);
  node_->shard(shard).post(
      [socket, with_rings, peer = session->peer(), hello, rest = std::move(rest)](Shard& target) {
        if (with_rings) {
          target.adopt_with_rings(std::move(*socket), peer);
        } else {
          target.adopt(std::move(*socket), peer);
        }
        target.sessions_.back()->adopt(hello, rest);
      });
}

Command* Shard::take_command() {
  Command* command = commands_.take();
  command->home_shard = static_cast<uint16_t>(index_);
  return command;
}

void Shard::return_command(Command* command) {
  command->reset(commands_.free_count() < kBatchesKept);
  commands_.give_back(command);
}

// All letters of a turn to one shard go at once: one lock, and one waking at most.
void Shard::post_later(uint32_t target, Mailbox<Shard>::Letter letter) {
  letters_[target].push_back(std::move(letter));
}

void Shard::send_letters() {
  for (uint32_t target = 0; target < letters_.size(); ++target) {
    if (!letters_[target].empty()) node_->shard(target).mailbox_.post_all(&letters_[target]);
  }
}

RespCall* Shard::take_resp_call() {
  RespCall* call = resp_calls_.take();
  call->home_shard = static_cast<uint16_t>(index_);
  return call;
}

OutputQueue& Shard::scratch_output() {
  std::vector<OwnedExtent> released;
  scratch_output_.discard(&released);
  release(&released);
  return scratch_output_;
}

std::vector<ConnectionReport> Shard::connections() const {
  std::vector<ConnectionReport> reports;
  for (const auto& session : sessions_) {
    if (!session->closed()) session->describe(&reports.emplace_back());
  }
  return reports;
}

uint64_t Shard::kill(std::span<const uint64_t> client_ids) {
  uint64_t count = 0;
  for (const auto& session : sessions_) {
    bool named = std::ranges::find(client_ids, session->client_id()) != client_ids.end();
    if (!named || session->closed()) continue;
    bool asks = std::ranges::any_of(
        admin_calls_, [&](const auto& call) { return call.second->session == session.get(); });
    if (asks) {
      session->close_when_answered();  // Perhaps it was the one that said so.
    } else {
      session->close();
    }
    ++count;
  }
  return count;
}

bool Shard::has_waiting(const Session* session) const noexcept {
  return std::ranges::any_of(waiting_,
                             [&](const Work& work) { return work.errand->session == session; });
}

void Shard::send_work(uint32_t owner, const Work& work) {
  post_later(owner, [work](Shard& shard) { shard.perform_for(work); });
}

bool Shard::begin_work(uint32_t owner, const Work& work) {
  if (owner != index_) {
    statistics_.hops.add();
    send_work(owner, work);
    return false;
  }
  if (work.errand->keeps_order && has_waiting(work.errand->session)) {
    waiting_.push_back(work);
    return false;
  }
  Status status = work.errand->perform(store_, store_.partition(work.errand->pool), index_, work);
  if (status != Status::Busy) return true;
  statistics_.memory_waits.add();
  waiting_.push_back(work);
  return false;
}

// Another shard's work: done here, then sent home.
void Shard::perform_for(const Work& work) {
  if (begin_work(index_, work)) send_home(work);
}

void Shard::work_done(const Work& work) { work.errand->session->on_work_done(work); }

void Shard::start_copy(std::shared_ptr<CopyJob> job, const Work& work) {
  CopyJob& started = *job;
  started.done = [this, work, &started] {
    // What it kept is let go of here, by the thread whose it is.
    post([work, kept = std::move(started.kept)](Shard& home) mutable {
      kept.clear();
      home.work_done(work);
    });
  };
  note_bulk();
  node_->copiers().start(std::move(job));
}

// Writes that wait for memory, oldest first. Where one gets nowhere those of its pool behind it
// wait on, but other pools' do not: it may be a quota that it waits for.
void Shard::retry_waiting() {
  uint64_t reclaimed = store_.reclaim_count();
  std::vector<PoolId> stuck;
  for (size_t at = 0; at < waiting_.size() && TurnWatch::monotonic_ns() - now_ns_ < kRetryNs;) {
    Work work = waiting_[at];
    bool overdue = now_ns_ >= work.errand->deadline_ns;
    if (!overdue && std::ranges::find(stuck, work.errand->pool) != stuck.end()) {
      ++at;
      continue;
    }
    uint64_t before = store_.reclaim_count();
    Status status = work.errand->perform(store_, store_.partition(work.errand->pool), index_, work);
    if (status == Status::Busy && !overdue) {
      if (store_.reclaim_count() != before) continue;
      stuck.push_back(work.errand->pool);
      ++at;
      continue;
    }
    if (status == Status::Busy) work.errand->give_up(store_, work);
    waiting_.erase(waiting_.begin() + static_cast<ptrdiff_t>(at));
    send_home(work);
  }
  if (!stuck.empty()) wake_others();
  progressing_ = !waiting_.empty() && store_.reclaim_count() != reclaimed;
}

// A write here waits for what the other shards can spare: they look at once, asleep or not.
void Shard::wake_others() {
  for (uint32_t other = 0; other < node_->shard_count(); ++other) {
    if (other == index_) continue;
    node_->shard(other).post([](Shard& shard) { shard.maintenance_due_ = true; });
  }
}

void Shard::send_home(const Work& work) {
  if (work.errand->home_shard == index_) {
    work_done(work);
    return;
  }
  post_later(work.errand->home_shard, [work](Shard& home) { home.work_done(work); });
}

void Shard::flush_later(Session* session) {
  if (session->flush_due) return;
  session->flush_due = true;
  flush_due_.push_back(session);
}

void Shard::continue_later(Session* session) {
  if (session->continue_due) return;
  session->continue_due = true;
  continue_due_.push_back(session);
}

void Shard::note_served(const Session* session) noexcept {
  if (session != std::exchange(last_served_, session)) crowded_ns_ = now_ns_;
}

// Each step wakes the peer, which costs as much as copying 100 KiB where both share a core. So a
// session that is served alone takes long steps, of some 100 us of copying; one that others wait
// for takes short ones.
uint64_t Shard::step_bytes() const noexcept {
  return now_ns_ - crowded_ns_ > kCrowdedNs ? kStepBytesAlone : kStepBytes;
}

// Sessions added meanwhile have their turn in the next one.
void Shard::continue_sessions() {
  size_t count = continue_due_.size();
  size_t done = 0;
  for (; done < count && (done < kSessionsPerTurnMin || !turn_is_long()); ++done) {
    continue_due_[done]->go_on();
  }
  continue_due_.erase(continue_due_.begin(), continue_due_.begin() + static_cast<ptrdiff_t>(done));
}

void Shard::flush_sessions() {
  size_t count = flush_due_.size();
  size_t done = 0;
  for (; done < count && (done < kSessionsPerTurnMin || !turn_is_long()); ++done) {
    flush_due_[done]->flush_due = false;
    note_served(flush_due_[done]);
    flush_due_[done]->flush();
  }
  flush_due_.erase(flush_due_.begin(), flush_due_.begin() + static_cast<ptrdiff_t>(done));
}

void Shard::release(std::vector<OwnedExtent>* extents) {
  for (const OwnedExtent& owned : *extents) {
    if (owned.shard == index_) {
      store_.release(owned.extent);
    } else {
      releases_[owned.shard].push_back(owned.extent);
    }
  }
  extents->clear();
}

void Shard::send_releases() {
  for (uint32_t shard = 0; shard < releases_.size(); ++shard) {
    if (releases_[shard].empty()) continue;
    node_->shard(shard).post([extents = std::exchange(releases_[shard], {})](Shard& owner) {
      for (const Extent& extent : extents) owner.store_.release(extent);
    });
  }
}

bool Shard::start_admin(Errand* errand, AdminCall call) {
  static std::atomic<uint64_t> next_call{1};
  call.id = next_call.fetch_add(1, std::memory_order_relaxed);
  call.shard = index_;
  errand->admin_call = call.id;
  if (!node_->admin().push(std::move(call))) return false;
  admin_calls_[errand->admin_call] = errand;
  return true;
}

void Shard::finish_admin(uint64_t call, Status status, Bytes payload) {
  auto found = admin_calls_.find(call);
  if (found == admin_calls_.end()) return;  // Its deadline passed.
  Errand* errand = found->second;
  admin_calls_.erase(found);
  errand->session->on_admin_done(errand, status, payload);
}

void Shard::expire_admin_calls() {
  for (auto each = admin_calls_.begin(); each != admin_calls_.end();) {
    Errand* errand = each->second;
    if (now_ns_ < errand->deadline_ns) {
      ++each;
      continue;
    }
    each = admin_calls_.erase(each);
    errand->session->on_admin_done(errand, Status::Deadline, {});
  }
}

void Shard::drop(Session* session) noexcept {
  session->channel().remove();
  reap_due_ = true;
}

// Closed sessions go once nothing of them travels any more.
void Shard::reap() {
  reap_due_ = false;
  for (uint32_t index = 0; index < sessions_.size();) {
    const Session& session = *sessions_[index];
    if (!session.finished() || session.flush_due || session.continue_due) {
      reap_due_ = reap_due_ || session.finished();
      ++index;
      continue;
    }
    if (!session.moved()) node_->remove_connection();
    count_open(session, -1);
    std::swap(sessions_[index], sessions_.back());
    sessions_.pop_back();
  }
}

void Shard::tick() {
  maintenance_due_ = store_.maintain();
  if (now_ns_ < next_tick_ns_) return;
  next_tick_ns_ = now_ns_ + kTickNs;
  store_.publish_gauges();
  gauges_stale_ = false;
  expire_admin_calls();
  if (acceptor_ && !stopping()) acceptor_->resume();
  uint32_t count = std::min<uint32_t>(kSessionsPerTick, static_cast<uint32_t>(sessions_.size()));
  for (; count != 0; --count) {
    Session& session = *sessions_[tick_cursor_++ % sessions_.size()];
    if (session.closed() || !session.is_stalled(now_ns_)) continue;
    statistics_.connections_dropped_slow.add();
    session.close();
  }
}

int Shard::timeout_ms() const noexcept {
  if (!waiting_.empty()) return kMemoryWaitMs;
  bool busy = !sessions_.empty() || store_.has_expiring() || stopping() || gauges_stale_ ||
              (acceptor_ && acceptor_->rests());
  return busy ? static_cast<int>(kTickNs / 1'000'000) : kIdleMs;
}

// A shard serves the others' work until all of them are done, then lets its connections go. It ends
// when nothing of its memory is moved for one of them any more.
bool Shard::stop_is_due() {
  if (!stopping()) return false;
  if (!over_) {
    bool drained = std::ranges::all_of(
        sessions_, [](const auto& session) { return session->closed() || session->is_drained(); });
    if (drained && !drained_) node_->shard_drained();
    drained_ = drained_ || drained;
    if (!node_->all_drained() && now_ns_ < stop_deadline_ns_) return false;
    over_ = true;
    stopped_cleanly_ = drained;
    for (const auto& session : sessions_) session->close();
  }
  reap();
  return std::ranges::none_of(sessions_,
                              [](const auto& session) { return session->holds_memory(); });
}

}  // namespace kvstrata
