#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>

#include "device/element.h"

namespace tprimat::engine {

enum class ElementType { float32, float64, bfloat16, float16, int32, int64, bytes };
int64_t element_bytes(ElementType type);

template <class T>
constexpr ElementType element_type_of() {
  if constexpr (std::is_same_v<T, float>) return ElementType::float32;
  if constexpr (std::is_same_v<T, double>) return ElementType::float64;
  if constexpr (std::is_same_v<T, bf16>) return ElementType::bfloat16;
  if constexpr (std::is_same_v<T, f16>) return ElementType::float16;
  if constexpr (std::is_same_v<T, int32_t>) return ElementType::int32;
  if constexpr (std::is_same_v<T, int64_t>) return ElementType::int64;
  if constexpr (std::is_same_v<T, std::byte>) return ElementType::bytes;
}

// Values in memory; whose they are does not matter here.
struct CommBuffer {
  void* data = nullptr;
  int64_t count = 0;
  ElementType type = ElementType::bytes;
  int64_t size() const { return count * element_bytes(type); }
};
template <class T>
CommBuffer comm_buffer(T* data, int64_t count) {
  return {const_cast<std::remove_const_t<T>*>(data), count, element_type_of<std::remove_const_t<T>>()};
}

enum class Reduction { sum, max };

// A transfer under way. The buffers belong to it until wait() returns.
class Transfer {
 public:
  virtual ~Transfer() = default;  // waits
  virtual void wait() = 0;
};
using TransferPtr = std::unique_ptr<Transfer>;

// A group of ranks that exchange data. All ranks of a group call the same collectives in the same order. Sums are made
// in the element's accumulator type and in an order that does not change from call to call, so results repeat bit for
// bit, and every rank gets the same bits. A rank that dies ends the others: by the launcher's own supervision, over TCP
// by Errors too. Transfers of one group must be started in the same order by all of its ranks; they may be waited for
// in any order, and waiting for one moves all others of this process on. Not for use by several threads at once.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Started transfers go on while the caller computes; wait() ends them. In place.
  virtual TransferPtr start_all_reduce(CommBuffer values, Reduction reduction) = 0;
  // `all` has size() times the values of `own`; own may be its own place inside all.
  virtual TransferPtr start_all_gather(CommBuffer own, CommBuffer all) = 0;
  // own = this rank's block of the sum of `all` over the ranks. own may be its own place inside all; all is
  // overwritten.
  virtual TransferPtr start_reduce_scatter(CommBuffer all, CommBuffer own) = 0;
  // Both have one block for each rank, of equal sizes: block r of `from` becomes block rank() of `to` on rank r. They
  // share no memory.
  virtual TransferPtr start_all_to_all(CommBuffer from, CommBuffer to) = 0;
  // Point to point: matched by (peer, tag), in order. Tags are 0 … 32767.
  virtual TransferPtr start_send(CommBuffer values, int to, int tag) = 0;
  virtual TransferPtr start_receive(CommBuffer values, int from, int tag) = 0;
  // Opens the connections between neighbouring ranks, with the memory that they take of GPUs. Collective.
  virtual void connect_neighbours() {}
  virtual void broadcast(CommBuffer values, int root) = 0;
  virtual void barrier() = 0;
  // Lets transfers under way move on; cheap, for calling between two pieces of work.
  virtual void progress() = 0;

  // The ranks that give the same color, ordered by key. Collective; no transfer of this process may be under way.
  virtual std::unique_ptr<Communicator> split(int color, int key) = 0;

  template <class T>
  void all_reduce(T* values, int64_t count, Reduction reduction = Reduction::sum) {
    start_all_reduce(comm_buffer(values, count), reduction)->wait();
  }
  template <class T>
  void all_gather(const T* own, int64_t count, T* all) {
    start_all_gather(comm_buffer(own, count), comm_buffer(all, count * size()))->wait();
  }
  template <class T>
  void reduce_scatter(T* all, int64_t count, T* own) {
    start_reduce_scatter(comm_buffer(all, count * size()), comm_buffer(own, count))->wait();
  }
  // `count` values for each rank.
  template <class T>
  void all_to_all(const T* from, int64_t count, T* to) {
    start_all_to_all(comm_buffer(from, count * size()), comm_buffer(to, count * size()))->wait();
  }
};

// A group of one: everything is done when it is started. Copies where the buffers differ.
std::unique_ptr<Communicator> make_self_communicator();

// The ranks that the launcher started: by mpirun or srun, over MPI; by torchrun and what sets its variables, over TCP;
// the group of one when there is no launcher. MPI is loaded at run time from a module beside the trainer, so that
// trainers that run alone never pay for it. Throws Error (missing component) that names the package when a launcher of
// MPI's is there and MPI is not, and one that names the ranks that did not come where they meet over TCP. Once in a
// process; when the communicator of all ranks goes, MPI ends, and with it every group that was split off.
std::unique_ptr<Communicator> make_world_communicator();

// Ends all ranks with this exit status, so that none waits for one that is gone: the last act of a program that fails,
// after it said why. Over TCP the others end with sentences of their own. Does nothing where no other ranks are left.
void abort_ranks(int status);

// What brings the ranks together.
enum class RendezvousKind { none, mpi, tcp };

// Ranks and place on this machine as the launcher's environment tells, without loading MPI.
struct LauncherPlace {
  int rank = 0, size = 1;
  int local_rank = 0, local_size = 1;
  RendezvousKind rendezvous = RendezvousKind::none;
};
LauncherPlace launcher_place();

}  // namespace tprimat::engine
