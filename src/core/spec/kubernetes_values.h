#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace tprimat {

// Values of `launch.kubernetes` that are written as one text.

// "claim:shared:/shared", "host:/nvme/data:/data"; with :ro behind it, for reading only.
struct KubernetesVolume {
  enum class Kind { claim, host };
  Kind kind = Kind::claim;
  std::string source;  // name of a persistent volume claim, or folder of each node
  std::string path;    // in the pods
  bool read_only = false;
};
std::optional<KubernetesVolume> parse_kubernetes_volume(std::string_view text);

// "nvidia.com/gpu:NoSchedule", "dedicated=training:NoExecute", "dedicated": as kubectl writes taints.
struct KubernetesToleration {
  std::string key, effect;           // no effect: all of them
  std::optional<std::string> value;  // nothing: any
};
std::optional<KubernetesToleration> parse_kubernetes_toleration(std::string_view text);

// "hf-token/token": the name of a secret and a key in it.
struct SecretReference {
  std::string name, key;
};
std::optional<SecretReference> parse_secret_reference(std::string_view text);

// "example.com/pool=gpu", "rdma/ib=8": the name of a label or a resource, and its value, which may be empty.
std::optional<std::pair<std::string, std::string>> parse_kubernetes_pair(std::string_view text);

// "8", "64Gi", "1500M"
bool is_kubernetes_quantity(std::string_view text);

// Lower-case letters, digits and -, as in the names of namespaces.
bool is_kubernetes_label(std::string_view text);

// The same with dots, as in the names of claims and secrets.
bool is_kubernetes_name(std::string_view text);

}  // namespace tprimat
