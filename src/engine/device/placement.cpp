#include "device/placement.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "telemetry/machine.h"
#include "telemetry/small_files.h"

namespace tprimat::engine {
namespace {

std::optional<int> take_number(std::string_view& text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || value < 0) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return value;
}

bool take(std::string_view& text, char expected) {
  if (!text.starts_with(expected)) return false;
  text.remove_prefix(1);
  return true;
}

// visit(first, last) of each range of "0-3,8,10-11", the kernel's form of a list; stops at anything else.
template <class Visit>
void visit_ranges(std::string_view list, const Visit& visit) {
  do {
    const auto first = take_number(list);
    if (!first) return;
    const auto last = take(list, '-') ? take_number(list) : first;
    if (!last) return;
    visit(*first, *last);
  } while (take(list, ','));
}

std::vector<int> processors_in(std::string_view list, const std::vector<int>& allowed) {
  std::vector<int> found;
  visit_ranges(list, [&](int first, int last) {
    std::copy_if(allowed.begin(), allowed.end(), std::back_inserter(found),
                 [&](int processor) { return first <= processor && processor <= last; });
  });
  return found;
}

bool bind_to(const std::vector<MemoryNode>& nodes) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  for (const MemoryNode& node : nodes)
    for (const int processor : node.processors) {
      if (processor >= CPU_SETSIZE) return false;
      CPU_SET(processor, &mask);
    }
  return ::sched_setaffinity(0, sizeof mask, &mask) == 0;
}

// Whether this process's memory goes elsewhere than where it is touched first, as by numactl. A container that keeps
// the answer to itself has set none.
bool has_memory_policy() {
#ifdef SYS_get_mempolicy
  int policy = 0;  // MPOL_DEFAULT of <numaif.h>
  return ::syscall(SYS_get_mempolicy, &policy, nullptr, 0, nullptr, 0) == 0 && policy != 0;
#else
  return false;
#endif
}

// False where the kernel or a container refuses.
bool interleave_memory([[maybe_unused]] const std::vector<MemoryNode>& nodes) {
#ifdef SYS_set_mempolicy
  constexpr int k_interleave = 3;  // MPOL_INTERLEAVE of <numaif.h>
  unsigned long mask = 0;
  constexpr int k_bits = 8 * sizeof mask;
  for (const MemoryNode& node : nodes) {
    if (node.number >= k_bits) return false;
    mask |= 1UL << node.number;
  }
  return ::syscall(SYS_set_mempolicy, k_interleave, &mask, k_bits + 1) == 0;
#else
  return false;
#endif
}

// "Cpus_allowed_list" of process 1, which may name processors that are offline.
std::string processors_of_first_process(const std::filesystem::path& root) {
  constexpr std::string_view k_name = "Cpus_allowed_list:\t";
  const std::string status = read_small_file(root / "proc/1/status").value_or("");
  const size_t at = status.find(k_name);
  if (at == std::string::npos) return "";
  const size_t begin = at + k_name.size();
  return status.substr(begin, status.find('\n', begin) - begin);
}

// Whether these are the processors of process 1 that are online: all of the machine, or of the container.
bool are_all_processors(const std::filesystem::path& root, const std::vector<int>& allowed) {
  const std::string first = processors_of_first_process(root);
  const std::string online = read_small_file(root / "sys/devices/system/cpu/online").value_or("");
  int64_t count = 0;
  visit_ranges(first, [&](int begin, int end) {
    visit_ranges(online, [&](int from, int to) {
      count += std::max<int64_t>(int64_t{std::min(end, to)} - std::max(begin, from) + 1, 0);
    });
  });
  return count == std::ssize(allowed) && processors_in(first, allowed).size() == allowed.size();
}

}  // namespace

std::vector<MemoryNode> usable_memory_nodes(const std::filesystem::path& root, const std::vector<int>& allowed) {
  if (!are_all_processors(root, allowed)) return {};
  std::vector<MemoryNode> nodes;
  size_t found = 0;
  const std::filesystem::path folder = root / "sys/devices/system/node";
  visit_ranges(read_small_file(folder / "online").value_or(""), [&](int first, int last) {
    for (int number = first; number <= last; ++number) {
      const std::string name = "node" + std::to_string(number);
      MemoryNode node{number, processors_in(read_small_file(folder / name / "cpulist").value_or(""), allowed)};
      found += node.processors.size();
      if (!node.processors.empty()) nodes.push_back(std::move(node));
    }
  });
  return found == allowed.size() ? nodes : std::vector<MemoryNode>{};
}

std::vector<MemoryNode> nodes_of_rank(const std::vector<MemoryNode>& nodes, const LocalRank& local) {
  const int64_t count = std::ssize(nodes);
  CHECK(count > 0 && local.ranks > 0 && local.rank < local.ranks);
  if (count % local.ranks != 0 && local.ranks % count != 0) return nodes;
  const int64_t sharing = std::max<int64_t>(local.ranks / count, 1), own = std::max<int64_t>(count / local.ranks, 1);
  const bool have_space = std::ranges::all_of(
      nodes, [&](const MemoryNode& node) { return std::ssize(node.processors) * own >= local.threads * sharing; });
  if (!have_space) return nodes;
  const int64_t first = local.rank * count / local.ranks;
  return {nodes.begin() + first, nodes.begin() + first + own};
}

std::vector<int> bind_rank_to_memory(const LocalRank& local) {
  const std::vector<MemoryNode> nodes = usable_memory_nodes("/", affinity());
  if (nodes.size() < 2 || has_memory_policy()) return {};
  const std::vector<MemoryNode> own = nodes_of_rank(nodes, local);
  if (own.size() > 1 && !interleave_memory(own)) return {};
  if (own.size() < nodes.size() && !bind_to(own)) return {};
  std::vector<int> numbers;
  for (const MemoryNode& node : own) numbers.push_back(node.number);
  return numbers;
}

}  // namespace tprimat::engine
