#pragma once

#include <string>
#include <vector>

#include "text/json.h"

namespace tprimat {

// The output of one form of a command with --json, and its schema: schema/<name>.schema.json.
struct Document {
  std::string name;     // "plan_validation"
  std::string command;  // "tprimat plan --validate TABLE --json"
  Json schema;
};
std::vector<Document> documents();

}  // namespace tprimat
