#include "launch/deep.h"

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

std::optional<Installation> find_deep() { return find_python_framework(k_deep); }

LaunchPlan plan_deep(const LaunchRequest& request) {
  LaunchPlan plan = plan_python_framework(k_deep, request);
  if (request.platform == Platform::cpu) plan.environment["DS_ACCELERATOR"] = "cpu";  // also where a GPU is
  return plan;
}

}  // namespace tprimat
