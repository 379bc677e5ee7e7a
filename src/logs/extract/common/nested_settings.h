#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tprimat::logs {

inline constexpr size_t k_longest_key = 200, k_longest_value = 400;  // of a setting, in bytes; more is cut
inline constexpr size_t k_longest_list = 4000;                       // of one with an entry per layer

struct Setting {
  std::string key, value;
};

// Reads JSON or a printed Python dict, in one line or over many: {"a": {"b": 1}} gives "a.b" = "1". Lists stay as they
// are written. Anything else ends it.
class NestedSettings {
 public:
  void open();  // before the first "{"
  bool is_open() const { return open_; }
  void read(std::string_view text);  // one line; cleared: what it found
  std::vector<Setting> take() { return std::move(found_); }

 private:
  struct Level {
    std::string key;  // with those of the levels around it
  };
  void read_char(char c);
  void read_in_string(char c);
  void begin_level();
  void end_value();
  void end_level();
  void append(char c);

  bool open_ = false, after_key_ = false, escaped_ = false;
  char quote_ = 0;  // of the string that we are in
  int list_depth_ = 0;
  size_t characters_ = 0;
  std::vector<Level> levels_;
  std::string key_, value_;
  std::vector<Setting> found_;
};

std::string_view without_quotes(std::string_view text);  // nor blanks around them

// "TrainingArguments(output_dir=output, learning_rate=5e-05, debug=[], ...)": the pairs in the brackets. `text` starts
// after "(". Values keep their brackets and lose their quotes.
std::vector<Setting> read_call_arguments(std::string_view text);

// Follows plain YAML as a log shows it, one line each: "model:", then "  optim:", then "    lr: 0.1" gives
// "model.optim.lr" = "0.1", and "- 0", "- 1" under a key "[0, 1]". Lists of anything but scalars are left out. The
// first line that is not YAML ends it.
class YamlBlock {
 public:
  void open();
  bool is_open() const { return open_; }
  std::vector<Setting> read(std::string_view text);

 private:
  struct Level {
    size_t indent = 0;
    std::string key;
  };
  void read_item(std::string_view item);
  void end_list(std::vector<Setting>& found);
  std::optional<Setting> read_entry(std::string_view text);
  std::string list_;  // "[0, 1", of the last level; empty: none
  bool has_plain_items_ = true;
  bool open_ = false, began_ = false;
  int lines_ = 0;
  std::vector<Level> levels_;
};

}  // namespace tprimat::logs
