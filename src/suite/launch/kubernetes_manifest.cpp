#include "launch/kubernetes_manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/environment.h"
#include "base/error.h"
#include "base/files.h"
#include "base/printable.h"
#include "launch/container.h"
#include "launch/kubernetes_start.h"
#include "launch/manifest_text.h"
#include "spec/kubernetes_values.h"

namespace tprimat::suite {
namespace {

constexpr size_t k_max_name = 40;          // a pod's has 19 more: the job's, its index and five random characters
constexpr size_t k_max_files = 1'000'000;  // of a ConfigMap, which may have 1 MiB
constexpr const char* k_pods_of = "jobset.sigs.k8s.io/jobset-name";

const KubernetesSettings& settings_of(const KubernetesRun& run) { return run.placement.request.launch.kubernetes; }

// Kubernetes replaces $(NAME) in arguments and values; $$ stands for one $.
std::string literal(const std::string& text) {
  std::string escaped;
  for (const char c : text) escaped += c == '$' ? std::string("$$") : std::string(1, c);
  return escaped;
}

Json text_map(const std::map<std::string, std::string>& map) {
  Json object = Json::object();
  for (const auto& [key, value] : map) object[key] = value;
  return object;
}

Json names(const std::vector<std::string>& list) {
  Json items = Json::array();
  for (const std::string& each : list) items.push_back(Json{{"name", each}});
  return items;
}

Json list_variables(const KubernetesRun& run) {
  Json list = Json::array();
  const auto add = [&](const std::string& name, const std::string& value) {
    list.push_back(Json{{"name", name}, {"value", literal(value)}});
  };
  for (const auto& [name, value] : run.plan.environment)
    if (!settings_of(run).secrets.contains(name)) add(name, value);
  for (const auto& [name, value] : settings_of(run).secrets) {
    const SecretReference secret = parse_secret_reference(value).value();
    const Json reference = {{"secretKeyRef", Json{{"name", secret.name}, {"key", secret.key}}}};
    list.push_back(Json{{"name", name}, {"valueFrom", reference}});
  }
  return list;
}

std::string gpus_of(const KubernetesRun& run) {
  if (!settings_of(run).gpu_resource.empty()) return settings_of(run).gpu_resource;
  return run.placement.request.platform == Platform::amd ? "amd.com/gpu" : "nvidia.com/gpu";
}

// Requests and limits are equal, so that no other pod's load decides how much this one gets.
Json list_resources(const KubernetesRun& run) {
  const KubernetesSettings& settings = settings_of(run);
  const LaunchRequest& request = run.placement.request;
  Json amounts = Json::object();
  const bool is_cpu = request.platform == Platform::cpu;
  const int64_t threads = request.spec.threads * run.placement.ranks_per_node();
  if (settings.cpus || (is_cpu && threads > 0)) amounts["cpu"] = std::to_string(settings.cpus.value_or(threads));
  if (!settings.memory.empty()) amounts["memory"] = settings.memory;
  if (!is_cpu) amounts[gpus_of(run)] = std::to_string(run.placement.ranks_per_node());
  for (const auto& [name, amount] : settings.resources) amounts[name] = amount;
  return Json{{"requests", amounts}, {"limits", amounts}};
}

// Volumes of a pod, and where its container has them.
struct Volumes {
  Json list = Json::array(), mounts = Json::array();
  void add(const std::string& name, Json source, const std::string& path, bool read_only = false) {
    source["name"] = name;
    list.push_back(std::move(source));
    Json mount = {{"name", name}, {"mountPath", path}};
    if (read_only) mount["readOnly"] = true;
    mounts.push_back(std::move(mount));
  }
};

Json source_of(const KubernetesVolume& volume) {
  if (volume.kind == KubernetesVolume::Kind::host)
    return Json{{"name", ""}, {"hostPath", Json{{"path", volume.source}, {"type", "Directory"}}}};
  return Json{{"name", ""}, {"persistentVolumeClaim", Json{{"claimName", volume.source}}}};
}

Json shared_memory(const std::string& limit) {
  Json memory = {{"medium", "Memory"}};
  if (!limit.empty()) memory["sizeLimit"] = limit;
  return Json{{"name", ""}, {"emptyDir", memory}};
}

Volumes list_volumes(const KubernetesRun& run) {
  Volumes volumes;
  volumes.add("files", Json{{"name", ""}, {"configMap", Json{{"name", run.name}}}}, std::string(k_pod_files), true);
  volumes.add("shm", shared_memory(settings_of(run).shm_size), "/dev/shm");
  if (!run.shares_folder())
    volumes.add("run", Json{{"name", ""}, {"emptyDir", Json::object()}}, run.placement.request.paths.folder);
  int number = 0;
  for (const std::string& text : settings_of(run).volumes) {
    const KubernetesVolume volume = parse_kubernetes_volume(text).value();
    volumes.add(fmt::format("volume{}", ++number), source_of(volume), volume.path, volume.read_only);
  }
  return volumes;
}

Json describe_container(const KubernetesRun& run, const Json& mounts) {
  const KubernetesSettings& settings = settings_of(run);
  Json arguments = Json::array();
  for (const std::string& word : run.placement.program.arguments) arguments.push_back(literal(word));
  Json container = {{"name", "train"}, {"image", settings_of(run).image}};
  if (!settings.pull_policy.empty()) container["imagePullPolicy"] = settings.pull_policy;
  container["command"] = Json::array({"sh", fmt::format("{}/{}", k_pod_files, k_pod_script)});
  container["args"] = arguments;
  container["env"] = list_variables(run);
  container["resources"] = list_resources(run);
  if (!settings.capabilities.empty())
    container["securityContext"] = Json{{"capabilities", Json{{"add", settings.capabilities}}}};
  container["volumeMounts"] = mounts;
  return container;
}

// Each pod on a node of its own, also where one has the GPUs of two.
Json keep_apart(const KubernetesRun& run) {
  const Json selector = {{"matchLabels", Json{{k_pods_of, run.name}}}};
  const Json term = {{"labelSelector", selector}, {"topologyKey", "kubernetes.io/hostname"}};
  return Json{{"podAntiAffinity", Json{{"requiredDuringSchedulingIgnoredDuringExecution", Json::array({term})}}}};
}

Json list_tolerations(const KubernetesSettings& settings) {
  Json list = Json::array();
  for (const std::string& text : settings.tolerations) {
    const KubernetesToleration toleration = parse_kubernetes_toleration(text).value();
    Json each = {{"key", toleration.key}, {"operator", toleration.value ? "Equal" : "Exists"}};
    if (toleration.value) each["value"] = *toleration.value;
    if (!toleration.effect.empty()) each["effect"] = toleration.effect;
    list.push_back(std::move(each));
  }
  return list;
}

Json describe_pod(const KubernetesRun& run) {
  const KubernetesSettings& settings = settings_of(run);
  const Volumes volumes = list_volumes(run);
  Json pod = {{"restartPolicy", "Never"},
              {"terminationGracePeriodSeconds", 10},
              {"automountServiceAccountToken", false},
              {"enableServiceLinks", false}};
  if (!settings.service_account.empty()) pod["serviceAccountName"] = settings.service_account;
  if (settings.host_network) pod["hostNetwork"] = true, pod["dnsPolicy"] = "ClusterFirstWithHostNet";
  if (!settings.pull_secrets.empty()) pod["imagePullSecrets"] = names(settings.pull_secrets);
  if (!settings.node_selector.empty()) pod["nodeSelector"] = text_map(settings.node_selector);
  if (!settings.tolerations.empty()) pod["tolerations"] = list_tolerations(settings);
  if (run.placement.nodes > 1) pod["affinity"] = keep_apart(run);
  pod["containers"] = Json::array({describe_container(run, volumes.mounts)});
  pod["volumes"] = volumes.list;
  return pod;
}

Json describe_metadata(const KubernetesRun& run) {
  Json metadata = {{"name", run.name}};
  if (!settings_of(run).namespace_name.empty()) metadata["namespace"] = settings_of(run).namespace_name;
  metadata["labels"] = text_map(settings_of(run).labels);
  metadata["labels"]["app.kubernetes.io/managed-by"] = "tprimat";
  return metadata;
}

// No part is ever started again: the second attempt would be measured as if it were the first.
Json describe_jobset(const KubernetesRun& run) {
  const Json job = {{"completionMode", "Indexed"},
                    {"completions", run.placement.nodes},
                    {"parallelism", run.placement.nodes},
                    {"backoffLimit", 0},
                    {"template", Json{{"spec", describe_pod(run)}}}};
  const Json replicated = {{"name", "node"}, {"replicas", 1}, {"template", Json{{"spec", job}}}};
  const Json spec = {{"network", Json{{"enableDNSHostnames", true}, {"subdomain", run.name}}},
                     {"failurePolicy", Json{{"maxRestarts", 0}}},
                     {"replicatedJobs", Json::array({replicated})}};
  return Json{{"apiVersion", "jobset.x-k8s.io/v1alpha2"},
              {"kind", "JobSet"},
              {"metadata", describe_metadata(run)},
              {"spec", spec}};
}

Json describe_files(const KubernetesRun& run) {
  Json data = Json::object();
  size_t bytes = 0;
  for (const auto& [key, content] : list_pod_files(run)) {
    data[key] = content;
    bytes += key.size() + content.size();
  }
  if (bytes > k_max_files)
    throw Error(Problem{fmt::format("the files of the run have {} bytes; a ConfigMap holds 1 MiB", bytes),
                        "launch.launcher", "use another launcher, or shorter arguments"});
  return Json{{"apiVersion", "v1"}, {"kind", "ConfigMap"}, {"metadata", describe_metadata(run)}, {"data", data}};
}

// In a volume that may be written.
bool has_volume_for(const KubernetesRun& run, const std::string& path, bool writes) {
  return std::ranges::any_of(settings_of(run).volumes, [&](const std::string& text) {
    const KubernetesVolume volume = parse_kubernetes_volume(text).value();
    return is_in_folder(path, volume.path) && !(writes && volume.read_only);
  });
}

void require_volume(const KubernetesRun& run, const std::string& what, const std::string& path, bool writes) {
  if (path.empty() || has_volume_for(run, path, writes)) return;
  throw Error(Problem{fmt::format("{} '{}' lies in no volume of the pods", what, path), "launch.kubernetes.volumes",
                      "name a volume with this folder, such as claim:NAME:/shared, and give absolute paths"});
}

void refuse_written_secrets(const KubernetesRun& run) {
  for (const auto& [name, value] : run.plan.environment)
    if (holds_a_secret(name, value) && !settings_of(run).secrets.contains(name))
      throw Error(Problem{
          fmt::format("the manifest would hold the value of {}", name), "platform_optimizations.<platform>.environment",
          fmt::format("name a secret of the cluster: launch.kubernetes.secrets: {{{}: NAME/KEY}}", name)});
}

// The layout decides how many GPUs a pod has.
void refuse_stated_gpus(const KubernetesRun& run) {
  for (const auto& [name, amount] : settings_of(run).resources)
    if (name == "nvidia.com/gpu" || name == "amd.com/gpu" || name == settings_of(run).gpu_resource)
      throw Error(Problem{fmt::format("'{}={}' would replace the number of GPUs, which follows from the layout",
                                      printable(name), printable(amount)),
                          "launch.kubernetes.resources",
                          "leave it out; launch.kubernetes.gpu_resource names another kind of GPU"});
}

void refuse_own_mounts(const KubernetesRun& run) {
  for (const std::string& text : settings_of(run).volumes) {
    const std::string path = parse_kubernetes_volume(text).value().path;
    for (const std::string_view own : {k_pod_files, std::string_view("/dev/shm")})
      if (is_in_folder(path, own))
        throw Error(Problem{fmt::format("a volume at {} would collide with the run's own at {}", path, own),
                            "launch.kubernetes.volumes", "choose another path"});
  }
}

// As JSON and YAML take it, which know no other bytes than UTF-8.
void require_text(const std::string& path, const char* where) {
  if (printable(path) != path)
    throw Error(Problem{fmt::format("a manifest cannot hold the path '{}'", printable(path)), where,
                        "choose another folder, without line breaks and other control characters"});
}

}  // namespace

bool KubernetesRun::shares_folder() const { return has_volume_for(*this, placement.request.paths.folder, true); }

std::string kubernetes_name(const std::string& name) {
  std::string text;
  for (const char c : name) {
    const char small = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    const bool is_kept = (small >= 'a' && small <= 'z') || (small >= '0' && small <= '9');
    if (is_kept || (!text.empty() && text.back() != '-')) text += is_kept ? small : '-';
  }
  if (text.size() <= k_max_name) return text;
  const std::string checksum = text.substr(text.rfind('-'));  // what makes it unique stays
  text.resize(k_max_name - checksum.size());
  while (text.ends_with('-')) text.pop_back();
  return text + checksum;
}

std::string first_pod_of(const KubernetesRun& run) { return fmt::format("{0}-node-0-0.{0}", run.name); }

void require_complete(const KubernetesRun& run) {
  const LaunchRequest& request = run.placement.request;
  if (settings_of(run).image.empty())
    throw Error(Problem{"no image is named for the pods", "launch.kubernetes.image",
                        "name one that has the framework and tprimat, in a registry that the cluster reaches"});
  require_mountable(request.paths.folder, ":", "--output", "choose another --output");
  require_text(request.paths.folder, "--output");
  require_text(run.plan.working_directory, "working directory");
  refuse_written_secrets(run);
  refuse_stated_gpus(run);
  refuse_own_mounts(run);
  if (!request.spec.data.is_synthetic()) require_volume(run, "the data set", request.spec.data.dataset, false);
  require_volume(run, "the folder of initial weights", request.spec.checkpoint.initial_weights, false);
  require_volume(run, "the checkpoint", request.spec.checkpoint.load.value_or(""), false);
  if (request.model_notes.tokenizer_path.starts_with('/'))
    require_volume(run, "the tokenizer", request.model_notes.tokenizer_path, false);
  require_volume(run, "the folder of checkpoints", run.plan.checkpoints_path, true);
}

std::string render_objects(const KubernetesRun& run) {
  return print_manifest(describe_files(run)) + "---\n" + print_manifest(describe_jobset(run));
}

}  // namespace tprimat::suite
