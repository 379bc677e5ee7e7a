#include "result/printed_work.h"

#include <fmt/format.h>

#include <charconv>
#include <string_view>

#include "result/setting_words.h"
#include "result/summary.h"

namespace tprimat {
namespace {

using Settings = std::map<std::string, std::string>;

// NeMo and torchtitan print sections before the name.
const std::string* find_setting(const Settings& settings, std::string_view name) {
  for (const char* section : {"", "model.", "training."})
    if (const auto found = settings.find(section + std::string(name)); found != settings.end()) return &found->second;
  return nullptr;
}

// Zero and below stand for what the framework works out by itself.
std::optional<int64_t> size_of(const Settings& settings, std::string_view name) {
  const std::string* text = find_setting(settings, name);
  int64_t size = 0;
  if (text == nullptr) return std::nullopt;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), size);
  return error == std::errc() && end == text->data() + text->size() && size > 0 ? std::optional(size) : std::nullopt;
}

std::optional<int64_t> of_shape(const RunResult& result, int64_t ModelSpec::*size) {
  const auto& shape = result.model_info.shape;
  return shape ? std::optional((*shape).*size) : std::nullopt;
}

struct PrintedSize {
  const char* name;
  std::optional<int64_t> stated;
};

// Of a result with an effective_config.
std::vector<PrintedSize> printed_sizes(const RunResult& result) {
  const TrainingConfig& t = result.training_config;
  const ParallelismConfig& p = result.parallelism_config;
  // The printed batch is the one that a ramp-up leads to, the stated one that of the steps that count.
  const bool grows = names_ramp_up(*result.effective_config);
  return {{"global_batch_size", grows ? std::nullopt : t.global_batch_size},
          {"micro_batch_size", t.micro_batch_size},
          {"seq_length", t.sequence_length},
          {"world_size", device_count(result)},
          {"tensor_model_parallel_size", p.tensor_model_parallel_size},
          {"pipeline_model_parallel_size", p.pipeline_model_parallel_size},
          {"context_parallel_size", p.context_parallel_size},
          {"num_layers", of_shape(result, &ModelSpec::num_layers)},
          {"hidden_size", of_shape(result, &ModelSpec::hidden_size)}};
}

}  // namespace

bool names_ramp_up(const Settings& settings) {
  for (const char* name : {"rampup_batch_size", "rampup-batch-size"})
    if (const std::string* found = find_setting(settings, name)) return !is_off(*found);
  return false;
}

void compare_printed_settings(const RunResult& result, std::vector<Contradiction>& found) {
  if (!result.effective_config) return;
  const Settings& settings = *result.effective_config;
  const auto add = [&](const char* name, const std::string& stated, const std::string& printed) {
    found.push_back(
        {fmt::format("{}, which the framework printed", name), stated, printed, Contradiction::Kind::settings});
  };
  for (const auto& [name, stated] : printed_sizes(result))
    if (const auto printed = size_of(settings, name); printed && stated && *stated != *printed)
      add(name, fmt::format("{}", *stated), fmt::format("{}", *printed));
  const std::string* fp8 = find_setting(settings, "fp8");
  if (fp8 != nullptr && !is_off(*fp8) && result.precision && *result.precision != Precision::fp8)
    add("fp8", std::string(enum_name(*result.precision)), "fp8 " + *fp8);
  const auto experts = size_of(settings, "expert_model_parallel_size");
  const auto& shape = result.model_info.shape;
  if (experts && *experts > 1 && shape && !shape->num_experts)
    add("expert_model_parallel_size", "a dense model", fmt::format("{}", *experts));
}

}  // namespace tprimat
