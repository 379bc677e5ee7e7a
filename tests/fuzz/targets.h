#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tprimat {

// One reader of foreign bytes. Whatever they are, it must return, or throw Error with a sentence.
struct FuzzTarget {
  std::string name;    // "log", "log:megatron", "gzip", "workbook", ...
  std::string corpus;  // folder below the project with files to start from; empty: none
  void (*read)(std::string_view bytes, const std::string& format);
  std::string format;  // handed to `read`
};

std::span<const FuzzTarget> fuzz_targets();
const FuzzTarget* find_fuzz_target(std::string_view name);  // null for an unknown name

// Runs the target on the bytes and swallows its Error. Ends the program where a figure is impossible.
void run_fuzz_target(const FuzzTarget& target, std::string_view bytes);

}  // namespace tprimat
