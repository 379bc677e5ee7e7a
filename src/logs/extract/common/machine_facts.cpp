#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "extract/common/gpu_listing.h"
#include "extract/common/log_words.h"
#include "extract/common/parameter_counts.h"
#include "extract/common/setting_names.h"
#include "extract/dialects.h"
#include "extract/dialects/log_facts.h"
#include "extract/scan_text.h"

namespace tprimat::logs {
namespace {

constexpr int64_t k_max_gpus = 1 << 22;
constexpr size_t k_max_tables = 4096;   // open at the same time
constexpr size_t k_max_pieces = 65536;  // of a model

std::optional<int64_t> count_between(std::optional<int64_t> value, int64_t least, int64_t most) {
  return value && *value >= least && *value <= most ? value : std::nullopt;
}

std::optional<int64_t> gpus_after(std::string_view text, std::string_view key) {
  return count_between(count_after(text, key), 1, k_max_gpus);
}

// "2.6.0.dev20241231+cu126" after the key and a filler of blanks, dots, ":" and "="; "" where no version follows.
std::string_view version_after(std::string_view text, std::string_view key) {
  if (!skip_past(text, key)) return {};
  const size_t start = text.find_first_not_of(" .:=\t");
  if (start == std::string_view::npos || start == 0) return {};
  text.remove_prefix(start);
  size_t length = 0;
  while (length < text.size() && length < 60 && (is_name_char(text[length]) || contains(".+-", text.substr(length, 1))))
    ++length;
  text = text.substr(0, length);
  const bool is_version = !text.empty() && text.front() >= '0' && text.front() <= '9' && contains(text, ".");
  while (text.ends_with(".")) text.remove_suffix(1);
  return is_version ? text : std::string_view();
}

std::optional<Platform> platform_of_build(std::string_view version) {
  if (contains(version, "+cu")) return Platform::nvd;
  if (contains(version, "+rocm") || contains(version, "+hip")) return Platform::amd;
  return std::nullopt;
}

void read_versions(std::string_view text, LogBuilder& log) {
  LoggedFacts& facts = log.facts();
  for (const std::string_view key : {"PyTorch version", "PyTorch VERSION", "Running PyTorch", "torch version"}) {
    const std::string_view version = version_after(text, key);
    if (version.empty()) continue;
    keep_first(facts.pytorch_version, std::string(version));
    keep_first(facts.platform, platform_of_build(version));
  }
  for (const auto& [key, platform] : {std::pair{std::string_view("torch cuda version"), Platform::nvd},
                                      std::pair{std::string_view("torch hip version"), Platform::amd},
                                      std::pair{std::string_view("compiled for CUDA"), Platform::nvd}}) {
    const std::string_view version = version_after(text, key);
    if (version.empty()) continue;
    keep_first(facts.stack_version, std::string(version));
    keep_first(facts.platform, platform);
  }
  if (const std::string_view version = version_after(text, "deepspeed info"); !version.empty())
    log.set("deepspeed_version", std::string(version));
}

// "NCCL version 2.18.3+cuda12.1"; AMD's library prints either name.
void read_collective_library(std::string_view text, LogBuilder& log) {
  const bool is_rccl = contains(text, "RCCL version");
  const std::string_view version = version_after(text, "CCL version");
  if (version.empty()) return;
  const bool amd = is_rccl || contains(version, "+hip") || contains(version, "+rocm");
  log.set(amd ? "rccl_version" : "nccl_version", std::string(version));
  keep_first(log.facts().platform, amd ? Platform::amd : platform_of_build(version));
}

// Megatron: "using world size: 64, data-parallel-size: 8, tensor-model-parallel size: 4, ...". GPT-NeoX prints the like
// before its processes are started, with 1.
void read_layout(std::string_view text, LoggedFacts& facts) {
  if (!contains(text, ", data-parallel")) return;
  keep_first(facts.gpu_count, gpus_after(text, "using world size:"));
  for (const std::string_view key : {"data-parallel-size:", "data-parallel size:"})
    keep_first(facts.data_parallel, gpus_after(text, key));
  keep_first(facts.tensor_parallel, gpus_after(text, " tensor-model-parallel size:"));
  keep_first(facts.pipeline_parallel, gpus_after(text, " pipeline-model-parallel size:"));
  keep_first(facts.context_parallel, gpus_after(text, " context-parallel size:"));
}

// "world_size: 8" and "world_size=8", but neither "group_world_size=1" nor "data_parallel_world_size: 4".
std::optional<int64_t> read_world_size(std::string_view text) {
  for (const std::string_view name : {"world_size", "world size"}) {
    const size_t at = text.find(name);
    if (at == std::string_view::npos || (at > 0 && is_name_char(text[at - 1]))) continue;
    std::string_view rest = text.substr(at + name.size());
    if (!rest.empty() && (rest.front() == ':' || rest.front() == '='))
      return count_between(parse_whole(rest.substr(1)), 1, k_max_gpus);
  }
  return std::nullopt;
}

// "{'worker-0': [0, 1, 2, 3], 'worker-1': [0, 1, 2, 3]}" -> 8
std::optional<int64_t> count_listed(std::string_view text) {
  int64_t count = 0;
  for (auto list = text_between(text, "[", "]"); list; list = text_between(text, "[", "]")) {
    count += list->empty() ? 0 : std::count(list->begin(), list->end(), ',') + 1;
    skip_past(text, "[");
    skip_past(text, "]");
  }
  return count_between(count, 1, k_max_gpus);
}

std::optional<int64_t> read_gpu_count(std::string_view text) {
  if (const auto nodes = text_after(text, "WORLD INFO DICT:")) return count_listed(*nodes);
  for (const std::string_view key : {"dist_world_size=", "global_world_sizes=[", "global_world_sizes=(",
                                     "registered. Starting with ", "Total number of GPUs determined to be:"})
    if (const auto count = gpus_after(text, key)) return count;
  if (const auto member = text_after(text, ", MEMBER: ")) return gpus_after(*member, "/");
  if (contains(text, "num_local_procs=")) {
    const auto nodes = gpus_after(text, "nnodes="), each = gpus_after(text, "num_local_procs=");
    return nodes && each ? count_between(*nodes * *each, 1, k_max_gpus) : std::nullopt;
  }
  return read_world_size(text);
}

// "[Rank 2] (after 20 iterations) memory (MB) | allocated: 1786.68 | max allocated: ...": several may be glued on a
// line. MB there is 1024^2 bytes.
void read_memory(const LogLine& line, LogBuilder& log) {
  constexpr std::pair<std::string_view, MemoryKind> k_printed_kinds[] = {{"allocated", MemoryKind::allocated},
                                                                         {"max allocated", MemoryKind::peak_allocated},
                                                                         {"reserved", MemoryKind::reserved},
                                                                         {"max reserved", MemoryKind::peak_reserved}};
  std::string_view text = line.text;
  int64_t rank = std::max(line.rank, -1);
  while (!text.empty()) {
    const size_t end = std::min(text.find('|'), text.size());
    const std::string_view part = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const size_t colon = part.find(':');
    if (colon != std::string_view::npos) {
      const Figure mb = parse_number(part.substr(colon + 1));
      for (const auto& [name, kind] : k_printed_kinds)
        if (trim(part.substr(0, colon)) == name && mb.finite())
          log.add_memory(static_cast<int32_t>(rank), kind, *mb * k_mib / 1e9);
    }
    if (const auto named = text_after(part, "[Rank "))
      rank = count_between(parse_whole(*named), 0, k_max_gpus).value_or(rank);
  }
}

// The model's size from the pieces that the tensor and pipeline ranks report.
class ModelPieces {
 public:
  // " > number of parameters on (tensor, pipeline) model parallel rank (0, 3): 805560320"
  // Two ranks' lines may be glued.
  void read(std::string_view text) {
    while (skip_past(text, "model parallel rank (")) {
      const auto tensor = parse_whole(text), pipeline = count_between(whole_after(text, ", "), 0, k_max_gpus);
      const auto parameters = count_after(text, "): ");
      if (tensor && pipeline && parameters && pieces_.size() < k_max_pieces)
        pieces_.try_emplace({*tensor, *pipeline}, *parameters);
    }
  }

