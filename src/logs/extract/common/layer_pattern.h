#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace tprimat::logs {

// A list with one entry per layer, as frameworks print it or take it from a command line: "[0, 1, 1]",
// "([0]*3+[1]*58)", "'[0]*1+[1]*26'". Nothing for a list that is cut, too long, or of anything but 0 and 1.
std::optional<std::vector<bool>> parse_layer_pattern(std::string_view text);

// The words of a printed list: "['full_attention', \"sliding_attention\"]". Nothing for a list that is cut.
std::optional<std::vector<std::string_view>> parse_word_list(std::string_view text);

}  // namespace tprimat::logs
