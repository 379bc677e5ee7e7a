#include "extract/dialects/torchtitan_header.h"

#include <string>

#include "extract/dialects/log_facts.h"
#include "extract/scan_text.h"

namespace tprimat::logs {
namespace {

// "NVIDIA B200 with 178.35GiB memory"; in 2024 "NVIDIA H100 (0) with 95.04GiB memory".
void read_device(std::string_view rest, LogBuilder& log) {
  const size_t with = rest.find(" with ");
  if (with == std::string_view::npos) return;
  std::string_view name = trim(rest.substr(0, with));
  if (!name.empty() && name.back() == ')') name = trim(name.substr(0, name.rfind('(')));
  if (name.empty()) return;
  keep_first(log.facts().gpu_name, std::string(name));
  keep_first(log.facts().platform, platform_of_gpu(name));
  const Figure gb = parse_bytes_gb(rest.substr(with + 6));
  if (gb.finite()) keep_first(log.facts().gpu_memory_gb, *gb);
}

// "Model llama3 8B size: 8,030,261,248 total parameters"
void read_model(std::string_view rest, LogBuilder& log) {
  const size_t size = rest.find(" size:");
  if (size == std::string_view::npos || !contains(rest, "total parameters")) return;
  const std::string_view name = trim(rest.substr(0, size));
  if (!name.empty()) keep_first(log.facts().model, std::string(name));
  keep_first(log.facts().parameters, count_after(rest, " size:"));
}

void read_peak(std::string_view rest, LogBuilder& log) {
  const Figure peak = parse_number(rest);
  if (peak.finite() && *peak > 0) keep_first(log.facts().peak_flops, *peak);
}

// "local batch size 3, global batch size 24, gradient accumulation steps 1, sequence length 2048, total steps 3 (warmup
// 10)"
void read_sizes(std::string_view rest, LogBuilder& log) {
  LoggedFacts& facts = log.facts();
  keep_first(facts.micro_batch_size, count_after(rest, "local batch size "));
  keep_first(facts.global_batch_size, count_after(rest, "global batch size "));
  keep_first(facts.accumulation_steps, count_after(rest, "gradient accumulation steps "));
  keep_first(facts.sequence_length, count_after(rest, "sequence length "));
  keep_first(facts.max_steps, count_after(rest, "total steps "));
  keep_first(facts.warmup_steps, count_after(rest, "(warmup "));
}

void read_warmup(std::string_view rest, LogBuilder& log) {
  keep_first(log.facts().warmup_steps, parse_whole(rest));  // printed before the requested figure
}

struct MeshSize {
  int64_t devices = 1, data = 1, tensor = 1, pipeline = 1, context = 1;
  std::optional<int64_t> expert, expert_tensor;  // they reuse the devices of the others
  bool known = true;

  void take(std::string_view name, std::optional<int64_t> size) {
    constexpr int64_t k_max = 1 << 24;
    if (!size || *size < 1 || *size > k_max || devices * *size > k_max) {
      known = false;
      return;
    }
    devices *= *size;
    if (name.substr(0, 2) == "dp") data *= *size;
    if (name == "tp") tensor = *size;
    if (name == "pp") pipeline = *size;
    if (name == "cp") context = *size;
    if (name == "dp_shard_in_ep") expert = *size;
  }

