#pragma once

#include <string_view>
#include <vector>

#include "extract/log_builder.h"
#include "extract/log_line.h"

// What the Hugging Face Trainer says before it trains: its arguments, and the sums of "***** Running training *****".
namespace tprimat::logs {

std::vector<std::string_view> hf_setting_anchors();

class HfSettingsReader {
 public:
  // Reads the line when it is one of those. True: what the line began goes on, so the next one has to be read as well.
  bool read_line(const LogLine& line, LogBuilder& log);

  bool inside_arguments() const { return inside_; }
  int64_t starts() const { return starts_; }                               // "***** Running training *****" lines
  std::optional<int64_t> logging_steps() const { return logging_steps_; }  // as the arguments say
  bool logs_first_step() const { return logs_first_step_; }

 private:
  bool read_arguments(std::string_view text, LogBuilder& log);
  void add_argument(std::string_view item, LogBuilder& log);

  bool inside_ = false;
  int depth_ = 0;
  int lines_ = 0;
  int64_t starts_ = 0;
  std::optional<int64_t> logging_steps_;
  bool logs_first_step_ = false;
};

}  // namespace tprimat::logs
