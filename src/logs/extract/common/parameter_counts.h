#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "extract/log_builder.h"

namespace tprimat::logs {

// Total and trainable parameters of a model, as several tools print them: PEFT ("trainable params: 6 || all params: 60
// || trainable%: .."), Lightning's and torchinfo's tables, LitGPT, NeMo, Hugging Face, Unsloth.
class ParameterCounts {
 public:
  void read(std::string_view text);
  void finish(LogBuilder& log) const;  // fills facts that are not known yet

 private:
  struct Count {
    int64_t value = 0;
    bool rounded = false;
    bool in_table = false;  // where a rank counts its own part
  };
  static std::optional<Count> count_at(std::string_view text, size_t label);

  std::optional<Count> trainable_, frozen_, all_;
};

}  // namespace tprimat::logs
