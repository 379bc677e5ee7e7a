#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tprimat {

// Lines of at most `width` code points, broken at blanks; a longer word is cut.
std::vector<std::string> wrap_words(std::string_view text, size_t width);

// At most `width` code points; what is cut off shows as an ellipsis.
std::string shorten(std::string_view text, size_t width);

}  // namespace tprimat
