#include "comm/gpu/nccl_communicator.h"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <exception>
#include <functional>
#include <future>
#include <map>
#include <optional>
#include <span>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/error.h"
#include "comm/gpu/nccl.h"
#include "device/gpu/context.h"

namespace tprimat::engine::gpu {
namespace {

constexpr int k_first_upper_tag = 16384;  // from here on tags have routes of their own
constexpr int k_rendezvous_tag = 32767;   // of the hosts' messages by which two ranks meet

void check_nccl(nccl::Status status, const char* what) {
  if (status == 0) return;
  throw Error(Problem{fmt::format("cannot {}: {}", what, nccl::functions().status_text(status)), "NCCL",
                      "set NCCL_DEBUG=WARN for details"},
              ExitStatus::work_failed);
}

int type_of(ElementType type) {
  switch (type) {
    case ElementType::float32: return nccl::k_float32;
    case ElementType::float64: return nccl::k_float64;
    case ElementType::bfloat16: return nccl::k_bfloat16;
    case ElementType::float16: return nccl::k_float16;
    case ElementType::int32: return nccl::k_int32;
    case ElementType::int64: return nccl::k_int64;
    case ElementType::bytes: break;
  }
  return nccl::k_int8;
}

// Events that are used again and again.
class EventPool {
 public:
  EventPool() = default;
  ~EventPool() {
    for (const Event event : free_) driver::ignore(driver::destroy_event(event));
  }
  EventPool(const EventPool&) = delete;
  EventPool& operator=(const EventPool&) = delete;

  Event take() {
    Event event = nullptr;
    if (free_.empty()) {
      check(driver::make_order_event(&event));
    } else {
      event = free_.back();
      free_.pop_back();
    }
    return event;
  }
  void give_back(Event event) { free_.push_back(event); }

 private:
  std::vector<Event> free_;
};

// One of a pool's events, for as long as it is needed.
class PooledEvent {
 public:
  explicit PooledEvent(std::shared_ptr<EventPool> pool) : pool_(std::move(pool)), event_(pool_->take()) {}
  ~PooledEvent() {
    if (pool_) pool_->give_back(event_);
  }
  PooledEvent(PooledEvent&&) = default;
  PooledEvent& operator=(PooledEvent&&) = delete;
  Event get() const { return event_; }

 private:
  std::shared_ptr<EventPool> pool_;
  Event event_;
};

// The work of the computing stream after wait() comes after the transfer.
class StreamTransfer : public Transfer {
 public:
  explicit StreamTransfer(PooledEvent done) : done_(std::move(done)) {}
  ~StreamTransfer() override {
    if (done_) driver::ignore(driver::await_event(context().stream, done_->get()));
  }
  void wait() override {
    if (done_) check(driver::await_event(context().stream, done_->get()));
    done_.reset();
  }

 private:
  std::optional<PooledEvent> done_;
};

#if defined(TPRIMAT_GPU_HOST)
constexpr auto k_patience = std::chrono::milliseconds(500);
#else
constexpr auto k_patience = std::chrono::seconds(20);
#endif

// Whether the work is done in time; else it goes on, in a thread of its own.
bool ends_in_time(std::function<void()> work) {
  const auto done = std::make_shared<std::promise<void>>();
  std::thread([done, work = std::move(work)] {
    work();
    done->set_value();
  }).detach();
  return done->get_future().wait_for(k_patience) == std::future_status::ready;
}

// All groups of this process, while they are of use.
class LiveGroups final : public PeerWatch {
 public:
  void add(nccl::Group group) {
    groups_.push_back(group);
    context().peers = this;
  }
  bool remove(nccl::Group group) {
    const bool was_there = std::erase(groups_, group) > 0;
    if (groups_.empty() && has_context()) context().peers = nullptr;
    return was_there;
  }
  void look() override {
    for (const nccl::Group group : groups_) {
      nccl::Status status = 0;
      check_nccl(nccl::functions().async_error(group, &status), "query the communicator status");
      if (status != nccl::k_in_progress)
        check_nccl(status, "communicate with the other ranks: one of them, or a link, is lost");
    }
  }
  void abandon() override {
    const std::vector<nccl::Group> groups = std::exchange(groups_, {});
    context().peers = nullptr;
    if (groups.empty()) return;
    const bool ended = ends_in_time([groups, index = context().index] {
      driver::ignore(driver::use_device(index));
      nccl::functions().group_start();
      for (const nccl::Group group : groups) nccl::functions().abort(group);
      nccl::functions().group_end();
    });
    if (!ended) context().given_up = true;
  }

