#include "result/setting_words.h"

#include "text/characters.h"

namespace tprimat {

std::string without_capitals(std::string text) {
  for (char& c : text) c = is_upper(c) ? static_cast<char>(c + 32) : c;
  return text;
}

bool is_off(std::string_view value) {
  const std::string word = without_capitals(std::string(value));
  for (const std::string_view off : {"", "none", "null", "false", "no", "off", "[]", "{}"})
    if (word == off) return true;
  return word.front() == '0' && word.find_first_not_of("0.") == std::string::npos;
}

}  // namespace tprimat
