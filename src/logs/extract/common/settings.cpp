#include <unordered_map>

#include "extract/common/log_words.h"
#include "extract/common/nested_settings.h"
#include "extract/common/setting_lines.h"
#include "extract/common/setting_names.h"
#include "extract/dialects.h"
#include "extract/scan_text.h"

namespace tprimat::logs {
namespace {

constexpr size_t k_max_dumping_ranks = 1024;   // with a dump under way
constexpr int64_t k_longest_dump_gap = 300;    // lines, of other ranks, within a dump
constexpr int k_max_strange_dump_lines = 100;  // of other processes, in a row

// The dump that a rank is printing. Primus prints two tables of Megatron-Bridge: what it was asked for, and what it
// passes on; Megatron-Bridge then prints what it made of that.
enum class Dump { none, arguments, launch_config, call, asked_table, passed_table };

struct RankDump {
  Dump dump = Dump::none;
  int strange_lines = 0;
  int64_t line = 0;  // the last one of the rank
  NestedSettings nested;
  std::string nested_in;  // before the keys of `nested`
  YamlBlock yaml;
  bool is_open() const { return dump != Dump::none || nested.is_open() || yaml.is_open(); }
};

bool is_dotted(std::string_view text) { return contains(text, " ...") || contains(text, "....."); }

class SettingsReader : public LogReader {
 public:
  bool read_line(const LogLine& line, LogBuilder& log) override {
    const int32_t owner = owner_of(line);
    if (ranks_.size() >= k_max_dumping_ranks && !ranks_.contains(owner)) ranks_.clear();
    RankDump& rank = ranks_[owner];
    if (line.number - rank.line > k_longest_dump_gap) rank = {};
    rank.line = line.number;
    if (!read_open(line.text, rank, log)) read_fresh(line.text, rank, log);
    const bool goes_on = rank.is_open();
    if (rank.yaml.is_open()) yaml_rank_ = owner;
    if (!goes_on) ranks_.erase(owner);
    return goes_on;
  }

  // Command lines are trusted least: the framework may have changed the values.
  void finish(LogBuilder& log) override {
    keep(passed_, log);
    keep(told_, log);
    passed_.clear(), told_.clear();
    apply_settings(log.log().settings, log.facts());
  }

 private:
  static void keep(const std::optional<Setting>& setting, LogBuilder& log) {
    if (setting) log.set(setting->key, setting->value);
  }
  static void keep(const std::vector<Setting>& settings, LogBuilder& log) {
    for (const Setting& setting : settings) log.set(setting.key, setting.value);
  }
  static void keep_for_later(std::vector<Setting> settings, std::vector<Setting>& list) {
    constexpr size_t k_max_kept = 4000;
    if (list.size() < k_max_kept) list.insert(list.end(), settings.begin(), settings.end());
  }

  static void keep_nested(RankDump& rank, LogBuilder& log) {
    for (const Setting& setting : rank.nested.take()) log.set(rank.nested_in + setting.key, setting.value);
  }

  // Of a message of several lines, only the first has the rank's prefix.
  int32_t owner_of(const LogLine& line) const {
    if (line.rank >= 0 || !yaml_rank_) return line.rank;
    const auto rank = ranks_.find(*yaml_rank_);
    return rank != ranks_.end() && rank->second.yaml.is_open() ? *yaml_rank_ : line.rank;
  }

  // Continues the dump of an earlier line of the rank. True if the line belongs to it.
  bool read_open(std::string_view text, RankDump& rank, LogBuilder& log) {
    if (rank.nested.is_open()) {
      rank.nested.read(text);
      keep_nested(rank, log);
      return true;
    }
    if (rank.yaml.is_open()) {
      keep(rank.yaml.read(text), log);
      if (rank.yaml.is_open()) return true;
    }
    switch (rank.dump) {
      case Dump::arguments: return read_argument(text, rank, log);
      case Dump::launch_config: return read_launch_config(text, rank, log);
      case Dump::call: return read_call(text, rank, log);
      case Dump::asked_table: return read_table(text, rank, told_);
      case Dump::passed_table: return read_table(text, rank, passed_);
      case Dump::none: break;
    }
    return false;
  }

