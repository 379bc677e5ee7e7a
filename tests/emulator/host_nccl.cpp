// NCCL's functions between processes of one machine through shared memory, as host_runtime.cpp has those of the
// runtime. Sums are made in the order of the ranks.
#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "comm/communicator.h"
#include "comm/gpu/nccl.h"
#include "comm/messages/reduce.h"
#include "emulator/host_memory.h"
#include "emulator/host_nccl.h"

namespace tprimat::engine::gpu::host {
namespace {

constexpr nccl::Status k_remote_error = 6;
constexpr int64_t k_slot_bytes = int64_t{1} << 20;     // of one rank, for collectives
constexpr int64_t k_channel_bytes = int64_t{8} << 20;  // from one rank to another; pages come when they are touched

// A rank left the group while others wait for it.
struct LostRank {};

// What lies between two ranks: bytes in their order, written and read so far.
struct Channel {
  std::atomic<int64_t> written, read;
};

struct Message {
  bool sends = false;  // or receives
  std::byte* data = nullptr;
  int64_t bytes = 0;  // that are left
  int peer = 0;
  bool goes_as(const Message& other) const { return sends == other.sends && peer == other.peer; }
};

struct SharedHead {
  std::atomic<int> arrived, round, broken;
};

// What connections take of the device's memory.
class ConnectionMemory {
 public:
  ConnectionMemory() = default;
  ~ConnectionMemory() {
    for (std::byte* const each : taken_) give_memory_back(each);
  }
  ConnectionMemory(const ConnectionMemory&) = delete;
  ConnectionMemory& operator=(const ConnectionMemory&) = delete;
  void take(size_t connections) {
    while (taken_.size() < connections && nccl_habits().connection_bytes > 0)
      taken_.push_back(take_memory(nccl_habits().connection_bytes));
  }

 private:
  std::vector<std::byte*> taken_;
};

class SharedGroup {
 public:
  SharedGroup(int ranks, const char* name, int rank) : ranks_(ranks), rank_(rank) {
    const int file = ::shm_open(name, O_CREAT | O_RDWR, 0600);
    CHECK(file >= 0 && ::ftruncate(file, static_cast<off_t>(bytes())) == 0);
    memory_ = ::mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    CHECK(memory_ != MAP_FAILED);
    ::close(file);
    meet();
    connections_.take(1);
    if (rank == 0) ::shm_unlink(name);
  }
  ~SharedGroup() { ::munmap(memory_, bytes()); }
  SharedGroup(const SharedGroup&) = delete;
  SharedGroup& operator=(const SharedGroup&) = delete;

  int ranks() const { return ranks_; }
  int rank() const { return rank_; }
  bool is_broken() const { return head().broken != 0; }
  // What is under way here ends, and the others find out.
  void abandon() {
    abandoned_ = true;
    head().broken = 1;
  }
  bool is_abandoned() const { return abandoned_; }
  std::byte* slot(int rank) { return base() + k_head_bytes + rank * k_slot_bytes; }

  void connect_pair() { connections_.take(2); }
  void meet() {
    const int round = head().round.load();
    if (head().arrived.fetch_add(1) + 1 == ranks_) {
      head().arrived = 0;
      ++head().round;
    } else {
      wait_until([&] { return head().round.load() != round; });
    }
  }
  // Messages that go on together; those of one way between two ranks in their order.
  void exchange(std::vector<Message> messages) {
    while (!messages.empty()) {
      bool moved = false;
      for (auto each = messages.begin(); each != messages.end(); ++each)
        if (std::none_of(messages.begin(), each, [&](const Message& before) { return before.goes_as(*each); }))
          moved |= move_on(*each);
      std::erase_if(messages, [](const Message& each) { return each.bytes == 0; });
      if (is_broken()) throw LostRank{};
      if (!moved) ::sched_yield();
    }
  }

 private:
  SharedHead& head() const { return *static_cast<SharedHead*>(memory_); }
  template <class Condition>
  void wait_until(const Condition& condition) const {
    while (!condition()) {
      if (is_broken()) throw LostRank{};
      ::sched_yield();
    }
  }

