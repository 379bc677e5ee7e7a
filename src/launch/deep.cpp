#include "launch/deep.h"

#include <fmt/format.h>

#include <cmath>

#include "base/error.h"
#include "launch/python_framework.h"

namespace tprimat {
namespace {

const PythonFramework k_deep = {.id = Framework::deep,
                                .package = "deepspeed",
                                .script = "train_deep.py",
                                .always_torchrun = true,
                                .precisions = {Precision::fp32, Precision::bf16},
                                .precisions_of_gpus = {Precision::fp16},
                                .zero_stages = {0, 1, 2, 3}};

void require_possible_numbers(const TrainSpec& spec) {
  std::vector<Problem> problems;
  const bool is_short = spec.precision == Precision::bf16 || spec.precision == Precision::fp16;
  if (is_short && spec.parallel.data > 1 && spec.parallel.zero_stage == 0)
    problems.push_back(
        {fmt::format("the framework 'deep' adds up {} gradients in fp32 only with ZeRO", enum_name(spec.precision)), "",
         "give the layout a zero_stage of 1, 2 or 3, or train in fp32"});
  const LossScaleSpec& scale = spec.loss_scale;
  if (spec.precision == Precision::fp16 && (std::exp2(std::round(std::log2(scale.initial))) != scale.initial ||
                                            scale.initial < 1.0 || std::round(scale.minimum) != scale.minimum))
    problems.push_back(
        {fmt::format("the framework 'deep' starts at a loss scale of 2, 4, 8 ... and ends at a whole one, "
                     "and those asked for are {} and {}",
                     scale.initial, scale.minimum),
         "", "give loss_scale such numbers"});
  throw_if_any(std::move(problems));
}

}  // namespace

std::optional<Installation> find_deep() { return find_python_framework(k_deep); }

LaunchPlan plan_deep(const LaunchRequest& request) {
  require_possible_numbers(request.spec);
  LaunchPlan plan = plan_python_framework(k_deep, request);
  if (request.platform == Platform::cpu) plan.environment["DS_ACCELERATOR"] = "cpu";  // also where a GPU is
  return plan;
}

}  // namespace tprimat
