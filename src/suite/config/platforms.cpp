#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "config/draft.h"
#include "config/values.h"
#include "spec/hardware_catalogue.h"
#include "text/format.h"

namespace tprimat::suite {
namespace {

constexpr double k_memory_tolerance = 0.1;  // 80 GB and 80 GiB are the same part

std::string_view stack_of(Platform platform) {
  return platform == Platform::nvd ? "cuda" : platform == Platform::amd ? "rocm" : "cpu";
}

class PlatformResolver {
 public:
  PlatformResolver(Draft& draft, const std::string& key, raw::Platform& from)
      : draft_(draft),
        key_(key),
        path_("hardware.platforms." + key),
        from_(from),
        platform_(*parse_enum<Platform>(key)) {}

  void resolve() {
    resolve_device();
    resolve_count();
    resolve_memory();
    resolve_stack();
    to_.framework = take_or(draft_, from_.framework, path_ + ".framework", Framework::native);
    resolve_precision();
    resolve_options();
    draft_.experiment.platforms[platform_] = to_;
  }

 private:
  void resolve_device() {
    const std::string path = path_ + ".gpu_model";
    if (!from_.gpu_model && platform_ != Platform::cpu && draft_.is_sound(path))
      return draft_.fail(path, path + " is missing", "name the device: H100, MI300X, ...");
    to_.device_model = take_or<std::string>(draft_, from_.gpu_model, path, "auto");
    if (to_.device_model == "auto") return;
    part_ = find_hardware(to_.device_model);
    if (!part_) {
      if (platform_ != Platform::cpu)
        draft_.warn(path,
                    fmt::format("{} '{}' is not in the hardware catalogue, or does not name one exact part", path,
                                to_.device_model),
                    "tprimat cannot check its precisions, memory and MFU, and has no defaults for an unknown device");
      return;
    }
    if (part_->platform == platform_) return;
    draft_.fail(path, fmt::format("{} is configured under {}, but is a device of {}", part_->display_name, key_,
                                  display_name(part_->platform)));
  }

  void resolve_count() {
    const std::string path = path_ + ".num_gpus";
    if (!from_.num_gpus && platform_ != Platform::cpu && draft_.is_sound(path))
      draft_.fail(path, path + " is missing", "state how many devices each run uses");
    to_.num_devices = take_or<int64_t>(draft_, from_.num_gpus, path, 1);
  }

  void resolve_memory() {
    const std::string path = path_ + ".memory_per_gpu_gb";
    if (part_ && part_->memory_bytes) {
      const double known_gb = *part_->memory_bytes / 1e9;
      const double stated = take_or(draft_, from_.memory_per_gpu_gb, path, known_gb, derived_by("hardware catalogue"));
      if (std::fabs(stated - known_gb) > k_memory_tolerance * known_gb)
        draft_.warn(path, fmt::format("{} is {:g}, but the hardware catalogue has {:g} GB for {}", path, stated,
                                      known_gb, part_->display_name));
    }
    to_.memory_per_device_gb = from_.memory_per_gpu_gb;
  }

  void resolve_stack() {
    const std::string path = path_ + ".software_stack";
    to_.software_stack = take_or(draft_, from_.software_stack, path, std::string(stack_of(platform_)));
    if (to_.software_stack == stack_of(platform_) || !draft_.is_sound(path)) return;
    draft_.fail(path, fmt::format("{} must be {} on {}, got '{}'", path, stack_of(platform_), display_name(platform_),
                                  to_.software_stack.substr(0, 40)));
  }

  void resolve_precision() {
    raw::PrecisionSection& common = draft_.raw.training.precision;
    const Precision fallback = take_or(draft_, common.fallback, "training.precision.default", Precision::bf16);
    const raw::Optimizations* own = draft_.raw.platform_optimizations.find(key_);
    const bool stated = own != nullptr && own->precision;
    to_.precision = stated ? *own->precision : fallback;
    const std::string path = stated ? "platform_optimizations." + key_ + ".precision" : "training.precision.default";
    if (draft_.diagnosis.are_sound({path, path_ + ".gpu_model"}))
      check_precision(draft_, platform_, to_.device_model, to_.precision, path);
  }

  raw::Optimizations& own_optimizations() {
    auto& sections = draft_.raw.platform_optimizations;
    if (sections.find(key_) == nullptr) sections.entries.emplace_back(key_, raw::Optimizations{});
    return *sections.find(key_);
  }

