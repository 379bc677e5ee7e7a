#include "launch/deep.h"

#include "base/error.h"
#include "launch/python_framework.h"

namespace tprimat {
namespace {

const PythonFramework k_deep = {.id = Framework::deep,
                                .package = "deepspeed",
                                .script = "train_deep.py",
                                .always_torchrun = true,
                                .precisions = {Precision::fp32, Precision::bf16},
                                .zero_stages = {0, 1, 2, 3},
                                .selective_recompute = false};

}  // namespace

std::optional<Installation> find_deep(const Checkout&) { return find_python_framework(k_deep); }

TrainProgram plan_deep(const LaunchRequest& request) {
  const TrainSpec& spec = request.spec;
  if (spec.precision == Precision::bf16 && spec.parallel.data > 1 && spec.parallel.zero_stage == 0)
    throw Error(Problem{"the framework 'deep' adds up bf16 gradients in fp32 only with ZeRO", "",
                        "give the layout a zero_stage of 1, 2 or 3, or train in fp32"});
  TrainProgram program = plan_python_framework(k_deep, request);
  if (request.platform == Platform::cpu) program.environment["DS_ACCELERATOR"] = "cpu";  // also where a GPU is
  return program;
}

}  // namespace tprimat
