#pragma once

#include <string>

#include "extract/stated_facts.h"
#include "result/run_result.h"

namespace tprimat::logs {

// Fills in the model of a log: name, shape, parameters and trainable parameters. Its devices and layout are there.
// `known` is the name given by the user,
// or empty. Throws Error where sizes in the log contradict it. Where they contradict a name in the log itself, the
// result gets no shape and a warning.
void settle_model(RunResult& result, const StatedFacts& stated, const std::string& known);

}  // namespace tprimat::logs
