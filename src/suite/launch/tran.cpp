#include "launch/tran.h"

#include "launch/python_framework.h"

namespace tprimat::suite {
namespace {

const PythonFramework k_tran = {.id = Framework::tran,
                                .package = "transformers",
                                .script = "train_tran.py",
                                .always_torchrun = false,
                                .precisions = {Precision::fp32, Precision::bf16},
                                .precisions_of_gpus = {Precision::fp16},
                                .zero_stages = {0}};

}  // namespace

std::optional<Installation> find_tran(const Checkout&) { return find_python_framework(k_tran); }
TrainProgram plan_tran(const LaunchRequest& request) { return plan_python_framework(k_tran, request); }

}  // namespace tprimat::suite
