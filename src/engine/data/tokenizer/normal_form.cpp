#include "data/tokenizer/normal_form.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "base/check.h"

namespace tprimat::engine {

// Below U+0300, whose first byte is 0xcc, every code point is its own normal form, and none composes with the one
// before it.
bool is_surely_composed(std::string_view text) {
  return std::none_of(text.begin(), text.end(), [](char byte) { return static_cast<unsigned char>(byte) >= 0xcc; });
}

std::string compose_text(std::string_view text) {
  utf8proc_uint8_t* composed = nullptr;
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
  const auto size = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                 static_cast<utf8proc_ssize_t>(text.size()), &composed, options);
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(composed, &std::free);
  CHECK(size >= 0);  // only for text that is not UTF-8, or without memory
  return {reinterpret_cast<const char*>(composed), static_cast<size_t>(size)};
}

}  // namespace tprimat::engine
