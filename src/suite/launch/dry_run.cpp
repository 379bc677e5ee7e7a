#include "launch/dry_run.h"

#include <filesystem>
#include <set>

#include "text/format.h"

namespace tprimat::suite {
namespace {

namespace fs = std::filesystem;

// A word that no line of the content is.
std::string end_marker(const std::string& content) {
  std::string marker = "END_OF_FILE";
  while (("\n" + content + "\n").find("\n" + marker + "\n") != std::string::npos) marker += "_";
  return marker;
}

// At the start of a command, a shell reads NAME=... as an assignment.
std::string quote_first(const std::string& word) {
  const std::string quoted = quote_shell(word);
  return quoted == word && word.find('=') != std::string::npos ? "'" + word + "'" : quoted;
}

// Unprintable characters become octal escapes of printf.
std::string render_file(const GeneratedFile& file) {
  if (printable(file.content, "\n\t") != file.content)
    return "printf '%s' " + quote_shell(file.content) + " > " + quote_shell(file.path) + "\n";
  const std::string marker = end_marker(file.content);
  const std::string line_end = file.content.ends_with('\n') ? "" : "\n";
  return "cat > " + quote_shell(file.path) + " <<'" + marker + "'\n" + file.content + line_end + marker + "\n";
}

std::string render_folders(const LaunchPlan& plan) {
  std::set<std::string> folders = {fs::path(plan.log_path).parent_path(), fs::path(plan.steps_path).parent_path()};
  for (const GeneratedFile& file : plan.files) folders.insert(fs::path(file.path).parent_path());
  std::string text = "mkdir -p";
  for (const std::string& folder : folders)
    if (!folder.empty()) text += " " + quote_shell(folder);
  return text + "\n";
}

}  // namespace

std::string render_comment(const std::string& text) { return "# " + printable(text) + "\n"; }

std::string render_shell(const LaunchPlan& plan) {
  std::string text = render_folders(plan);
  for (const GeneratedFile& file : plan.files) text += render_file(file);
  for (const Deviation& each : plan.deviations)
    text += render_comment("deviates: " + each.key + ": " + each.asked + " becomes " + each.effective);
  text += "cd " + quote_shell(plan.working_directory) + " &&\n";
  for (const auto& [name, value] : plan.environment) text += name + "=" + quote_shell(value) + " ";
  for (const std::string& word : plan.command)
    text += (&word == &plan.command.front() ? quote_first(word) : quote_shell(word)) + " ";
  text += "> " + quote_shell(plan.log_path) + " 2>&1\n";
  if (plan.cleanup_command.empty()) return text;
  std::string ending = "to end it early:";
  for (const std::string& word : plan.cleanup_command) ending += " " + quote_shell(word);
  return text + render_comment(ending);
}

}  // namespace tprimat::suite
