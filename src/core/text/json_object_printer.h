#pragma once

#include <span>
#include <string>
#include <string_view>

#include "text/json.h"

namespace tprimat {

// Prints an object as print_json() does. Its members come one by one, so that those of a large one need not exist at
// once.
class JsonObjectPrinter {
 public:
  explicit JsonObjectPrinter(size_t expected_bytes = 0) { text_.reserve(expected_bytes); }
  void add(std::string_view key, const Json& value);
  void add(std::string_view key, std::span<const double> series);  // a figure that is not finite is null
  // What is added between them belongs to this member.
  void open(std::string_view key);
  void close();
  std::string finish() &&;

 private:
  void add_key(std::string_view key);

  std::string text_ = "{";
  int depth_ = 1;
};

}  // namespace tprimat
