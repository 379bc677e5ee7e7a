#include "launch/fsdp.h"

#include "launch/python_framework.h"

namespace tprimat::suite {
namespace {

const PythonFramework k_fsdp = {.id = Framework::fsdp,
                                .package = "torch",
                                .script = "train_fsdp.py",
                                .always_torchrun = true,
                                .precisions = {Precision::fp32, Precision::bf16, Precision::fp16},
                                .precisions_of_gpus = {},
                                .zero_stages = {0, 2, 3}};

}  // namespace

std::optional<Installation> find_fsdp(const Checkout&) { return find_python_framework(k_fsdp); }

TrainProgram plan_fsdp(const LaunchRequest& request) {
  TrainProgram program = plan_python_framework(k_fsdp, request);
  if (request.spec.parallel.data > 1 && request.spec.parallel.zero_stage == 0)
    program.deviations.push_back({"zero_stage", "0", "3"});  // sharing is what it is for
  return program;
}

}  // namespace tprimat::suite