  bool read_argument(std::string_view text, RankDump& rank, LogBuilder& log) {
    if (contains(text, "end of arguments")) {
      rank.dump = Dump::none;
      return true;
    }
    auto setting = read_dotted_setting(text, shows_origin_);
    if (!setting && text.starts_with("  ")) setting = read_undotted_setting(text, shows_origin_);
    rank.strange_lines = setting ? 0 : rank.strange_lines + 1;
    if (rank.strange_lines > k_max_strange_dump_lines) rank.dump = Dump::none;
    keep(setting, log);
    return setting.has_value();
  }

  bool read_launch_config(std::string_view text, RankDump& rank, LogBuilder& log) {
    const auto setting = read_colon_setting(text);
    if (!setting) rank.dump = Dump::none;
    keep(setting, log);
    return setting.has_value();
  }

  bool read_call(std::string_view text, RankDump& rank, LogBuilder& log) {
    const bool ends = trim(text) == ")" || ++rank.strange_lines > 10 * k_max_strange_dump_lines;
    if (ends) rank.dump = Dump::none;
    keep(read_call_arguments(text), log);
    return true;
  }

  static bool read_table(std::string_view text, RankDump& rank, std::vector<Setting>& list) {
    const auto setting = read_typed_setting(text);
    rank.strange_lines = setting ? 0 : rank.strange_lines + 1;
    if (text.starts_with("-----") || rank.strange_lines > k_max_strange_dump_lines) rank.dump = Dump::none;
    if (setting) keep_for_later({*setting}, list);
    return setting.has_value();
  }

  static void open_dump(Dump dump, RankDump& rank, LogBuilder& log) {
    rank.dump = dump, rank.strange_lines = 0;
    log.mark_start();
  }

  void read_fresh(std::string_view text, RankDump& rank, LogBuilder& log) {
    if (contains(text, "- arguments -")) {
      shows_origin_ = trim(text).starts_with("-------------------- arguments");  // 20 dashes: GPT-NeoX; Megatron has 24
      open_dump(Dump::arguments, rank, log);
    } else if (contains(text, "launch configs:")) {
      open_dump(Dump::launch_config, rank, log);
    } else if (text.starts_with("Megatron-Bridge args: (")) {
      open_dump(Dump::asked_table, rank, log);
    } else if (text.starts_with("ConfigContainer: (")) {
      open_dump(Dump::passed_table, rank, log);
    } else if (contains(text, "Experiment configuration") || contains(text, "- Task Configuration -")) {
      rank.yaml.open();
      log.mark_start();
    } else if (!open_nested(text, rank, log) && !open_model_dump(text, rank, log) && !open_call(text, rank, log)) {
      read_single(text, log);
    }
  }

  // Where the dump of a model begins: Hugging Face's "Model config MixtralConfig {", torchtitan's "Building qwen3
  // 30B-A3B with {".
  static size_t find_model_dump(std::string_view text) {
    const size_t brace = text.find('{');
    const std::string_view before = text.substr(0, std::min(brace, text.size()));
    const bool is_model =
        brace != std::string_view::npos && ((contains(before, "Model config ") && before.ends_with("Config ")) ||
                                            (contains(before, "Building ") && before.ends_with(" with ")));
    return is_model ? brace : std::string_view::npos;
  }

  bool open_model_dump(std::string_view text, RankDump& rank, LogBuilder& log) {
    const size_t at = find_model_dump(text);
    if (at == std::string_view::npos) return false;
    rank.nested.open();
    rank.nested_in = contains(text.substr(0, at), "Building ") ? "model_args." : "";
    rank.nested.read(text.substr(at));
    keep_nested(rank, log);
    return true;
  }

  // DeepSpeed's "json = {", torchtitan's "Running with args: {...}", Primus' "CLI overrides: {...}"
  bool open_nested(std::string_view text, RankDump& rank, LogBuilder& log) {
    for (const std::string_view mark : {"  json = {", "Running with args: {", "Running with configs: {",
                                        "Running with config: {", "CLI overrides: {"}) {
      const size_t at = text.find(mark);
      if (at == std::string_view::npos) continue;
      rank.nested.open();
      rank.nested_in.clear();
      log.mark_start();
      rank.nested.read(text.substr(at + mark.size() - 1));
      mark == "CLI overrides: {" ? keep_for_later(rank.nested.take(), told_) : keep(rank.nested.take(), log);
      return true;
    }
    return false;
  }

