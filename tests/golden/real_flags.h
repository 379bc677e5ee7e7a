#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

// Flags that the real programs accept, from the tables in launch/.
namespace tprimat {

struct FlagFact {
  std::string values;  // "0", "1", "+"
  std::vector<std::string> choices;
};

inline std::vector<std::string> split_text(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, at);) parts.push_back(part);
  return parts;
}

inline std::map<std::string, FlagFact> read_flags(const std::string& name) {
  std::map<std::string, FlagFact> flags;
  std::ifstream file(std::filesystem::path(TPRIMAT_GOLDEN_DIR) / "launch" / name);
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    const std::vector<std::string> cells = split_text(line, '\t');
    flags[cells.at(0)] = {cells.at(1), split_text(cells.size() > 2 ? cells[2] : "", ',')};
  }
  return flags;
}

inline std::string complaint_about(const std::vector<std::string>& values, const FlagFact& fact) {
  if (fact.values == "0" && !values.empty()) return "takes no value";
  if (fact.values == "1" && values.size() != 1) return "takes one value";
  if (fact.values == "+" && values.empty()) return "takes values";
  if (fact.choices.empty()) return "";
  const bool possible = std::find(fact.choices.begin(), fact.choices.end(), values.at(0)) != fact.choices.end();
  return possible ? "" : "cannot be " + values.at(0);
}

inline void expect_accepted(const std::vector<std::string>& command, const std::map<std::string, FlagFact>& flags) {
  auto word = std::find_if(command.begin(), command.end(),
                           [](const std::string& each) { return each.ends_with("pretrain_gpt.py"); });
  ASSERT_NE(word, command.end());
  for (++word; word != command.end();) {
    const std::string flag = *word++;
    std::vector<std::string> values;
    while (word != command.end() && !word->starts_with("--")) values.push_back(*word++);
    const auto fact = flags.find(flag);
    if (fact == flags.end())
      ADD_FAILURE() << flag << " is not known to the program";
    else
      EXPECT_EQ(complaint_about(values, fact->second), "") << flag;
  }
}

}  // namespace tprimat
