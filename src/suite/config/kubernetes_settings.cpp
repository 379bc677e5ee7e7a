#include "config/kubernetes_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>

#include "spec/kubernetes_values.h"
#include "text/format.h"

namespace tprimat::suite {
namespace {

using Texts = std::vector<std::string>;
using TextMap = std::map<std::string, std::string>;

std::string place(const char* key) { return std::string("launch.kubernetes.") + key; }

std::string quoted(const std::string& text) { return "'" + printable(text.substr(0, 60)) + "'"; }

// NAME=VALUE words, of which the last one holds.
TextMap take_pairs(const raw::TextList& words) {
  TextMap map;
  for (const std::string& word : words.value_or(Texts()))
    if (const auto pair = parse_kubernetes_pair(word)) map[pair->first] = pair->second;
  return map;
}

TextMap take_map(const raw::Named<raw::Text>& named) {
  TextMap map;
  for (const auto& [name, value] : named.entries)
    if (value) map[name] = *value;
  return map;
}

class KubernetesChecks {
 public:
  explicit KubernetesChecks(Draft& draft) : draft_(draft), settings_(draft.experiment.launch.kubernetes) {}

  void check() const {
    check_texts();
    check_each(
        "volumes", settings_.volumes, [](const std::string& each) { return !!parse_kubernetes_volume(each); },
        "write claim:NAME:PATH or host:FOLDER:PATH, both paths absolute and without a colon");
    check_paths_of_volumes();
    check_each(
        "tolerations", settings_.tolerations,
        [](const std::string& each) { return !!parse_kubernetes_toleration(each); },
        "write KEY:EFFECT or KEY=VALUE:EFFECT, with NoSchedule, PreferNoSchedule or NoExecute");
    check_each("pull_secrets", settings_.pull_secrets, is_kubernetes_name, "write the name of a secret");
    check_each(
        "capabilities", settings_.capabilities,
        [](const std::string& each) {
          return each.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ_") == std::string::npos && !each.empty();
        },
        "write its name as Kubernetes does, such as IPC_LOCK");
    check_pairs();
    check_secrets();
  }

 private:
  void check_texts() const {
    check_text("namespace", settings_.namespace_name, is_kubernetes_label, "use lower-case letters, digits and -");
    check_text("service_account", settings_.service_account, is_kubernetes_name, "write the name of an account");
    check_text("shm_size", settings_.shm_size, is_kubernetes_quantity, "for example  shm_size: 64Gi");
    check_text("memory", settings_.memory, is_kubernetes_quantity, "for example  memory: 64Gi");
    const auto is_word = [](std::string_view text) { return text.front() != '-' && printable(text) == text; };
    const char* remedy = "it must not begin with - or contain control characters";
    check_text("image", settings_.image, is_word, remedy);
    check_text("context", settings_.context, is_word, remedy);
    check_text("gpu_resource", settings_.gpu_resource, is_word, remedy);
    check_text(
        "pull_policy", settings_.pull_policy,
        [](std::string_view text) { return text == "Always" || text == "IfNotPresent" || text == "Never"; },
        "write Always, IfNotPresent or Never");
  }

  void check_text(const char* key, const std::string& text, const std::function<bool(std::string_view)>& is_sound,
                  const char* remedy) const {
    if (!text.empty() && !is_sound(text)) refuse(place(key), quoted(text), remedy);
  }

  void check_each(const char* key, const Texts& texts, const std::function<bool(const std::string&)>& is_sound,
                  const char* remedy) const {
    for (const std::string& text : texts)
      if (!is_sound(text)) refuse(place(key), quoted(text), remedy);
  }

  void check_paths_of_volumes() const {
    Texts paths;
    for (const std::string& text : settings_.volumes)
      if (const auto volume = parse_kubernetes_volume(text)) {
        if (std::ranges::find(paths, volume->path) != paths.end())
          draft_.fail(place("volumes"), fmt::format("two volumes have the path {}", volume->path),
                      "give each a path of its own");
        paths.push_back(volume->path);
      }
  }

  void check_pairs() const {
    const raw::KubernetesLaunch& raw = draft_.raw.launch.kubernetes;
    const auto is_pair = [](const std::string& text) { return !!parse_kubernetes_pair(text); };
    const auto is_amount = [](const std::string& text) {
      const auto pair = parse_kubernetes_pair(text);
      return pair && is_kubernetes_quantity(pair->second);
    };
    check_each("node_selector", raw.node_selector.value_or(Texts()), is_pair, "write NAME=VALUE");
    check_each("labels", raw.labels.value_or(Texts()), is_pair, "write NAME=VALUE");
    check_each("resources", raw.resources.value_or(Texts()), is_amount, "write NAME=AMOUNT, such as rdma/ib=8");
  }

  void check_secrets() const {
    for (const auto& [name, value] : settings_.secrets) {
      if (!is_variable_name(name))
        refuse(place("secrets") + "." + name, quoted(name), "the key is the name of an environment variable");
      if (!parse_secret_reference(value))  // which may be the secret itself: it is not repeated
        refuse(place("secrets") + "." + name, "this value", "write NAME/KEY of a secret of the cluster");
    }
  }

  void refuse(const std::string& path, const std::string& value, const char* remedy) const {
    if (draft_.is_sound(path)) draft_.fail(path, fmt::format("{} cannot be {}", path, value), remedy);
  }

  Draft& draft_;
  const KubernetesSettings& settings_;
};

}  // namespace

void resolve_kubernetes(Draft& draft) {
  const raw::KubernetesLaunch& from = draft.raw.launch.kubernetes;
  KubernetesSettings& to = draft.experiment.launch.kubernetes;
  for_each_pair(from, to, [](std::string_view, const auto& stated, auto& value) {
    if (stated) value = *stated;
  });
  to.resources = take_pairs(from.resources);
  to.node_selector = take_pairs(from.node_selector);
  to.labels = take_pairs(from.labels);
  to.secrets = take_map(from.secrets);
  KubernetesChecks(draft).check();
}

}  // namespace tprimat::suite