 private:
  std::vector<nccl::Group> groups_;
};
LiveGroups& live_groups() {
  static LiveGroups instance;
  return instance;
}

// One group of NCCL and the stream in which its transfers follow each other.
class Route {
 public:
  Route(int ranks, const nccl::UniqueId& id, int rank) {
    check(driver::make_stream(&stream_));
    check_nccl(nccl::functions().join(&group_, ranks, id, rank), "initialize a communicator");
    live_groups().add(group_);
  }
  // While an exception is on its way the other ranks may never come.
  ~Route() {
    if (std::uncaught_exceptions() > exceptions_) live_groups().abandon();
    if (live_groups().remove(group_)) {
      driver::ignore(driver::finish_stream(stream_));
      nccl::functions().leave(group_);
    }
    driver::ignore(driver::destroy_stream(stream_));
  }
  Route(const Route&) = delete;
  Route& operator=(const Route&) = delete;

  // work(group, stream), after the computing so far.
  template <class Work>
  TransferPtr start(const std::shared_ptr<EventPool>& events, const char* what, const Work& work) {
    {
      const PooledEvent computed(events);
      check(driver::record_event(computed.get(), context().stream));
      check(driver::await_event(stream_, computed.get()));
    }
    check_nccl(work(group_, stream_), what);
    PooledEvent done(events);
    check(driver::record_event(done.get(), stream_));
    return std::make_unique<StreamTransfer>(std::move(done));
  }
  void finish() { wait_for(stream_); }
  // NCCL connects ranks, which takes memory, at their first exchange of each kind and size. Of two ranks: one byte from
  // one to the other.
  void try_out(bool sends, int peer) {
    const nccl::NcclCalls& call = nccl::functions();
    std::byte* const byte = context().scratch;
    check_nccl(sends ? call.send(byte, 1, nccl::k_int8, peer, group_, stream_)
                     : call.receive(byte, 1, nccl::k_int8, peer, group_, stream_),
               "exchange the first byte");
  }
  // Collectives of a few and of many values, which NCCL does by different algorithms.
  void try_out(int ranks) {
    const nccl::NcclCalls& call = nccl::functions();
    auto* const values = reinterpret_cast<float*>(context().scratch);
    const size_t many = context().scratch_bytes / 4 / sizeof(float) / static_cast<size_t>(ranks);
    for (const size_t own : {size_t{1}, many}) {
      const size_t all = own * static_cast<size_t>(ranks);
      float* const gathered = values + all;
      check_nccl(call.all_reduce(values, values, all, nccl::k_float32, nccl::k_sum, group_, stream_), "all-reduce");
      check_nccl(call.all_gather(values, gathered, own, nccl::k_float32, group_, stream_), "all-gather");
      check_nccl(call.reduce_scatter(gathered, values, own, nccl::k_float32, nccl::k_sum, group_, stream_),
                 "reduce-scatter");
    }
    finish();
  }