  void take_expert(std::string_view name, std::optional<int64_t> size) {
    constexpr int64_t k_max = 1 << 24;
    if (size && *size >= 1 && *size <= k_max) (name == "ep" ? expert : expert_tensor) = size;
  }
};

void keep_mesh(const MeshSize& mesh, LogBuilder& log) {
  if (!mesh.known) return;
  LoggedFacts& facts = log.facts();
  keep_first(facts.gpu_count, mesh.devices);
  keep_first(facts.data_parallel, mesh.data);
  keep_first(facts.tensor_parallel, mesh.tensor);
  keep_first(facts.pipeline_parallel, mesh.pipeline);
  keep_first(facts.context_parallel, mesh.context);
  const bool has_experts = mesh.expert.value_or(1) > 1;
  if (has_experts) keep_first(facts.expert_parallel, mesh.expert);
  if (has_experts && mesh.expert_tensor) keep_first(facts.expert_tensor_parallel, mesh.expert_tensor);
}

// "['dp_shard_mod_ep', 'dp_shard_in_ep', 'tp'], [2, 4, 2]": only dimensions above 1.
void read_mesh_list(std::string_view rest, LogBuilder& log) {
  const size_t close = rest.find(']');
  if (close == std::string_view::npos) return;
  std::string_view names = rest.substr(0, close), sizes = rest.substr(close + 1);
  MeshSize mesh;
  if (!skip_past(sizes, "[")) return;
  while (skip_past(names, "'")) {
    const std::string_view name = names.substr(0, names.find('\''));
    if (!skip_past(names, "'")) break;
    const Figure size = take_number(sizes);
    mesh.take(name,
              size.finite() && *size >= 1 && *size < 1e7 ? std::optional(static_cast<int64_t>(*size)) : std::nullopt);
    skip_past(sizes, ",");
  }
  // TP and CP may be part of EP, which the list does not tell.
  if (mesh.tensor > 1 || mesh.context > 1) mesh.expert.reset();
  keep_mesh(mesh, log);
}

// "pp=1, dp_replicate=1, dp_shard=4, cp=1, tp=2, ep=1": expert parallelism reuses the devices of the others.
void read_mesh_pairs(std::string_view rest, LogBuilder& log) {
  MeshSize mesh;
  bool any = false;
  while (!rest.empty()) {
    const std::string_view pair = trim(rest.substr(0, rest.find(',')));
    if (!skip_past(rest, ",")) rest = {};
    const size_t equals = pair.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view name = pair.substr(0, equals);
    if (name == "ep" || name == "etp") {
      mesh.take_expert(name, parse_whole(pair.substr(equals + 1)));
      continue;
    }
    mesh.take(name, parse_whole(pair.substr(equals + 1)));
    any = true;
  }
  if (any) keep_mesh(mesh, log);
}

void read_version(std::string_view rest, LogBuilder& log) {
  rest = trim(rest);
  const std::string_view version = rest.substr(0, rest.find(' '));
  if (!version.empty() && version.substr(0, 5) != "0.0.0")  // which it prints when it does not know
    keep_first(log.facts().framework_version, std::string(version));
}

void read_fp8(std::string_view rest, LogBuilder& log) {
  if (contains(rest, "training active")) log.facts().precision = Precision::fp8;
}

// "training.seq_len........................... 2048", as Primus dumps the configuration.
void read_argument(std::string_view rest, LogBuilder& log) {
  const size_t blank = rest.find(' ');
  if (blank == std::string_view::npos) return;
  std::string_view key = rest.substr(0, blank);
  while (!key.empty() && key.back() == '.') key.remove_suffix(1);
  if (!contains(key, ".")) return;  // those of other back ends have no section
  const std::string_view value = trim(rest.substr(blank));
  log.set(std::string(key), std::string(value));
  // Other facts are taken from the settings after the last line.
  if (key == "training.seq_len") keep_first(log.facts().sequence_length, count_after(value, ""));
}

struct HeaderLine {
  std::string_view mark;
  void (*read)(std::string_view rest, LogBuilder& log);
};

constexpr HeaderLine k_header_lines[] = {{" capacity: ", read_device},
                                         {"Model ", read_model},
                                         {"Peak FLOPS used for computing MFU:", read_peak},
                                         {"Trainer is initialized with ", read_sizes},
                                         {"Training starts at step", read_sizes},
                                         {"Adjusting warmup steps to ", read_warmup},
                                         {"device mesh with [", read_mesh_list},
                                         {"device mesh with parallelism: ", read_mesh_pairs},
                                         {"torchtitan version: ", read_version},
                                         {"Float8 ", read_fp8},
                                         {"MXFP8 ", read_fp8},
                                         {"arguments ", read_argument}};

}  // namespace

bool read_titan_header(std::string_view text, LogBuilder& log) {
  for (const HeaderLine& line : k_header_lines) {
    const auto rest = text_after(text, line.mark);
    if (!rest) continue;
    line.read(*rest, log);
    return true;
  }
  return false;
}

}  // namespace tprimat::logs
