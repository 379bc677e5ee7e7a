#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "command_line/options.h"

namespace tprimat {

// Where an option that names a file to write may say `-`: standard output.
inline constexpr const char* k_stdout_name = "-";
inline bool names_stdout(const std::string& output) { return output == k_stdout_name; }

// Writes the file, whole or not at all, or standard output. The bytes are not changed.
void write_output(const std::string& output, std::string_view content);

// The bytes of a file that was written elsewhere, onto standard output.
void copy_to_stdout(const std::string& file);

// The report beside such an output: on standard output, or on stderr where that holds the output.
void print_beside_output(std::string_view text, bool stdout_is_taken);

// For an option that names a folder, or several files: refuses `-`. `content` is what would be written: "results and
// logs".
Check folder_output(const std::string& content);

// Throws Error where `output` is `-`, standard output is a terminal and the content is not text.
void refuse_binary_on_terminal(const std::string& output, const char* option, std::string_view content);

// An option that was given and whose output goes to standard output.
struct StdoutClaim {
  const char* option;
  bool claims = false;
};
// Throws Error where two options claim standard output.
void require_one_on_stdout(const std::vector<StdoutClaim>& claims);

}  // namespace tprimat