  // docs/frameworks.md has their sources, and why each was chosen where AMD's own guides disagree. A variable that the
  // configuration states under `environment` is decided there.
  void recommend_variables() {
    raw::Optimizations& own = own_optimizations();
    const std::string path = "platform_optimizations." + key_ + ".";
    if (!take_or(draft_, own.recommended_variables, path + "recommended_variables", true)) return;
    const Origin origin = derived_by("recommended for AMD");
    const auto decided = [&](const char* variable) { return own.environment.find(variable) != nullptr; };
    if (!decided("HSA_NO_SCRATCH_RECLAIM"))
      take_or(draft_, own.hsa_no_scratch_reclaim, path + "hsa_no_scratch_reclaim", true, origin);
    if (!decided("HSA_ENABLE_SDMA")) take_or(draft_, own.hsa_enable_sdma, path + "hsa_enable_sdma", true, origin);
    if (!decided("PYTORCH_ALLOC_CONF") && !decided("PYTORCH_CUDA_ALLOC_CONF") && !decided("PYTORCH_HIP_ALLOC_CONF"))
      take_or<std::string>(draft_, own.cuda_alloc_conf, path + "cuda_alloc_conf", "expandable_segments:True", origin);
  }

  void resolve_options() {
    if (platform_ == Platform::amd) recommend_variables();
    raw::Optimizations* own = draft_.raw.platform_optimizations.find(key_);
    const raw::PrecisionSection& common = draft_.raw.training.precision;
    const raw::Optimizations none;
    const raw::Optimizations& from = own != nullptr ? *own : none;
    resolve_recompute(from);
    resolve_modules(from);
    PlatformSettings& to = to_.settings;
    for_each_pair(from, to, [](std::string_view, const auto& stated, auto& value) { value = stated; });
    if (!to.fp8_hybrid) to.fp8_hybrid = common.fp8_hybrid;
    if (!to.fp8_param) to.fp8_param = common.fp8_param;
    for (const auto& [name, value] : from.environment.entries)
      if (value) to.environment[name] = *value;
    check_variables();
    warn_without_fp8("fp8_hybrid", to.fp8_hybrid);
    warn_without_fp8("fp8_param", to.fp8_param);
    check_devices();
  }

  void check_variables() {
    const std::string path = "platform_optimizations." + key_ + ".environment";
    for (const auto& [name, value] : to_.settings.environment)
      if (!is_variable_name(name))
        draft_.fail(path + "." + name, fmt::format("'{}' in {} is not a variable name", printable(name), path),
                    "use only letters, digits and _, and no leading digit");
  }

  void warn_without_fp8(const std::string& flag, const raw::Flag& value) {
    if (to_.precision == Precision::fp8 || !value.value_or(false)) return;
    draft_.warn(
        "platform_optimizations." + key_ + "." + flag,
        fmt::format("{} is true on {}, but has no effect at precision {}", flag, key_, enum_name(to_.precision)));
  }

  void check_devices() {
    if (!to_.settings.visible_devices) return;
    const std::string& list = *to_.settings.visible_devices;
    const auto named = static_cast<int64_t>(1 + std::count(list.begin(), list.end(), ','));
    if (list.empty() || named < to_.num_devices)
      draft_.warn(
          "platform_optimizations." + key_ + ".visible_devices",
          fmt::format("visible_devices is '{}', but each run on {} uses {} devices", list, key_, to_.num_devices));
  }

  // Two names for `recompute: full`; the first one counts if both are stated.
  void resolve_recompute(const raw::Optimizations& from) {
    const raw::Flag& flag = from.activation_checkpointing ? from.activation_checkpointing : from.gradient_checkpointing;
    to_.recompute = from.recompute.value_or(flag.value_or(false) ? Recompute::full : Recompute::none);
    to_.activation_checkpointing = to_.recompute != Recompute::none;
    if (from.recompute) {
      warn_recompute("activation_checkpointing", from.activation_checkpointing);
      warn_recompute("gradient_checkpointing", from.gradient_checkpointing);
      return;
    }
    if (!from.gradient_checkpointing || *from.gradient_checkpointing == *flag) return;
    draft_.remark("platform_optimizations." + key_ + ".gradient_checkpointing",
                  "activation_checkpointing counts, not its other name gradient_checkpointing",
                  fmt::format("{} and {} on {}", *flag, *from.gradient_checkpointing, key_));
  }

