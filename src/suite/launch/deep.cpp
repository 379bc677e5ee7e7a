#include "launch/deep.h"

#include <fmt/format.h>

#include <cmath>

#include "base/error.h"
#include "launch/python_framework.h"

namespace tprimat::suite {
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
  const LossScaleSpec& scale = spec.loss_scale;
  if (spec.precision == Precision::fp16 && (std::exp2(std::round(std::log2(scale.initial))) != scale.initial ||
                                            scale.initial < 1.0 || std::round(scale.minimum) != scale.minimum))
    problems.push_back(
        {fmt::format("the framework 'deep' needs an initial loss scale of 2, 4, 8 ... and a whole minimum, but "
                     "loss_scale has {} and {}",
                     scale.initial, scale.minimum),
         "", "change loss_scale.initial or loss_scale.minimum"});
  throw_if_any(std::move(problems));
}

}  // namespace

std::optional<Installation> find_deep(const Checkout&) { return find_python_framework(k_deep); }

TrainProgram plan_deep(const LaunchRequest& request) {
  const TrainSpec& spec = request.spec;
  require_possible_numbers(spec);
  TrainProgram program = plan_python_framework(k_deep, request);
  if (request.platform == Platform::cpu) program.environment["DS_ACCELERATOR"] = "cpu";  // also where a GPU is
  if (spec.precision != Precision::fp32 && spec.parallel.data > 1 && spec.parallel.zero_stage == 0)
    program.deviations.push_back({"zero_stage", "0", "1"});  // only then are short gradients added up in fp32
  return program;
}

}  // namespace tprimat::suite
