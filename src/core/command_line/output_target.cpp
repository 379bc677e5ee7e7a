#include "command_line/output_target.h"

#include <fmt/format.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/output.h"
#include "base/printable.h"
#include "command_line/session.h"

namespace tprimat {

void write_output(const std::string& output, std::string_view content) {
  if (names_stdout(output))
    write_stdout(content);
  else
    write_file_atomically(output, content);
}

void copy_to_stdout(const std::string& file) {
  const MappedFile bytes(file);
  const std::string_view text(reinterpret_cast<const char*>(bytes.bytes().data()), bytes.bytes().size());
  constexpr size_t k_piece = size_t{1} << 20;
  for (size_t at = 0; at < text.size(); at += k_piece) {
    write_stdout(text.substr(at, k_piece));
    if (flush_stdout() != nullptr) return;  // the session reports it
  }
}

void print_beside_output(std::string_view text, bool stdout_is_taken) {
  if (!stdout_is_taken)
    print_result(text);
  else if (log_settings().level != LogLevel::quiet)
    write_stderr(printable(text, "\n\t"));
}

Check folder_output(const std::string& content) {
  return [content](std::string& text) -> std::string {
    if (!names_stdout(text)) return "";
    return fmt::format("{} cannot go to standard output: name a folder, or ./- for one of this name", content);
  };
}

void refuse_binary_on_terminal(const std::string& output, const char* option, std::string_view content) {
  if (!names_stdout(output) || ::isatty(STDOUT_FILENO) == 0) return;
  throw Error(Problem{fmt::format("{} cannot be printed on a terminal", content), option,
                      "pipe it into another program, or name a file"});
}

void require_one_on_stdout(const std::vector<StdoutClaim>& claims) {
  const StdoutClaim* first = nullptr;
  for (const StdoutClaim& claim : claims) {
    if (!claim.claims) continue;
    if (first != nullptr)
      throw Error(Problem{fmt::format("{} and {} both print on standard output", first->option, claim.option),
                          claim.option, "name a file for one of them"});
    first = &claim;
  }
}

}  // namespace tprimat