  static constexpr int64_t k_head_bytes = 4096;
  bool move_on(Message& message) {
    const Pipe pipe = message.sends ? pipe_between(rank_, message.peer) : pipe_between(message.peer, rank_);
    std::atomic<int64_t>& place = message.sends ? pipe.channel->written : pipe.channel->read;
    const int64_t at = place.load(), there = pipe.channel->written.load() - pipe.channel->read.load();
    const int64_t piece = std::min(
        {message.bytes, message.sends ? k_channel_bytes - there : there, k_channel_bytes - at % k_channel_bytes});
    std::byte* const in_pipe = pipe.data + at % k_channel_bytes;
    if (message.sends)
      std::memcpy(in_pipe, message.data, static_cast<size_t>(piece));
    else
      std::memcpy(message.data, in_pipe, static_cast<size_t>(piece));
    place = at + piece;
    message.data += piece;
    message.bytes -= piece;
    return piece > 0;
  }
  struct Pipe {
    Channel* channel;
    std::byte* data;
  };
  size_t bytes() const {
    return static_cast<size_t>(k_head_bytes + ranks_ * k_slot_bytes +
                               ranks_ * ranks_ * (k_head_bytes + k_channel_bytes));
  }
  std::byte* base() const { return static_cast<std::byte*>(memory_); }
  Pipe pipe_between(int from, int to) const {
    std::byte* const start =
        base() + k_head_bytes + ranks_ * k_slot_bytes + (from * ranks_ + to) * (k_head_bytes + k_channel_bytes);
    return {reinterpret_cast<Channel*>(start), start + k_head_bytes};
  }

