#include "launch/dry_run.h"

#include <filesystem>
#include <set>

#include "text/format.h"

namespace tprimat {
namespace {

namespace fs = std::filesystem;

// A word that no line of the content is.
std::string end_marker(const std::string& content) {
  std::string marker = "END_OF_FILE";
  while (("\n" + content + "\n").find("\n" + marker + "\n") != std::string::npos) marker += "_";
  return marker;
}

std::string render_file(const GeneratedFile& file) {
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

std::string render_shell(const LaunchPlan& plan) {
  std::string text = render_folders(plan);
  for (const GeneratedFile& file : plan.files) text += render_file(file);
  for (const Deviation& each : plan.deviations)
    text += "# deviates: " + each.key + ": " + each.asked + " becomes " + each.effective + "\n";
  text += "cd " + quote_shell(plan.working_directory) + " &&\n";
  for (const auto& [name, value] : plan.environment) text += name + "=" + quote_shell(value) + " ";
  for (const std::string& word : plan.command) text += quote_shell(word) + " ";
  text += "> " + quote_shell(plan.log_path) + " 2>&1\n";
  if (plan.cleanup_command.empty()) return text;
  text += "# to end it early:";
  for (const std::string& word : plan.cleanup_command) text += " " + quote_shell(word);
  return text + "\n";
}

}  // namespace tprimat
