#include "config/older_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "config/schema.h"
#include "config/values.h"
#include "text/choice.h"
#include "text/format.h"

namespace tprimat::suite {
namespace {

// "comparison.plots" with the keys "format dpi".
struct OlderSection {
  const char *path, *keys;
};

constexpr OlderSection k_without_effect[] = {
    {"benchmarking.metrics", "stability system"},
    {"benchmarking.enhanced_metrics", "enabled"},
    {"benchmarking.runs", "recommended_num_runs"},
    {"comparison", "metrics_to_compare"},
    {"comparison.plots", "format dpi style filename"},
    {"comparison.report", "format filename include_plots"},
    {"frameworks.*", "supported_platforms"},
    {"frameworks.*.amd",
     "enabled requires_rocm requires_installation parallel_strategies default_precision default_zero_stage "
     "default_sharding_strategy supports_fp8 gradient_checkpointing cpu_offload backend"},
    {"logging.console", "enabled level colored"},
    {"logging.file", "capture_stdout capture_stderr"},
    {"logging.disable", "tensorboard wandb mlflow"},
    {"paths.nemo", "data_dir checkpoint_dir"},
    {"paths.tprimat", "base_dir logs_dir"},
    {"profiling",
     "export_chrome_trace profile_memory with_stack with_flops record_shapes trace cuda_memory_usage capture_range "
     "stats force_overwrite export_json"},
    {"profiling.schedule", "wait warmup active repeat"},
    {"validation", "checks"},
    {"validation.warnings", "high_memory_threshold high_variance_threshold low_mfu_threshold"},
    {"", "notes"}};

constexpr std::pair<const char*, const char*> k_successors[] = {
    {"benchmarking.warmup.skip_first_n_steps", "benchmarking.warmup"},
    {"benchmarking.runs.default_num_runs", "benchmarking.runs"},
    {"benchmarking.runs.cooldown_seconds", "benchmarking.cool_down_seconds"},
    {"models.*.num_experts", "models.*.experts.count"},
    {"models.*.experts_per_token", "models.*.experts.per_token"},
    {"models.*.primus_recipe", "models.*.primus_config"},
    {"models.*.prim_config", "models.*.primus_config"},
    {"profiling.enabled", "experiment.profiling"},
    {"logging.file.enabled", "experiment.logging"},
    {"paths.tprimat.output_dir", "benchmarking.output.directory"}};

std::vector<OlderKey> list_older_keys() {
  std::vector<OlderKey> keys;
  for (const auto& [path, successor] : k_successors) keys.push_back({path, successor});
  for (const OlderSection& section : k_without_effect) {
    const auto names = parse_text_list(yaml_scalar(section.keys, {}));
    for (const std::string& key : *names) keys.push_back({join_path(section.path, key), ""});
  }
  return keys;
}

// The shape of our key at the place of an older one; nullptr where we have none.
const KeySchema* own_schema(const KeySchema* above, const std::string& key) {
  if (above == nullptr) return nullptr;
  const std::vector<std::string> accepted = accepted_keys(*above);
  const bool known = accepted.empty() || std::find(accepted.begin(), accepted.end(), key) != accepted.end();
  return known ? step_into(*above, key) : nullptr;
}

bool is_section(const KeySchema* schema) { return schema != nullptr && schema->kind != KeySchema::Kind::value; }

std::string parent_of(const std::string& path) {
  const size_t dot = path.rfind('.');
  return dot == std::string::npos ? "" : path.substr(0, dot);
}

// A value that moves to its successor.
struct Moving {
  std::string from, to;
  YamlNode value;
};

// A place in the tree: as it is written, and with * for a name.
struct Place {
  std::string path, pattern;
  const KeySchema* schema;   // ours there; nullptr where there is none
  std::string idle_section;  // the outermost section around it of which nothing has an effect; empty: none
};

class OlderKeys {
 public:
  OlderKeys(YamlNode& tree, const std::string& file, Diagnosis& diagnosis)
      : tree_(tree), file_(file), diagnosis_(diagnosis) {}

  bool translate() {
    take_from(tree_, {"", "", &config_schema(), ""});
    report();
    const bool is_older = !moving_.empty() || !dropped_.empty();
    for (Moving& each : moving_) move(each);
    return is_older;
  }

 private:
  static bool leads_to_older(const std::string& pattern) {
    return std::ranges::any_of(older_keys(),
                               [&](const OlderKey& each) { return each.path.starts_with(pattern + "."); });
  }

  static bool holds_successors(const std::string& pattern) {
    return std::ranges::any_of(older_keys(), [&](const OlderKey& each) {
      return !each.successor.empty() && each.path.starts_with(pattern + ".");
    });
  }

  static Place below(const Place& above, const std::string& key) {
    const std::string any = join_path(above.pattern, "*");
    Place place{join_path(above.path, key), leads_to_older(any) ? any : join_path(above.pattern, key),
                own_schema(above.schema, key), above.idle_section};
    const bool is_idle = place.schema == nullptr && leads_to_older(place.pattern) && !holds_successors(place.pattern);
    if (place.idle_section.empty() && is_idle) place.idle_section = place.pattern;
    return place;
  }

  void take_from(YamlNode& node, const Place& place) {
    std::vector<YamlEntry> kept;
    for (YamlEntry& entry : node.entries)
      if (!take_entry(entry, below(place, entry.key))) kept.push_back(std::move(entry));
    node.entries = std::move(kept);
  }

