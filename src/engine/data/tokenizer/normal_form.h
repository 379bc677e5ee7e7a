#pragma once

#include <string>
#include <string_view>

namespace tprimat::engine {

// False only when the text may differ from its normal form C; quick.
bool is_surely_composed(std::string_view text);

// Unicode's normal form C (Standard Annex 15) of valid UTF-8.
std::string compose_text(std::string_view text);

}  // namespace tprimat::engine
