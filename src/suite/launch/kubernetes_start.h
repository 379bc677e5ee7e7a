#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "launch/kubernetes_manifest.h"

namespace tprimat::suite {

inline constexpr std::string_view k_pod_files = "/etc/tprimat";  // where a pod has the files of the ConfigMap
inline constexpr std::string_view k_pod_script = "start.sh";     // what it starts

// The files of the ConfigMap by their names there: start.sh, which copies the others to their paths and starts the
// ranks of its node, and the generated files of the framework. Throws Error for what a ConfigMap cannot hold.
std::vector<std::pair<std::string, std::string>> list_pod_files(const KubernetesRun& run);

// The script that creates the objects, shows the pods' output as it comes, collects logs and step records, and deletes
// the objects; and the one that only deletes them.
std::string render_follow_script(const KubernetesRun& run);
std::string render_delete_script(const KubernetesRun& run);

// Commands for a person who does without this program: writes the manifest, creates, follows and deletes.
std::string render_by_hand(const KubernetesRun& run, const std::string& objects);

// "FOLDER/jobset.yaml"
std::string manifest_path(const KubernetesRun& run);

}  // namespace tprimat::suite