 private:
  nccl::Group group_ = nullptr;
  Stream stream_ = nullptr;
  int exceptions_ = std::uncaught_exceptions();
};

nccl::UniqueId make_id() {
  nccl::UniqueId id{};
  check_nccl(nccl::functions().make_id(&id), "create a communicator id");
  return id;
}

std::unique_ptr<Route> meet_all(Communicator& host) {
  nccl::UniqueId id{};
  if (host.rank() == 0) id = make_id();
  host.broadcast(comm_buffer(reinterpret_cast<std::byte*>(id.bytes), sizeof id.bytes), 0);
  auto route = std::make_unique<Route>(host.size(), id, host.rank());
  route->try_out(host.size());
  return route;
}

class NcclCommunicator : public Communicator {
 public:
  explicit NcclCommunicator(std::unique_ptr<Communicator> host) : host_(std::move(host)), all_(meet_all(*host_)) {}
  // A rank that leaves a group waits for the others of its machine to leave it (ncclCommDestroy).
  ~NcclCommunicator() override {
    for (std::unique_ptr<Route>& route : made_) route.reset();
  }
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;

  int rank() const override { return host_->rank(); }
  int size() const override { return host_->size(); }

  TransferPtr start_all_reduce(CommBuffer values, Reduction reduction) override {
    if (!driver::is_on_device(values.data)) return host_->start_all_reduce(values, reduction);
    CHECK(values.type != ElementType::bytes);
    return all_->start(events_, "all-reduce", [&](nccl::Group group, Stream stream) {
      return nccl::functions().all_reduce(values.data, values.data, count_of(values), type_of(values.type),
                                          reduction == Reduction::sum ? nccl::k_sum : nccl::k_max, group, stream);
    });
  }
  TransferPtr start_all_gather(CommBuffer own, CommBuffer all) override {
    if (!driver::is_on_device(all.data)) return host_->start_all_gather(own, all);
    CHECK(own.type == all.type && own.count * size() == all.count);
    return all_->start(events_, "all-gather", [&](nccl::Group group, Stream stream) {
      return nccl::functions().all_gather(own.data, all.data, count_of(own), type_of(own.type), group, stream);
    });
  }
  TransferPtr start_reduce_scatter(CommBuffer all, CommBuffer own) override {
    if (!driver::is_on_device(all.data)) return host_->start_reduce_scatter(all, own);
    CHECK(own.type == all.type && own.count * size() == all.count && own.type != ElementType::bytes);
    return all_->start(events_, "reduce-scatter", [&](nccl::Group group, Stream stream) {
      return nccl::functions().reduce_scatter(all.data, own.data, count_of(own), type_of(own.type), nccl::k_sum, group,
                                              stream);
    });
  }
  TransferPtr start_all_to_all(CommBuffer from, CommBuffer to) override {
    if (!driver::is_on_device(to.data)) return host_->start_all_to_all(from, to);
    CHECK(from.type == to.type && from.count == to.count && from.count % size() == 0);
    return all_->start(events_, "all-to-all", [&](nccl::Group group, Stream stream) {
      return nccl::all_to_all({from.data, to.data, count_of(from) / static_cast<size_t>(size()), type_of(from.type),
                               element_bytes(from.type), size()},
                              group, stream);
    });
  }
  TransferPtr start_send(CommBuffer values, int to, int tag) override {
    if (!driver::is_on_device(values.data)) return host_->start_send(values, to, tag);
    return route(to, true, tag).start(events_, "send", [&](nccl::Group group, Stream stream) {
      return nccl::functions().send(values.data, count_of(values), type_of(values.type), place_in_pair(to, rank()),
                                    group, stream);
    });
  }
  TransferPtr start_receive(CommBuffer values, int from, int tag) override {
    if (!driver::is_on_device(values.data)) return host_->start_receive(values, from, tag);
    return route(from, false, tag).start(events_, "receive", [&](nccl::Group group, Stream stream) {
      return nccl::functions().receive(values.data, count_of(values), type_of(values.type), place_in_pair(from, rank()),
                                       group, stream);
    });
  }
  void broadcast(CommBuffer values, int root) override {
    if (!driver::is_on_device(values.data)) return host_->broadcast(values, root);
    const auto work = [&](nccl::Group group, Stream stream) {
      return nccl::functions().broadcast(values.data, values.data, count_of(values), type_of(values.type), root, group,
                                         stream);
    };
    all_->start(events_, "broadcast", work)->wait();
  }
  // Of the GPUs too: what was given to them before is done.
  void barrier() override {
    wait_for(context().stream);
    all_->finish();
    for (const auto& [key, one] : routes_) one->finish();
    host_->barrier();
  }
  void progress() override { host_->progress(); }
  void connect_neighbours() override;
  std::unique_ptr<Communicator> split(int color, int key) override {
    return make_gpu_communicator(host_->split(color, key));
  }