  int ranks_, rank_;
  void* memory_ = nullptr;
  std::atomic<bool> abandoned_ = false;
  ConnectionMemory connections_;
};
using SharedRanks = std::shared_ptr<SharedGroup>;  // work that was put off has it too

ElementType element_of(int type) {
  switch (type) {
    case nccl::k_int32: return ElementType::int32;
    case nccl::k_int64: return ElementType::int64;
    case nccl::k_float16: return ElementType::float16;
    case nccl::k_float32: return ElementType::float32;
    case nccl::k_float64: return ElementType::float64;
    case nccl::k_bfloat16: return ElementType::bfloat16;
    default: return ElementType::bytes;
  }
}

// Values cut into pieces that fit a slot: work(first byte, bytes).
template <class Work>
void in_pieces(int64_t bytes, const Work& work) {
  for (int64_t begin = 0; begin < bytes; begin += k_slot_bytes) work(begin, std::min(k_slot_bytes, bytes - begin));
}

struct Summing {
  ElementType type;
  Reduction reduction;
};

// Every rank's values at `from`; the result at `to` on those ranks that want it (null: not this one).
void reduce_values(SharedGroup& group, const std::byte* from, std::byte* to, int64_t bytes, const Summing& how) {
  in_pieces(bytes, [&](int64_t begin, int64_t piece) {
    std::memcpy(group.slot(group.rank()), from + begin, static_cast<size_t>(piece));
    group.meet();
    std::vector<const std::byte*> sources;
    for (int rank = 0; rank < group.ranks(); ++rank) sources.push_back(group.slot(rank));
    if (to != nullptr) reduce_in_order(sources, to + begin, piece / element_bytes(how.type), how.type, how.reduction);
    group.meet();
  });
}

SharedRanks& ranks_of(nccl::Group group) { return *static_cast<SharedRanks*>(group); }

// work(ranks), as work of the device.
template <class Work>
nccl::Status give(nccl::Group group, const Work& work) {
  if (nccl_habits().breaks_events) refuse_events(true);
  submit([ranks = ranks_of(group), work] {
    if (ranks->is_abandoned()) return;
    try {
      work(*ranks);
    } catch (const LostRank&) {
      if (!ranks->is_abandoned()) hang();
    }
  });
  return 0;
}

const std::byte* bytes_at(const void* data) { return static_cast<const std::byte*>(data); }
std::byte* bytes_at(void* data) { return static_cast<std::byte*>(data); }
int64_t bytes_of(size_t count, int type) { return static_cast<int64_t>(count) * element_bytes(element_of(type)); }
Summing summing_of(int type, int reduction) {
  return {element_of(type), reduction == nccl::k_sum ? Reduction::sum : Reduction::max};
}

nccl::Status make_id(nccl::UniqueId* id) {
  static int made = 0;
  const std::string name = fmt::format("/tprimat_shim_{}_{}", ::getpid(), made++);
  std::memcpy(id->bytes, name.c_str(), name.size() + 1);
  return 0;
}

nccl::Status join(nccl::Group* group, int ranks, nccl::UniqueId id, int rank) {
  *group = new SharedRanks(std::make_shared<SharedGroup>(ranks, id.bytes, rank));
  return 0;
}

// As NCCL's, it waits for the other ranks to leave, too.
nccl::Status leave(nccl::Group group) {
  try {
    ranks_of(group)->meet();
  } catch (const LostRank&) {  // nobody waits for one that is lost
  }
  delete &ranks_of(group);
  return 0;
}

nccl::Status abort(nccl::Group group) {
  std::this_thread::sleep_for(std::chrono::milliseconds(nccl_habits().abort_milliseconds));
  ranks_of(group)->abandon();
  go_on();
  delete &ranks_of(group);
  return 0;
}

nccl::Status async_error(nccl::Group group, nccl::Status* status) {
  *status = ranks_of(group)->is_broken() ? k_remote_error : 0;
  return 0;
}

nccl::Status all_reduce(const void* from, void* to, size_t count, int type, int reduction, nccl::Group group, Stream) {
  return give(group, [=](SharedGroup& ranks) {
    reduce_values(ranks, bytes_at(from), bytes_at(to), bytes_of(count, type), summing_of(type, reduction));
  });
}

nccl::Status reduce_scatter(const void* all, void* own, size_t count, int type, int reduction, nccl::Group group,
                            Stream) {
  return give(group, [=](SharedGroup& ranks) {
    const int64_t bytes = bytes_of(count, type);
    for (int rank = 0; rank < ranks.ranks(); ++rank)
      reduce_values(ranks, bytes_at(all) + rank * bytes, rank == ranks.rank() ? bytes_at(own) : nullptr, bytes,
                    summing_of(type, reduction));
  });
}

nccl::Status all_gather(const void* own, void* all, size_t count, int type, nccl::Group group, Stream) {
  return give(group, [=](SharedGroup& ranks) {
    const int64_t bytes = bytes_of(count, type);
    in_pieces(bytes, [&](int64_t begin, int64_t piece) {
      std::memcpy(ranks.slot(ranks.rank()), bytes_at(own) + begin, static_cast<size_t>(piece));
      ranks.meet();
      for (int rank = 0; rank < ranks.ranks(); ++rank)
        std::memcpy(bytes_at(all) + rank * bytes + begin, ranks.slot(rank), static_cast<size_t>(piece));
      ranks.meet();
    });
  });
}

nccl::Status broadcast(const void* from, void* to, size_t count, int type, int root, nccl::Group group, Stream) {
  return give(group, [=](SharedGroup& ranks) {
    in_pieces(bytes_of(count, type), [&](int64_t begin, int64_t piece) {
      if (ranks.rank() == root) std::memcpy(ranks.slot(root), bytes_at(from) + begin, static_cast<size_t>(piece));
      ranks.meet();
      if (ranks.rank() != root) std::memcpy(bytes_at(to) + begin, ranks.slot(root), static_cast<size_t>(piece));
      ranks.meet();
    });
  });
}

// What was posted since group_start, one list for each group of ranks.
struct OpenGroup {
  bool is_open = false;
  std::vector<std::pair<nccl::Group, std::vector<Message>>> posted;
};
OpenGroup& open_group() {
  static thread_local OpenGroup group;
  return group;
}

nccl::Status exchange(nccl::Group group, const std::vector<Message>& messages) {
  return give(group, [=](SharedGroup& ranks) { ranks.exchange(messages); });
}

nccl::Status post(nccl::Group group, const Message& message) {
  ranks_of(group)->connect_pair();
  OpenGroup& open = open_group();
  if (!open.is_open) return exchange(group, {message});
  for (auto& [each, messages] : open.posted) {
    if (each != group) continue;
    messages.push_back(message);
    return 0;
  }
  open.posted.push_back({group, {message}});
  return 0;
}

nccl::Status send(const void* from, size_t count, int type, int to, nccl::Group group, Stream) {
  return post(group, {true, const_cast<std::byte*>(bytes_at(from)), bytes_of(count, type), to});
}

nccl::Status receive(void* to, size_t count, int type, int from, nccl::Group group, Stream) {
  return post(group, {false, bytes_at(to), bytes_of(count, type), from});
}

nccl::Status group_start() {
  open_group().is_open = true;
  return 0;
}

nccl::Status group_end() {
  const OpenGroup ended = std::exchange(open_group(), {});
  for (const auto& [group, messages] : ended.posted) exchange(group, messages);
  return 0;
}

}  // namespace

NcclHabits& nccl_habits() {
  static NcclHabits habits;
  return habits;
}

}  // namespace tprimat::engine::gpu::host

namespace tprimat::engine::gpu::nccl {

const NcclCalls& functions() {
  static const NcclCalls table{
      .make_id = &host::make_id,
      .join = &host::join,
      .leave = &host::leave,
      .abort = &host::abort,
      .async_error = &host::async_error,
      .group_start = &host::group_start,
      .group_end = &host::group_end,
      .all_reduce = &host::all_reduce,
      .all_gather = &host::all_gather,
      .reduce_scatter = &host::reduce_scatter,
      .broadcast = &host::broadcast,
      .send = &host::send,
      .receive = &host::receive,
      .status_text = [](Status status) { return status == host::k_remote_error ? "remote process exited" : "failure"; },
  };
  return table;
}

}  // namespace tprimat::engine::gpu::nccl
