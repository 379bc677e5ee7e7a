#pragma once

#include <string>
#include <string_view>

#include "text/json.h"

namespace tprimat {

// Prints an object as print_json() does. Its members come one by one, so that those of a large one need not exist at
// once.
class JsonObjectPrinter {
 public:
  void add(std::string_view key, const Json& value);
  std::string finish() &&;

 private:
  std::string text_ = "{";
};

}  // namespace tprimat
