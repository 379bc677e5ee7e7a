#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compare/comparison.h"

// Two versions of one framework on one device: they differ in the label of their installation or in their version.
namespace tprimat::results {

// "mega@a", "mega@0.16.1", "mega": by the label, else by the version.
std::string version_name(const RunResult& run);

// What differs; empty for runs that are not two versions of one framework on one platform and device.
Evidences find_versions(const RunResult& reference, const RunResult& subject);

// The framework's version; nothing where it is not known.
std::optional<std::string> framework_version_of(const RunResult& run);

// Labels participants of which the comparison has several versions by these, with the platform where it has several.
void label_versions(std::vector<Contender>& contenders);

// "; two versions of Megatron-LM, not two platforms: a step takes 421.0 ms with mega@a and 627.0 ms with mega@b". Empty
// for another pair.
std::string state_versions(const ModelGroup& group, const Pair& pair);

}  // namespace tprimat::results
