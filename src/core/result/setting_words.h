#pragma once

#include <string>
#include <string_view>

// Words with which frameworks print settings.
namespace tprimat {

std::string without_capitals(std::string text);

// What is printed for a setting that is not there or does nothing: "", "0.0", "None", "False", "off", "[]" and the
// like.
bool is_off(std::string_view value);

}  // namespace tprimat
