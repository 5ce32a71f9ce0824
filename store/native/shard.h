// A shard: one thread, one reactor, the objects it owns and the sessions it serves. Shares nothing
// with the others but mailboxes.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <thread>
#include <unordered_map>
#include <vector>

#include "store/native/acceptor.h"
#include "store/native/admin_queue.h"
#include "store/native/command.h"
#include "store/native/connection_report.h"
#include "store/native/copier.h"
#include "store/native/mailbox.h"
#include "store/native/object_store.h"
#include "store/native/recycler.h"
#include "store/native/resp_call.h"
#include "store/native/ring_poller.h"
#include "store/native/session.h"
#include "store/native/spin_gate.h"
#include "store/native/statistics.h"
#include "store/native/turn_watch.h"
#include "transport/native/reactor.h"

namespace kvstrata {

class Node;

class Shard {
 public:
  Shard(Node* node, uint32_t index);
  ~Shard();

  uint32_t index() const noexcept { return index_; }
  Node& node() noexcept { return *node_; }
  ObjectStore& store() noexcept { return store_; }
  ShardStatistics& statistics() noexcept { return statistics_; }
  const ShardStatistics& statistics() const noexcept { return statistics_; }
  uint64_t now_ns() const noexcept { return now_ns_; }

  void start();
  // Any thread. The letter runs on the shard's thread.
  void post(Mailbox<Shard>::Letter letter) { mailbox_.post(std::move(letter)); }
  // Any thread: stop serving; sessions with work left get until `deadline_ns` (monotonic).
  void begin_stop(uint64_t deadline_ns);
  void join();
  bool stopped_cleanly() const noexcept { return stopped_cleanly_; }

  // For sessions, on the shard's thread.
  Command* take_command();
  void return_command(Command* command);
  RespCall* take_resp_call();
  void return_resp_call(RespCall* call) { resp_calls_.give_back(call); }
  // For replies that nobody wants.
  OutputQueue& scratch_output();
  // Does the work here or sends it to its owner; true if it is done already.
  bool begin_work(uint32_t owner, const Work& work);
  // Whether works of the session wait here for memory.
  bool has_waiting(const Session* session) const noexcept;
  // Does it in a turn to come, on whichever shard.
  void send_work(uint32_t owner, const Work& work);
  std::vector<ConnectionReport> connections() const;
  // Closes those with these ids; how many there were.
  uint64_t kill(std::span<const uint64_t> client_ids);
  void flush_later(Session* session);
  void continue_later(Session* session);
  // Whether this turn has done its share: what is left goes into the next one.
  bool turn_is_long() noexcept { return read_clock() - now_ns_ > kTurnNs; }
  // Whether a session that began within the turn's share must stop amid its input, as the clock was
  // last read. Later than the turn ends: a pipeline cut in two is answered in two, and each answer
  // costs as much as all of its commands.
  bool input_was_long() const noexcept { return clock_ns_ - now_ns_ > 2 * kTurnNs; }
  // Monotonic. Reading it costs as much as a small command.
  uint64_t read_clock() noexcept { return clock_ns_ = TurnWatch::monotonic_ns(); }
  uint64_t clock_ns() const noexcept { return clock_ns_; }
  Reactor& reactor() noexcept { return *reactor_; }
  RingPoller& rings() noexcept { return rings_; }
  Copier& copier() noexcept { return copier_; }
  // By copiers; then the work is done.
  void start_copy(std::shared_ptr<CopyJob> job, const Work& work);
  void release(std::vector<OwnedExtent>* extents);
  void hand_over(Session* session, uint32_t shard, const ClientHello& hello, Bytes unread);
  void adopt(Socket socket, Peer peer);
  void adopt_with_rings(Socket socket, Peer peer);
  MutableBytes read_buffer() noexcept { return {read_buffer_.data(), read_buffer_.size()}; }
  // How much a session reads or sends by one system call.
  uint64_t step_bytes() const noexcept;
  // An event of the session is being handled.
  void note_served(const Session* session) noexcept;
  // Large data are under way, in either direction.
  void note_bulk() noexcept { bulk_ = true; }
  bool stopping() const noexcept { return stop_deadline_ns_ != 0; }
  // False when too many wait.
  bool start_admin(Errand* errand, AdminCall call);
  void finish_admin(uint64_t call, Status status, Bytes payload);
  void drop(Session* session) noexcept;

 private:
  // A turn handles events for this long, then looks again: what is left has its turn in the next.
  static constexpr uint64_t kTurnNs = 30'000;

  void open_reactor();
  void run();
  uint32_t wait();
  void fetch_events();
  void turn(uint32_t event_count);
  void handle(const IoEvent& event);
  void handle(Session* session, const IoEvent& event);
  void flush_sessions();
  void continue_sessions();
  void retry_waiting();
  void tick();
  void reap();
  void keep(std::unique_ptr<Session> session);
  void count_open(const Session& session, int change) noexcept;
  void perform_for(const Work& work);
  void send_home(const Work& work);
  void wake_others();
  void work_done(const Work& work);
  void expire_admin_calls();
  int timeout_ms() const noexcept;
  bool stop_is_due();
  void send_releases();
  void post_later(uint32_t target, Mailbox<Shard>::Letter letter);
  void send_letters();

  Node* node_;
  uint32_t index_;
  ShardStatistics statistics_;
  ObjectStore store_;
  Mailbox<Shard> mailbox_;
  std::unique_ptr<Reactor> reactor_;  // Made on the shard's thread.
  Watch mailbox_watch_;
  RingPoller rings_;
  Copier copier_;
  std::array<IoEvent, 64> events_;
  size_t event_count_ = 0;
  size_t next_event_ = 0;             // Those from here on wait for the next turn.
  std::optional<Acceptor> acceptor_;  // The first shard's.
  std::thread thread_;
  std::vector<std::byte> read_buffer_;
  std::vector<std::unique_ptr<Session>> sessions_;
  std::vector<Session*> flush_due_;
  std::vector<Session*> continue_due_;
  Recycler<Command> commands_;
  Recycler<RespCall> resp_calls_;
  OutputQueue scratch_output_;
  std::deque<Work> waiting_;                   // Writes that wait for memory, oldest first.
  std::vector<std::vector<Extent>> releases_;  // By owning shard.
  std::vector<std::vector<Mailbox<Shard>::Letter>> letters_;  // By shard: they go with this turn.
  std::unordered_map<uint64_t, Errand*> admin_calls_;
  SpinGate spin_;
  TurnWatch watch_;
  uint64_t now_ns_ = 0;     // When the turn began.
  uint64_t clock_ns_ = 0;   // When the clock was last read.
  uint64_t looked_ns_ = 0;  // When the reactor was last asked for events.
  uint64_t next_tick_ns_ = 0;
  uint64_t stop_deadline_ns_ = 0;
  uint32_t tick_cursor_ = 0;
  bool maintenance_due_ = false;
  bool progressing_ = false;  // Room is being made for `waiting_`: don't sleep.
  bool reap_due_ = false;
  bool bulk_ = false;
  const Session* last_served_ = nullptr;  // Only ever compared.
  uint64_t crowded_ns_ = 0;               // When two sessions were last served one after the other.
  bool gauges_stale_ = false;             // Work was done since they were published.
  bool drained_ = false;
  bool over_ = false;  // Stopping, and nothing is waited for but what others move.
  bool letters_seen_ = false;
  bool stopped_cleanly_ = true;
};

}  // namespace kvstrata