  void set_rounded(std::string_view text) {  // "Total number of parameters in billions: 15.78"
    const Figure billions = number_after(text, "Total number of parameters in billions:");
    if (billions.finite() && *billions > 0 && *billions < 1e6) rounded_ = std::llround(*billions * 1e3) * 1'000'000;
  }

  void finish(LogBuilder& log) const {
    LoggedFacts& facts = log.facts();
    if (facts.parameters) return;
    const auto& settings = log.log().settings;
    const auto experts = settings.find("expert_model_parallel_size");
    const bool whole = experts == settings.end() || experts->second == "1";
    const int64_t ranks = facts.tensor_parallel.value_or(0) * facts.pipeline_parallel.value_or(0);
    if (whole && ranks >= 1 && static_cast<int64_t>(pieces_.size()) == ranks) {
      set_sum(log);
    } else if (rounded_ > 0) {
      facts.parameters = rounded_;
      log.note("the parameter count is Megatron's estimate in billions, rounded to 0.01 billion");
    }
  }

 private:
  void set_sum(LogBuilder& log) const {
    double sum = 0;
    for (const auto& [place, parameters] : pieces_) sum += static_cast<double>(parameters);
    if (sum > 9e15) return;
    log.facts().parameters = static_cast<int64_t>(sum);
    if (pieces_.size() > 1)
      log.note(
          fmt::format("the parameter count is the sum over {} shards: weights replicated across tensor-parallel ranks, "
                      "and an embedding shared by the first and last pipeline stages, count more than once",
                      pieces_.size()));
  }

