#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <string>

namespace tprimat {

// Unlike CLI::Range it refuses what is no number, and prints its bounds as people write them.
inline CLI::Validator number_from(double low, double high) {
  return CLI::Validator(
      [low, high](std::string& text) -> std::string {
        double value = 0;
        const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        const bool is_number = error == std::errc() && stop == text.data() + text.size();
        if (is_number && value >= low && value <= high) return "";
        return fmt::format("'{}' is no number from {} to {}", text.substr(0, 64), low, high);
      },
      "");
}

}  // namespace tprimat
