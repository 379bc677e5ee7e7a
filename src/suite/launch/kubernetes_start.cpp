#include "launch/kubernetes_start.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "launch/argument_list.h"
#include "launch/mounted_program.h"
#include "spec/kubernetes_values.h"
#include "text/format.h"

namespace tprimat::suite {
namespace embedded {
extern const std::string_view kubernetes_start_sh, kubernetes_follow_sh;
}
namespace {

const LaunchRequest& request_of(const KubernetesRun& run) { return run.placement.request; }

// NAME='value' lines, as a script takes them.
class Header {
 public:
  explicit Header(const char* purpose) : text_(fmt::format("#!/bin/sh\n# {}\n", purpose)) {}
  Header& set(const char* name, const std::string& value) {
    text_ += fmt::format("{}={}\n", name, value.empty() ? "" : quote_shell(value));
    return *this;
  }
  Header& set(const char* name, int64_t value) { return set(name, std::to_string(value)); }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

std::string start_name(RankStart start) {
  switch (start) {
    case RankStart::mpi: return "ranks";
    case RankStart::torchrun: return "torchrun";
    case RankStart::alone:
    case RankStart::per_node: break;
  }
  return "program";
}

// What the image must have.
std::string own_program_of(const KubernetesRun& run) {
  const std::string own = program_in_container(request_of(run));
  const auto& words = run.placement.program.arguments;
  const bool is_used = std::ranges::find(words, own) != words.end() ||
                       std::ranges::any_of(run.plan.environment, [&](const auto& each) { return each.second == own; });
  return is_used ? own : "";
}

// The folder in which this program was started means nothing in a pod, unless a volume has it.
std::string directory_of(const KubernetesRun& run) {
  const std::string& directory = run.plan.working_directory;
  if (directory != request_of(run).paths.working_directory) return directory;
  for (const std::string& text : request_of(run).launch.kubernetes.volumes)
    if (is_in_folder(directory, parse_kubernetes_volume(text).value().path)) return directory;
  return request_of(run).paths.folder;
}

// "003.train_fsdp.py"
std::string key_of(const GeneratedFile& file, size_t number) {
  std::string name = std::filesystem::path(file.path).filename();
  for (char& c : name)
    if (!is_variable_name(std::string("a") + c) && c != '.' && c != '-') c = '_';
  return fmt::format("{:03}.{}", number, name);
}

void require_text(const GeneratedFile& file) {
  if (printable(file.content, "\n\t\r") == file.content) return;
  throw Error(Problem{fmt::format("a ConfigMap cannot hold '{}': it is not plain text", printable(file.path)),
                      "launch.launcher", "use another --output or another launcher"});
}

std::string render_start_script(const KubernetesRun& run, const std::string& copies) {
  const LaunchRequest& request = request_of(run);
  const Placement& placement = run.placement;
  const std::string& stated = request.launch.master_address;
  const bool prints = !run.shares_folder() && !run.plan.steps_path.empty();
  Header header("Starts the ranks of one pod: writes the files of the run, then runs its arguments.");
  header.set("folder", request.paths.folder)
      .set("directory", directory_of(run))
      .set("nodes", placement.nodes)
      .set("ranks", placement.ranks_per_node())
      .set("start", start_name(placement.program.start))
      .set("python", placement.program.start == RankStart::torchrun ? placement.program.python : "")
      .set("program", own_program_of(run))
      .set("records", prints ? run.plan.steps_path : "")
      .set("first", stated.empty() ? (placement.nodes > 1 ? first_pod_of(run) : "localhost") : stated)
      .set("port", request.launch.master_port)
      .set("run", run.name);
  std::string text = header.take();
  text += "write_files() {\n" + (copies.empty() ? "  :\n" : copies) + "}\n";
  return text + std::string(embedded::kubernetes_start_sh);
}

Arguments kubectl(const KubernetesRun& run) {
  const KubernetesSettings& settings = request_of(run).launch.kubernetes;
  Arguments words = {"kubectl"};
  if (!settings.context.empty()) words.push_back("--context=" + settings.context);
  if (!settings.namespace_name.empty()) words.push_back("--namespace=" + settings.namespace_name);
  return words;
}

std::string kubectl_command(const KubernetesRun& run, const Arguments& more) {
  Arguments words = kubectl(run);
  append(words, more);
  return quote_command(words);
}

std::string pods_of(const KubernetesRun& run) { return "jobset.sigs.k8s.io/jobset-name=" + run.name; }

}  // namespace

std::string manifest_path(const KubernetesRun& run) { return request_of(run).paths.folder + "/jobset.yaml"; }

std::vector<std::pair<std::string, std::string>> list_pod_files(const KubernetesRun& run) {
  std::vector<std::pair<std::string, std::string>> files;
  std::string copies;
  for (const GeneratedFile& file : run.plan.files) {
    require_text(file);
    const std::string key = key_of(file, files.size() + 1);
    copies += fmt::format("  write {} {}{}\n", key, quote_shell(file.path), file.executable ? " +x" : "");
    files.emplace_back(key, file.content);
  }
  files.insert(files.begin(), {std::string(k_pod_script), render_start_script(run, copies)});
  return files;
}

std::string render_follow_script(const KubernetesRun& run) {
  Header header("Creates the JobSet, shows the output of its pods as it comes, collects their logs and deletes it.");
  const bool prints = !run.shares_folder() && !run.plan.steps_path.empty();
  header.set("folder", request_of(run).paths.folder)
      .set("name", run.name)
      .set("nodes", run.placement.nodes)
      .set("records", prints ? run.plan.steps_path : "")
      .set("shared", run.shares_folder() ? "yes" : "")
      .set("pending", request_of(run).launch.kubernetes.pending_seconds);
  return header.take() + "kube() { " + quote_command(kubectl(run)) + " \"$@\"; }\n" +
         std::string(embedded::kubernetes_follow_sh);
}

std::string render_delete_script(const KubernetesRun& run) {
  return "#!/bin/sh\n# Deletes the objects of this run that still exist, with their pods.\nexec " +
         kubectl_command(run, {"delete", "--filename", manifest_path(run), "--ignore-not-found", "--cascade=foreground",
                               "--timeout=50s"}) +
         "\n";
}

std::string render_by_hand(const KubernetesRun& run, const std::string& objects) {
  const std::string path = manifest_path(run), pods = pods_of(run);
  std::string text = "mkdir -p " + quote_shell(request_of(run).paths.folder) + "\n";
  text += render_written_file({path, objects});
  text += kubectl_command(run, {"create", "--filename", path}) + "\n";
  text += "until " + kubectl_command(run, {"get", "pods", "--selector", pods, "--output=name"}) +
          " | grep -q pod; do sleep 1; done\n";
  const Arguments logs = {
      "logs",       "--follow", "--prefix", "--tail=-1", fmt::format("--max-log-requests={}", run.placement.nodes),
      "--selector", pods};
  text += "until " + kubectl_command(run, logs) + "; do sleep 2; done\n";  // an error until the pods have started
  return text + kubectl_command(run, {"delete", "--filename", path}) + "\n";
}

}  // namespace tprimat::suite
