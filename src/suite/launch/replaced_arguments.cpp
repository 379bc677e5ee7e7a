#include "launch/replaced_arguments.h"

#include <algorithm>
#include <utility>

#include "text/words.h"

namespace tprimat::suite {
namespace {

struct Flag {
  std::string name, value;  // "--seq-length" and "4096"; a switch has no value, a list its words with blanks between
};

// The last value of each flag, in the order of the words. Words before the first flag belong to none.
std::vector<Flag> read_flags(const std::vector<std::string>& words) {
  std::vector<Flag> flags;
  for (const std::string& word : words) {
    if (word.starts_with("--")) {
      const size_t end = std::min(word.find('='), word.size());
      std::erase_if(flags, [&](const Flag& each) { return each.name == word.substr(0, end); });
      flags.push_back({word.substr(0, end), end < word.size() ? word.substr(end + 1) : ""});
    } else if (!flags.empty()) {
      std::string& value = flags.back().value;
      value += (value.empty() ? "" : " ") + word;
    }
  }
  return flags;
}

// "3e-4" and "0.0003" are one value.
bool is_same_value(const std::string& a, const std::string& b) {
  const auto x = parse_number<double>(a), y = parse_number<double>(b);
  return a == b || (x && y && !(*x < *y) && !(*y < *x));
}

}  // namespace

std::vector<Deviation> list_replaced_arguments(const std::vector<std::string>& planned,
                                               const std::vector<std::string>& added, const std::string& where) {
  std::vector<Deviation> replaced;
  const std::vector<Flag> own = read_flags(planned);
  for (const Flag& flag : read_flags(added)) {
    const auto stated = std::ranges::find(own, flag.name, &Flag::name);
    if (stated != own.end() && !is_same_value(stated->value, flag.value))
      replaced.push_back({flag.name, stated->value, flag.value, where + " states it"});
  }
  return replaced;
}

}  // namespace tprimat::suite
