#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "extract/common/nested_settings.h"

namespace tprimat::logs {

// Follows plain YAML as a log shows it, one line each: "model:", then "  optim:", then "    lr: 0.1" gives
// "model.optim.lr" = "0.1". Lists are left out. The first line that is no YAML ends it.
class YamlBlock {
 public:
  void open();
  bool is_open() const { return open_; }
  std::optional<Setting> read(std::string_view text);

 private:
  struct Level {
    size_t indent = 0;
    std::string key;
  };
  bool open_ = false, began_ = false;
  int lines_ = 0;
  std::vector<Level> levels_;
};

}  // namespace tprimat::logs
