#include "extract/dialects/deepspeed_lines.h"

#include <algorithm>
#include <string>

#include "extract/dialects/log_facts.h"

namespace tprimat::logs {
namespace {

// Other facts are taken from the settings after the last line. These are needed before, or are ambiguous.
void add_setting(std::string_view key, std::string_view value, LogBuilder& log) {
  if (key.empty() || value.empty()) return;
  log.set(std::string(key), std::string(value));
  if (key == "train_batch_size") keep_first(log.facts().global_batch_size, count_after(value, ""));
  if (key == "world_size") keep_first(log.facts().data_parallel, count_after(value, ""));
}

std::string_view take_word(std::string_view& text) {
  text = trim(text);
  const std::string_view word = text.substr(0, text.find(' '));
  text.remove_prefix(word.size());
  return word;
}

// "cmd = deepspeed main.py --max_seq_len 512 --deepspeed --seed=1234"
void read_command(std::string_view text, LogBuilder& log) {
  constexpr int k_max_words = 2000;
  std::string_view key;
  for (int i = 0; i < k_max_words && !trim(text).empty(); ++i) {
    const std::string_view word = take_word(text);
    const bool is_key = word.substr(0, 2) == "--";
    if (!is_key && !key.empty()) add_setting(key, word, log);
    if (!is_key) {
      key = {};
      continue;
    }
    if (!key.empty()) add_setting(key, "true", log);
    const size_t equal = word.find('=');
    key = word.substr(2, equal == std::string_view::npos ? equal : equal - 2);
    if (equal == std::string_view::npos) continue;
    add_setting(key, word.substr(equal + 1), log);
    key = {};
  }
  if (!key.empty()) add_setting(key, "true", log);
}

// "[config.py:752:print]   train_batch_size ............. 64"
void read_configuration(std::string_view text, LogBuilder& log) {
  std::string_view key = take_word(text);
  std::string_view value = trim(text);
  if (const size_t dots = value.find_first_not_of('.'); dots > 0)
    value = trim(value.substr(std::min(dots, value.size())));
  if (key == "json") return;  // the whole configuration once more, over many lines
  add_setting(key, value, log);
}

}  // namespace

std::vector<std::string_view> deepspeed_line_anchors() {
  return {"cmd = ", ":print] ", "DeepSpeed info: version=", "dist_world_size="};
}

bool read_deepspeed_line(const LogLine& line, LogBuilder& log) {
  const std::string_view text = line.text;
  if (const auto command = text_after(text, "cmd = ")) {
    if (!contains(*command, "deepspeed")) return false;
    read_command(*command, log);
  } else if (const auto setting = text_after(text, ":print] ")) {
    if (!contains(text, "config.py")) return false;
    read_configuration(*setting, log);
  } else if (const auto version = text_between(text, "DeepSpeed info: version=", ",")) {
    keep_first(log.facts().framework_version, std::string(*version));
  } else if (const auto ranks = text_after(text, "dist_world_size=")) {
    if (const auto count = count_after(*ranks, "")) log.facts().gpu_count = count;
  } else {
    return false;
  }
  return true;
}

Figure deepspeed_memory_after(std::string_view text, std::string_view key) {
  const Figure gib = number_after(text, key);
  return gib.finite() && *gib >= 0 ? Figure(*gib * k_gib / 1e9) : Figure();
}

void add_deepspeed_memory(const LogLine& line, LogBuilder& log) {
  const int32_t rank = line.rank >= 0 ? line.rank : 0;  // rank 0 alone prints it
  log.add_memory(rank, MemoryKind::allocated, *deepspeed_memory_after(line.text, k_deepspeed_allocated));
  log.add_memory(rank, MemoryKind::peak_allocated, *deepspeed_memory_after(line.text, "MaxMemAllocated="));
}

}  // namespace tprimat::logs
