#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tprimat::results {

// Lines of at most `width` code points, broken at blanks; a longer word is cut. No line but the first begins with a
// colon (and one is longer for it): a runner of continuous integration takes "::error::" there for a command.
std::vector<std::string> wrap_words(std::string_view text, size_t width);

// At most `width` code points; what is cut off shows as an ellipsis.
std::string shorten(std::string_view text, size_t width);

}  // namespace tprimat::results