  std::map<std::pair<int64_t, int64_t>, int64_t> pieces_;
  int64_t rounded_ = 0;
};

class MachineFactsReader : public LogReader {
 public:
  bool read_line(const LogLine& line, LogBuilder& log) override {
    if (line.ranks > 0) take_count(line.ranks, log.facts());
    const auto open = tables_.find(line.rank);
    if (open != tables_.end() || GpuTable::is_title(line.text)) return read_table(line, log);
    read_fact(line, log);
    return false;
  }

  void finish(LogBuilder& log) override {
    for (const auto& [rank, table] : tables_) take_listing(table.listing(), log);
    tables_.clear();
    LoggedFacts& facts = log.facts();
    apply_settings(log.log().settings, facts);
    if (!facts.gpu_count && listed_ > 0) {
      facts.gpu_count = listed_;
      log.note(
          "the number of GPUs is from a listing of the machine's GPUs; the run may have used fewer GPUs, or several "
          "machines");
    }
    if (facts.gpu_name) keep_first(facts.platform, platform_of_gpu(*facts.gpu_name));
    counts_.finish(log);
    pieces_.finish(log);
  }

 private:
  bool read_table(const LogLine& line, LogBuilder& log) {
    if (tables_.size() >= k_max_tables) tables_.clear();
    GpuTable& table = tables_[line.rank];
    if (GpuTable::is_title(line.text)) {
      take_listing(table.listing(), log);
      table.open(line.text);
    } else {
      table.read(line.text);
      if (!GpuTable::may_hold(line.text)) read_fact(line, log);
    }
    const bool goes_on = table.is_open();
    if (!goes_on) {
      take_listing(table.listing(), log);
      tables_.erase(line.rank);
    }
    return goes_on;
  }

  void take_listing(const GpuListing& listing, LogBuilder& log) {
    LoggedFacts& facts = log.facts();
    listed_ = std::max(listed_, listing.count);
    if (!listing.name.empty()) keep_first(facts.gpu_name, listing.name);
    if (listing.count > 0) keep_first(facts.gpu_memory_gb, listing.memory_gb.to_optional());
    if (!listing.stack_version.empty()) keep_first(facts.stack_version, listing.stack_version);
  }

