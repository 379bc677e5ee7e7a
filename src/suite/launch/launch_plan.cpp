#include "launch/launch_plan.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <set>

#include "text/format.h"

namespace tprimat::suite {
namespace {

using Variables = std::map<std::string, std::string>;

template <class Value>
void put_stated(Variables& variables, const std::string& name, const std::optional<Value>& value) {
  if (value) variables[name] = fmt::format("{}", *value);
}

void put_stated(Variables& variables, const std::string& name, const std::optional<bool>& value) {
  if (value) variables[name] = *value ? "1" : "0";
}

// Newer versions of PyTorch read PYTORCH_ALLOC_CONF first, and on ROCm all read PYTORCH_CUDA_ALLOC_CONF before
// PYTORCH_HIP_ALLOC_CONF: where the caller exports one of these, it gets the configuration's value, too.
void put_allocator(Variables& variables, const char* own, const std::optional<std::string>& value) {
  put_stated(variables, own, value);
  for (const char* name : {"PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"})
    if (value && std::getenv(name) != nullptr) variables[name] = *value;
}

void add_nvidia(Variables& variables, const PlatformSettings& settings) {
  put_stated(variables, "CUDA_VISIBLE_DEVICES", settings.visible_devices);
  put_allocator(variables, "PYTORCH_CUDA_ALLOC_CONF", settings.cuda_alloc_conf);
}

void add_amd(Variables& variables, const PlatformSettings& settings) {
  put_stated(variables, "HIP_VISIBLE_DEVICES", settings.visible_devices);
  put_allocator(variables, "PYTORCH_HIP_ALLOC_CONF", settings.cuda_alloc_conf);
  put_stated(variables, "HSA_NO_SCRATCH_RECLAIM", settings.hsa_no_scratch_reclaim);
  put_stated(variables, "HSA_ENABLE_SDMA", settings.hsa_enable_sdma);
}

void add_gpu(Variables& variables, const PlatformSettings& settings) {
  variables["NCCL_DEBUG"] = settings.nccl_debug.value_or("WARN");  // says why a collective failed, and no more
  put_stated(variables, "CUDA_DEVICE_MAX_CONNECTIONS", settings.cuda_device_max_connections);
  put_stated(variables, "NVTE_FLASH_ATTN", settings.flash_attention);  // Transformer Engine
}

namespace fs = std::filesystem;

// A here-document marker that is not a line of the content.
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

std::string render_folders(const LaunchPlan& plan) {
  std::set<std::string> folders = {fs::path(plan.log_path).parent_path(), fs::path(plan.steps_path).parent_path()};
  for (const GeneratedFile& file : plan.files) folders.insert(fs::path(file.path).parent_path());
  std::string text = "mkdir -p";
  for (const std::string& folder : folders)
    if (!folder.empty()) text += " " + quote_shell(folder);
  return text + "\n";
}

}  // namespace

Variables platform_environment(const LaunchRequest& request) {
  Variables variables;
  if (request.platform == Platform::cpu)
    variables = {{"CUDA_VISIBLE_DEVICES", ""}, {"HIP_VISIBLE_DEVICES", ""}};
  else
    add_gpu(variables, request.settings);
  if (request.platform == Platform::nvd) add_nvidia(variables, request.settings);
  if (request.platform == Platform::amd) add_amd(variables, request.settings);
  for (const auto& [name, value] : request.settings.environment) variables[name] = value;
  return variables;
}

std::string render_comment(const std::string& text) { return "# " + printable(text) + "\n"; }

std::string describe_deviation(const Deviation& deviation) {
  return deviation.key + ": " + deviation.asked + " becomes " + deviation.effective +
         (deviation.reason.empty() ? "" : ", because " + deviation.reason);
}

std::string render_written_file(const GeneratedFile& file) {
  // Unprintable characters become octal escapes.
  if (printable(file.content, "\n\t") != file.content)
    return "printf '%s' " + quote_shell(file.content) + " > " + quote_shell(file.path) + "\n";
  const std::string marker = end_marker(file.content);
  const std::string line_end = file.content.ends_with('\n') ? "" : "\n";
  return "cat > " + quote_shell(file.path) + " <<'" + marker + "'\n" + file.content + line_end + marker + "\n";
}

std::string render_shell(const LaunchPlan& plan) {
  std::string text = render_folders(plan);
  for (const GeneratedFile& file : plan.files) {
    text += render_written_file(file);
    if (file.executable) text += "chmod +x " + quote_shell(file.path) + "\n";
  }
  return text + render_command(plan);
}

std::string render_command(const LaunchPlan& plan) {
  std::string text = "cd " + quote_shell(plan.working_directory) + " &&\n";
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