  // Whether the entry, with all that is below it, is an older one.
  bool take_entry(YamlEntry& entry, const Place& at) {
    if (entry.key.find('.') != std::string::npos) return false;
    if (is_empty_section(entry.value, at)) return drop(entry.key, at);
    if (!entry.value.is_map()) return take_value(entry, at);
    if (entry.value.entries.empty() || !leads_to_older(at.pattern)) return false;
    take_from(entry.value, at);
    if (is_section(at.schema) || at.pattern.ends_with('*')) return false;
    for (const YamlEntry& rest : entry.value.entries) refuse(rest, at);
    return true;
  }

  static bool is_empty_section(const YamlNode& value, const Place& at) {
    const bool is_empty = value.kind == YamlNode::Kind::null || (value.is_map() && value.entries.empty());
    return is_empty && at.schema == nullptr && !at.pattern.ends_with('*') && leads_to_older(at.pattern);
  }

  bool drop(const std::string& key, const Place& at) {
    const bool alone = at.idle_section.empty();
    std::vector<std::string>& names = dropped_[alone ? parent_of(at.pattern) : ""];
    const std::string& name = alone ? key : at.idle_section;
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    return true;
  }

  bool take_value(YamlEntry& entry, const Place& at) {
    const auto& keys = older_keys();
    const auto older = std::ranges::find(keys, at.pattern, &OlderKey::path);
    if (older == keys.end()) return false;
    if (older->successor.empty()) return drop(entry.key, at);
    std::string to = older->successor;
    if (const size_t star = to.find('*'); star != std::string::npos) to.replace(star, 1, split_path(at.path)[1]);
    moving_.push_back({at.path, to, std::move(entry.value)});
    return true;
  }

  // Neither ours nor theirs, in a section that only older files have; or a section of theirs that is none here.
  void refuse(const YamlEntry& entry, const Place& at) {
    std::vector<std::string> known, below;
    for (const OlderKey& each : older_keys()) {
      if (!each.path.starts_with(at.pattern + ".")) continue;
      const std::vector<std::string> parts = split_path(each.path.substr(at.pattern.size() + 1));
      known.push_back(parts.front());
      if (parts.front() == entry.key && parts.size() > 1) below.push_back(parts[1]);
    }
    const std::string path = join_path(at.path, printable(entry.key.substr(0, 40)));
    Problem problem{fmt::format("unknown key '{}' in {}", printable(entry.key.substr(0, 40)), at.path),
                    entry.origin.text(), suggest_word(entry.key, known)};
    if (!below.empty())
      problem = {path + " must be a section", entry.origin.text(), fmt::format("its keys are {}", join(below, ", "))};
    else if (std::ranges::find(known, entry.key) != known.end())
      problem = {path + " must be a value, not a section", entry.origin.text(), ""};
    diagnosis_.add_error(std::move(problem), at.path);
  }

  // Nothing where a parent is no section, which is an error by itself.
  YamlNode* find_or_add(const std::string& path, const Origin& origin) {
    YamlNode* node = &tree_;
    for (const std::string& part : split_path(path)) {
      if (!node->is_map() && node->kind != YamlNode::Kind::null) return nullptr;
      const bool is_new = node->find(part) == nullptr;
      YamlNode& below = (*node)[part];
      if (is_new) below.origin = origin;
      node = &below;
    }
    return node;
  }

  void move(Moving& from) {
    YamlNode* to = find_or_add(from.to, from.value.origin);
    if (to == nullptr) return;
    if (to->kind == YamlNode::Kind::null) {
      *to = std::move(from.value);
      return;
    }
    if (to->is_scalar() && from.value.is_scalar() && to->scalar == from.value.scalar) return;
    diagnosis_.add_error(
        {fmt::format("'{}' is an older name of {}, which is already set", from.from, from.to), from.value.origin.text(),
         fmt::format("it is set at {}; keep one of them", to->origin.text())},
        from.to);
  }

  // "benchmarking (runs.default_num_runs as runs)": below the outermost section, which a new name of another one
  // states.
  static std::string describe(const Moving& each, const std::string& section) {
    const std::string below = section + ".";
    return fmt::format("{} as {}", each.from.substr(below.size()),
                       each.to.starts_with(below) ? each.to.substr(below.size()) : each.to);
  }

  static std::vector<std::string> print_sections(const std::map<std::string, std::vector<std::string>>& sections) {
    std::vector<std::string> printed;
    for (const auto& [section, keys] : sections)
      printed.push_back(section.empty() ? join(keys, ", ") : fmt::format("{} ({})", section, join(keys, ", ")));
    return printed;
  }

  void report() const {
    std::map<std::string, std::vector<std::string>> by_section;
    for (const Moving& each : moving_) {
      const std::string section = split_path(each.from).front();
      by_section[section].push_back(describe(each, section));
    }
    const std::vector<std::string> read = print_sections(by_section), dropped = print_sections(dropped_);
    if (!read.empty()) diagnosis_.add_warning({"older keys are read: " + join(read, ", "), file_, ""});
    if (!dropped.empty())
      diagnosis_.add_warning(
          {"delete older keys without effect, or replace them as docs/config.md says: " + join(dropped, ", "), file_,
           ""});
  }

  YamlNode& tree_;
  const std::string& file_;
  Diagnosis& diagnosis_;
  std::vector<Moving> moving_;
  std::map<std::string, std::vector<std::string>> dropped_;  // by section; "": whole sections
};

}  // namespace

const std::vector<OlderKey>& older_keys() {
  static const std::vector<OlderKey> keys = list_older_keys();
  return keys;
}

bool translate_older_keys(YamlNode& tree, const std::string& file, Diagnosis& diagnosis) {
  return OlderKeys(tree, file, diagnosis).translate();
}

}  // namespace tprimat::suite
