#include "telemetry/memory_nodes.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "telemetry/small_files.h"
#include "text/words.h"

namespace tprimat {
namespace {

// visit(first, last) of each range of "0-3,8,10-11", the kernel's form of a list; stops at anything else.
template <class Visit>
void visit_ranges(std::string_view list, const Visit& visit) {
  for (const std::string_view range : split(trim_blanks(list), ',')) {
    const size_t dash = range.find('-');
    const auto first = parse_number<int>(range.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : parse_number<int>(range.substr(dash + 1));
    if (!first || !last) return;
    visit(*first, *last);
  }
}

std::vector<int> processors_in(std::string_view list, const std::vector<int>& allowed) {
  std::vector<int> found;
  visit_ranges(list, [&](int first, int last) {
    std::ranges::copy_if(allowed, std::back_inserter(found),
                         [&](int processor) { return first <= processor && processor <= last; });
  });
  return found;
}

// Whether these are the processors of process 1 that are online: all of the machine, or of the container. Its list may
// name others that are offline.
bool are_all_processors(const std::filesystem::path& root, const std::vector<int>& allowed) {
  const std::string all = find_line(root / "proc/1/status", "Cpus_allowed_list:").value_or("");
  const std::string online = read_small_file(root / "sys/devices/system/cpu/online").value_or("");
  int64_t count = 0;
  visit_ranges(all, [&](int first, int last) {
    visit_ranges(online, [&](int from, int to) {
      count += std::max<int64_t>(int64_t{std::min(last, to)} - std::max(first, from) + 1, 0);
    });
  });
  return count == std::ssize(allowed) && processors_in(all, allowed).size() == allowed.size();
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

}  // namespace tprimat
