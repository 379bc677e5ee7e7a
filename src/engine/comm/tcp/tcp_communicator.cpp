#include "comm/tcp/tcp_communicator.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/error.h"
#include "base/log.h"
#include "comm/messages/message_communicator.h"
#include "comm/tcp/tcp_mesh.h"

namespace tprimat::engine {
namespace {

using MeshPtr = std::shared_ptr<TcpMesh>;

class TcpGroup : public MessageGroup {
 public:
  // members: ranks of the mesh, in the group's order; one of them is this one.
  TcpGroup(MeshPtr mesh, std::vector<int> members, uint32_t context)
      : MessageGroup(place_of(members, mesh->rank()), static_cast<int>(members.size())),
        mesh_(std::move(mesh)),
        members_(std::move(members)),
        context_(context) {}

  std::unique_ptr<Messages> make_messages() override;
  Traffic& traffic() override { return *mesh_; }
  TcpMesh& mesh() { return *mesh_; }
  const MeshPtr& mesh_pointer() const { return mesh_; }
  int member(int rank) const { return members_[static_cast<size_t>(rank)]; }
  MessageKey key(int tag) const { return {context_, static_cast<uint32_t>(tag)}; }

 private:
  static int place_of(const std::vector<int>& members, int rank) {
    const auto found = std::find(members.begin(), members.end(), rank);
    CHECK(found != members.end());
    return static_cast<int>(found - members.begin());
  }

  MeshPtr mesh_;
  std::vector<int> members_;
  uint32_t context_;
};

class TcpMessages : public Messages {
 public:
  explicit TcpMessages(TcpGroup& group) : group_(group) {}
  void post_send(const std::byte* data, int64_t bytes, int to, int tag) override {
    group_.mesh().post_send(group_.member(to), group_.key(tag), data, bytes, open_);
  }
  void post_receive(std::byte* data, int64_t bytes, int from, int tag) override {
    group_.mesh().post_receive(group_.member(from), group_.key(tag), data, bytes, open_);
  }
  bool are_done() override { return *open_ == 0; }

 private:
  TcpGroup& group_;
  OpenMessages open_ = std::make_shared<int>(0);
};

std::unique_ptr<Messages> TcpGroup::make_messages() { return std::make_unique<TcpMessages>(*this); }

using Wish = std::array<int64_t, 3>;  // color, key, lowest number for the new group

class TcpCommunicator : public MessageCommunicator {
 public:
  explicit TcpCommunicator(std::unique_ptr<TcpGroup> group) : MessageCommunicator(std::move(group)) {}

  // The number of the new groups is above that of every group to which any of the ranks belongs.
  std::unique_ptr<Communicator> split(int color, int key) override {
    auto& all = static_cast<TcpGroup&>(group());
    CHECK(!all.traffic().is_under_way());
    const Wish own{color, key, all.mesh().next_context()};
    std::vector<int64_t> wishes(own.size() * static_cast<size_t>(size()));
    all_gather(own.data(), static_cast<int64_t>(own.size()), wishes.data());
    int64_t context = 0;
    struct Place {
      int64_t key = 0;
      int rank = 0;  // of this group
      auto operator<=>(const Place&) const = default;
    };
    std::vector<Place> places;
    for (int rank = 0; rank < size(); ++rank) {
      const int64_t* const wish = wishes.data() + own.size() * static_cast<size_t>(rank);
      context = std::max(context, wish[2]);
      if (wish[0] == color) places.push_back({wish[1], rank});
    }
    all.mesh().use_context(static_cast<uint32_t>(context));
    if (places.size() == 1) return make_self_communicator();
    std::sort(places.begin(), places.end());
    std::vector<int> members;
    for (const Place& place : places) members.push_back(all.member(place.rank));
    return std::make_unique<TcpCommunicator>(
        std::make_unique<TcpGroup>(all.mesh_pointer(), std::move(members), static_cast<uint32_t>(context)));
  }
};

std::weak_ptr<TcpMesh>& running_mesh() {
  static std::weak_ptr<TcpMesh> mesh;
  return mesh;
}

std::unique_ptr<Communicator> make_communicator(const MeshPtr& mesh) {
  std::vector<int> members(static_cast<size_t>(mesh->size()));
  for (int rank = 0; rank < mesh->size(); ++rank) members[static_cast<size_t>(rank)] = rank;
  return std::make_unique<TcpCommunicator>(std::make_unique<TcpGroup>(mesh, std::move(members), 0));
}

// While the other threads wait or compute: nothing of theirs is ended in order.
[[noreturn]] void end_process(const std::string& sentence) {
  log_error(sentence);
  std::_Exit(static_cast<int>(ExitStatus::work_failed));
}

}  // namespace

std::unique_ptr<Communicator> make_tcp_communicator(ConnectedRanks met, FailureDetector::OnLoss on_loss) {
  return make_communicator(std::make_shared<TcpMesh>(std::move(met), std::move(on_loss)));
}

std::unique_ptr<Communicator> make_tcp_world(const RendezvousSettings& settings) {
  const auto mesh = std::make_shared<TcpMesh>(connect_ranks(settings), end_process);
  running_mesh() = mesh;
  return make_communicator(mesh);
}

void abort_tcp(int status) {
  const MeshPtr mesh = running_mesh().lock();
  if (!mesh) return;
  mesh->leave(true);
  std::fflush(nullptr);
  std::_Exit(status);
}

}  // namespace tprimat::engine