  void read_fact(const LogLine& line, LogBuilder& log) {
    const std::string_view text = line.text;
    LoggedFacts& facts = log.facts();
    if (contains(text, "memory (MB) |")) return read_memory(line, log);
    if (contains(text, "using world size:")) return read_layout(text, facts);
    if (contains(text, "on (tensor, pipeline)")) return pieces_.read(text);
    if (contains(text, "CCL version")) return read_collective_library(text, log);
    if (const auto gpu = find_named_gpu(text)) take_gpu(*gpu, facts);
    read_versions(text, log);
    if (const auto count = read_gpu_count(text)) take_count(*count, facts);
    read_parameters(text, log);
    if (const auto peak = text_after(text, "Peak FLOPS used for computing MFU:"))
      if (const Figure flops = parse_number(*peak); flops.finite() && *flops > 0) keep_first(facts.peak_flops, *flops);
    if (contains(text, "HIP_VISIBLE_DEVICES=") && !looks_like_source(text)) keep_first(facts.platform, Platform::amd);
  }

  // Launchers of single nodes print it, too: the largest number is that of the run.
  void take_count(int64_t count, LoggedFacts& facts) {
    if (facts.gpu_count && facts.gpu_count != gpu_count_) return;
    gpu_count_ = std::max(gpu_count_.value_or(0), count);
    facts.gpu_count = gpu_count_;
  }

  void take_gpu(const NamedGpu& gpu, LoggedFacts& facts) {
    keep_first(facts.gpu_name, gpu.name);
    if (facts.gpu_name == gpu.name && gpu.memory_gb.finite() && *gpu.memory_gb > 0)
      keep_first(facts.gpu_memory_gb, *gpu.memory_gb);
    if (gpu.index) listed_ = std::max(listed_, count_between(*gpu.index + 1, 1, 1024).value_or(0));
  }

  void read_parameters(std::string_view text, LogBuilder& log) {
    pieces_.set_rounded(text);
    counts_.read(text);
    LoggedFacts& facts = log.facts();
    if (contains(text, " total parameters")) {  // torchtitan: "Model qwen3 14B size: 14,768,307,200 total parameters"
      keep_first(facts.parameters, count_after(text, " size:"));
    } else if (contains(text, "UNIQUE_PARAMS=")) {  // DeepSpeed's pipeline engine
      keep_first(facts.parameters, count_after(text, "UNIQUE_PARAMS="));
    } else if (contains(text, "> total params:")) {  // GPT-NeoX
      keep_first(facts.parameters, count_after(text, "> total params:"));
    }
    const auto footprint = text_between(text, "heoretical memory footprints: weight and optimizer=", ",");
    if (footprint) log.set("theoretical_memory_weight_and_optimizer", quote_text(*footprint, 40));
  }

  std::unordered_map<int32_t, GpuTable> tables_;  // open ones, by rank
  ModelPieces pieces_;
  ParameterCounts counts_;
  std::optional<int64_t> gpu_count_;  // as found here
  int64_t listed_ = 0;                // GPUs of one machine
};

}  // namespace

Dialect machine_facts_reader() {
  return {.id = "machine_facts",
          .title = "GPUs, versions, layout, memory of each rank",
          .versions = "nvidia-smi, rocm-smi, PyTorch, Megatron-LM, DeepSpeed, torchtitan, Lightning, torchrun",
          .anchors = {"NVIDIA-SMI",
                      "ROCm System Management",
                      "NVIDIA ",
                      "AMD Instinct",
                      "AMD Radeon",
                      "Tesla ",
                      "CCL version",
                      "PyTorch ",
                      "torch version",
                      "torch cuda version",
                      "torch hip version",
                      "deepspeed info",
                      "world size:",
                      "world_size",
                      "WORLD INFO DICT",
                      "num_local_procs=",
                      "registered. Starting with",
                      ", MEMBER: ",
                      "GPUs determined to be",
                      "on (tensor, pipeline)",
                      "of parameters in billions",
                      "memory footprints:",
                      "memory (MB) |",
                      " total parameters",
                      "rainable param",
                      "Total param",
                      "UNIQUE_PARAMS=",
                      "> total params:",
                      "Peak FLOPS used",
                      "HIP_VISIBLE_DEVICES="},
          .make_reader = []() -> std::unique_ptr<LogReader> { return std::make_unique<MachineFactsReader>(); }};
}

}  // namespace tprimat::logs
