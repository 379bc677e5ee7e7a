#pragma once

#include <string>

#include "spec/train_spec.h"

// Files that a training reads are looked for before the start; the trainer checks what they hold. Both throw Error.
namespace tprimat::suite {

// `where` names what made the choice.
void require_dataset(const DataSpec& data, const std::string& where);

void require_initial_weights(const std::string& folder, const std::string& model);

}  // namespace tprimat::suite