 private:
  struct RouteKey {
    int peer = 0;
    bool sends = false;  // or receives
    bool upper = false;  // tags from k_first_upper_tag on
    auto operator<=>(const RouteKey&) const = default;
  };

  static size_t count_of(const CommBuffer& values) { return static_cast<size_t>(values.count); }
  static int place_in_pair(int who, int other) { return who > other ? 1 : 0; }
  Route& route(int peer, bool sends, int tag);
  void meet(int peer);

  std::unique_ptr<Communicator> host_;
  std::shared_ptr<EventPool> events_ = std::make_shared<EventPool>();
  std::unique_ptr<Route> all_;
  std::vector<std::unique_ptr<Route>> made_;  // in the order in which ranks meet, in which they part, too
  std::map<RouteKey, Route*> routes_;
  bool neighbours_connected_ = false;
};

Route& NcclCommunicator::route(int peer, bool sends, int tag) {
  CHECK(peer >= 0 && peer < size() && peer != rank() && tag >= 0);
  connect_neighbours();
  const RouteKey key{peer, sends, tag >= k_first_upper_tag};
  if (!routes_.contains(key)) meet(peer);  // which needs the other one, at its own first message
  return *routes_.at(key);
}

// Two ranks make their four groups in an order that both know: for each direction, lower tags, then upper.
void NcclCommunicator::meet(int peer) {
  std::array<nccl::UniqueId, 4> ids{};
  const bool leads = rank() < peer;
  if (leads)
    for (nccl::UniqueId& id : ids) id = make_id();
  const CommBuffer bytes = comm_buffer(reinterpret_cast<std::byte*>(ids.data()), sizeof ids);
  (leads ? host_->start_send(bytes, peer, k_rendezvous_tag) : host_->start_receive(bytes, peer, k_rendezvous_tag))
      ->wait();
  for (size_t i = 0; i < ids.size(); ++i) {
    const bool upwards = i < 2;  // from the lower rank to the higher
    const bool sends = upwards == leads;
    Route& route = *made_.emplace_back(std::make_unique<Route>(2, ids[i], place_in_pair(rank(), peer)));
    route.try_out(sends, place_in_pair(peer, rank()));
    routes_[{peer, sends, i % 2 == 1}] = &route;
  }
  for (size_t i = made_.size() - ids.size(); i < made_.size(); ++i)
    made_[i]->finish();  // the byte lies in scratch memory
}

// Every rank's first message brings it together with those before and behind it, in an order in which no chain of ranks
// waits in a circle: even ranks with their successors, odd ranks with theirs, the last with the first.
void NcclCommunicator::connect_neighbours() {
  if (std::exchange(neighbours_connected_, true)) return;
  const int last = size() - 1;
  for (const int parity : {0, 1}) {
    if (rank() % 2 == parity && rank() < last) meet(rank() + 1);
    if (rank() % 2 != parity && rank() > 0) meet(rank() - 1);
  }
  if (last > 1 && (rank() == 0 || rank() == last)) meet(last - rank());
}

}  // namespace

std::unique_ptr<Communicator> make_gpu_communicator(std::unique_ptr<Communicator> host) {
  return std::make_unique<NcclCommunicator>(std::move(host));
}

}  // namespace tprimat::engine::gpu