  static bool open_call(std::string_view text, RankDump& rank, LogBuilder& log) {
    for (const std::string_view mark :
         {"TrainingArguments(", " OptimizerConfig(", "DatasetConfig(", " DistributedDataParallelConfig("}) {
      const auto arguments = text_after(text, mark);
      if (!arguments || looks_like_source(text)) continue;
      keep(read_call_arguments(*arguments), log);
      if (arguments->empty()) rank.dump = Dump::call, rank.strange_lines = 0;
      log.mark_start();
      return true;
    }
    return false;
  }

  void read_single(std::string_view text, LogBuilder& log) {
    keep(read_adapters(text), log);
    if (auto arguments = read_model_arguments(text); !arguments.empty()) return keep(arguments, log);
    keep(read_expert_count(text), log);
    keep(read_tokenizer_vocabulary(text), log);
    if (const auto end = read_planned_exit(text)) log.set_total(end->key, end->value);
    if (const auto dropped = read_dropped_setting(text)) log.drop_setting(dropped->key, dropped->value);
    if (text.starts_with("setting ")) return keep(read_adapter_setting(text), log);
    if (is_command(text)) {
      log.mark_start();
      return keep_for_later(read_command_line(text), told_);
    }
    if (is_dotted(text)) {
      keep(read_dotted_setting(text, shows_origin_ || has_filled_origin(text)), log);
    } else if (contains(text, ":print]")) {
      keep(read_undotted_setting(text, false), log);
    } else {
      keep(read_typed_setting(text), log);
    }
  }

  static bool has_filled_origin(std::string_view text) {
    return text.ends_with("..updated") || text.ends_with("..default");
  }

  static bool is_command(std::string_view text) {
    if (!contains(text, " --") || contains(text, "usage:") || contains(text, "[-h]")) return false;
    for (const std::string_view program : {"cmd = ", "torchrun ", "deepspeed ", "accelerate launch"})
      if (contains(text, program)) return true;
    return false;
  }

  std::unordered_map<int32_t, RankDump> ranks_;
  std::vector<Setting> told_, passed_;
  std::optional<int32_t> yaml_rank_;  // the last one that opened a block of YAML
  bool shows_origin_ = false;         // GPT-NeoX's dump: "1.0........updated"
};

}  // namespace

Dialect settings_reader() {
  return {.id = "settings",
          .title = "effective configuration",
          .versions =
              "our adapters, Megatron-LM, Megatron-Bridge, GPT-NeoX, DeepSpeed, HF Trainer, NeMo, torchtitan, "
              "Primus, torchrun",
          .anchors = {" .....",
                      "......",
                      "setting ",
                      "- arguments -",
                      ":print]",
                      " (int)",
                      " (float)",
                      " (bool)",
                      " (str)",
                      "LoRA",
                      "lora to",
                      "LoraConfig(",
                      "peft_scheme",
                      "Freezing base model",
                      "padded vocab (size: ",
                      "Model config ",
                      "Building ",
                      "num_local_experts",
                      "num_moe_experts",
                      "n_routed_experts",
                      "num_experts",
                      "exiting program ",
                      "launch configs:",
                      "Experiment configuration",
                      "- Task Configuration -",
                      "Megatron-Bridge args: (",
                      "ConfigContainer: (",
                      "Skipping config_container.",
                      "Removing invalid parameter '",
                      "TrainingArguments(",
                      "OptimizerConfig(",
                      "DatasetConfig(",
                      "DistributedDataParallelConfig(",
                      "Running with args: {",
                      "Running with config",
                      "CLI overrides: {",
                      "cmd = ",
                      "torchrun ",
                      "deepspeed ",
                      "accelerate launch"},
          .make_reader = []() -> std::unique_ptr<LogReader> { return std::make_unique<SettingsReader>(); }};
}

}  // namespace tprimat::logs
