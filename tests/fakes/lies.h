// What the fake GPU libraries lie about: words in FAKE_GPU_LIES, separated by commas, asked for at every call. Beside
// them: FAKE_GPU_COUNT, how many devices there are, FAKE_GPU_NAME, what they are called, and FAKE_GPU_MEMORY, their
// bytes.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

namespace fake {
namespace {  // a library each

// The number behind "word=" or 1 for "word" alone; 0 where the word is not there.
long lie(std::string_view word) {
  const char* text = std::getenv("FAKE_GPU_LIES");
  std::string_view rest = text != nullptr ? text : "";
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    const std::string_view entry = rest.substr(0, comma);
    if (entry == word) return 1;
    if (entry.starts_with(word) && entry.substr(word.size()).starts_with("="))
      return std::strtol(std::string(entry.substr(word.size() + 1)).c_str(), nullptr, 10);
    rest.remove_prefix(comma == std::string_view::npos ? rest.size() : comma + 1);
  }
  return 0;
}

uint32_t device_count(uint32_t usual) {
  if (lie("no_devices") != 0) return 0;
  if (lie("count_absurd") != 0) return 0xfffffff0U;
  const char* text = std::getenv("FAKE_GPU_COUNT");
  return text != nullptr ? static_cast<uint32_t>(std::strtoul(text, nullptr, 10)) : usual;
}

const char* device_name(const char* usual) {
  const char* text = std::getenv("FAKE_GPU_NAME");
  return text != nullptr ? text : usual;
}

uint64_t device_memory(uint64_t usual) {
  const char* text = std::getenv("FAKE_GPU_MEMORY");
  return text != nullptr ? std::strtoull(text, nullptr, 10) : usual;
}

// What has happened since the library was started.
auto start = std::chrono::steady_clock::now();
long power_readings = 0;
void restart() {
  start = std::chrono::steady_clock::now();
  power_readings = 0;
}
double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); }

// "all_lost": every device; "lost=2": the second; "lost_after=N": every device after N readings of power.
bool is_lost(int number) {
  const long after = lie("lost_after");
  return lie("all_lost") != 0 || lie("lost") == number || (after > 0 && power_readings > after);
}

// Joules of a counter that stood at `origin` at the start and counts `watts` since, unless it lies.
[[maybe_unused]] double joules(double origin, double watts) {
  const double used = watts * seconds();
  if (lie("energy_frozen") != 0) return origin;
  if (lie("energy_backwards") != 0) return origin - used;
  if (lie("energy_wraps") != 0) return used < 0.3 * watts ? origin + used : used - 0.3 * watts;
  return origin + used;
}

}  // namespace
}  // namespace fake
