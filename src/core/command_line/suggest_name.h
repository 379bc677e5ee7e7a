#pragma once

#include <string>
#include <vector>

namespace tprimat {

// "did you mean '--output'?", or "" where nothing is near. Names that begin with the word come first, then the nearest
// by edit distance, then one that the word begins or that it ends: --out, --ouput, --output-dir and --batch-size.
std::string suggest_name(const std::string& word, const std::vector<std::string>& names);

}  // namespace tprimat