  void resolve_modules(const raw::Optimizations& from) {
    if (!from.recompute_modules) return;
    const std::string path = "platform_optimizations." + key_ + ".recompute_modules";
    to_.recompute_modules.emplace();
    for (const std::string& name : *from.recompute_modules) {
      const auto module = parse_enum<RecomputedModule>(name);
      const bool repeated =
          module && std::ranges::find(*to_.recompute_modules, *module) != to_.recompute_modules->end();
      if (module && !repeated) to_.recompute_modules->push_back(*module);
      if (!module)
        draft_.fail(path, fmt::format("'{}' is no part of a layer", printable(name.substr(0, 64))),
                    "choose from " + enum_choices<RecomputedModule>());
      else if (repeated)
        draft_.fail(path, fmt::format("{} is stated twice", name), "state it once");
    }
    if (from.recompute_modules->empty())
      draft_.fail(path, "recompute_modules is empty", "leave it out, or name a part");
    if (to_.recompute != Recompute::selective)
      draft_.fail(path,
                  fmt::format("recompute_modules needs recompute: selective, but it is {}", enum_name(to_.recompute)),
                  "set recompute to selective, or leave recompute_modules out");
  }

  void warn_recompute(const std::string& name, const raw::Flag& flag) {
    if (!flag || *flag == to_.activation_checkpointing) return;
    const std::string_view used = enum_name(to_.recompute);
    draft_.warn("platform_optimizations." + key_ + "." + name,
                fmt::format("on {}, recompute is {}, but {} is {}", key_, used, name, *flag),
                fmt::format("recompute: {} is used", used));
  }

  Draft& draft_;
  std::string key_, path_;
  raw::Platform& from_;
  Platform platform_;
  PlatformSetup to_;
  std::optional<HardwareSpec> part_;
};

// Sections for platforms that this configuration does not have; those of the built-in default cause no warning.
void warn_unused_optimizations(Draft& draft) {
  for (const auto& [key, section] : draft.raw.platform_optimizations.entries) {
    const std::string path = "platform_optimizations." + key;
    if (draft.raw.hardware.platforms.find(key) == nullptr && is_stated(draft.tree, path))
      draft.warn(path, fmt::format("{} is not used: hardware.platforms has no {}", path, key));
  }
}

void check_on_processor(Draft& draft, Precision precision, const std::string& path) {
  if (precision == Precision::tf32) draft.fail(path, "precision tf32 is not available on a CPU", "choose fp32 or bf16");
  if (precision == Precision::fp8)
    draft.warn(path, "precision fp8 is emulated on a CPU: the native trainer rounds to 8 bits and multiplies in bf16",
               "it shows the effect of fp8 on the loss, not its speed");
}

// The one to name in place of a precision that a part lacks.
Precision usual_precision(const HardwareSpec& part) {
  for (const Precision each : {Precision::bf16, Precision::fp16})
    if (part.dense_peak_flops.contains(each)) return each;
  return Precision::fp32;
}

}  // namespace

void check_precision(Draft& draft, Platform platform, const std::string& device_model, Precision precision,
                     const std::string& path) {
  if (platform == Platform::cpu) return check_on_processor(draft, precision, path);
  const auto part = find_hardware(device_model);
  if (!part || part->dense_peak_flops.empty() || precision == Precision::fp32) return;
  if (part->dense_peak_flops.count(precision) != 0) return;
  std::string present;
  for (const auto& [each, peak] : part->dense_peak_flops)
    present += (present.empty() ? "" : ", ") + std::string(enum_name(each));
  const std::string what = fmt::format("precision {} is not available on {}, which supports {}", enum_name(precision),
                                       part->display_name, present);
  // The catalogue omits unsourced figures, and sources often omit TF32.
  if (precision == Precision::tf32)
    draft.warn(path, what + ", according to the hardware catalogue");
  else
    draft.fail(path, what,
               fmt::format("choose another, for example platform_optimizations.{}.precision: {}", enum_name(platform),
                           enum_name(usual_precision(*part))));
}

void resolve_platforms(Draft& draft) {
  auto& platforms = draft.raw.hardware.platforms.entries;
  if (platforms.empty() && draft.is_sound("hardware"))
    draft.diagnosis.add_error(
        {"hardware.platforms must name at least one platform", origin_of(draft.tree, "hardware.platforms"),
         "for example  platforms: {cpu: {gpu_model: auto, num_gpus: 1}}"},
        "hardware");
  for (auto& [key, platform] : platforms)
    if (parse_enum<Platform>(key)) PlatformResolver(draft, key, platform).resolve();
  warn_unused_optimizations(draft);
}

}  // namespace tprimat::suite
