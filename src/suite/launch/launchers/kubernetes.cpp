#include <fmt/format.h>

#include "base/error.h"
#include "launch/installed.h"
#include "launch/kubernetes_manifest.h"
#include "launch/kubernetes_start.h"
#include "launch/launchers/start_ranks.h"

namespace tprimat::suite {
namespace {

void place_in_pods(const Placement& placement, LaunchPlan& plan) {
  const std::string& folder = placement.request.paths.folder;
  plan.waits_in_queue = true;
  plan.place = Whereabouts::elsewhere;
  const KubernetesRun run{placement, plan, kubernetes_name(placement.name)};
  require_complete(run);
  const std::string objects = render_objects(run);
  plan.by_hand = render_by_hand(run, objects);
  const std::string follow = render_follow_script(run);
  plan.files.push_back({manifest_path(run), objects});
  plan.files.push_back({folder + "/follow.sh", follow});
  plan.files.push_back({folder + "/delete.sh", render_delete_script(run)});
  plan.command = {"sh", folder + "/follow.sh"};
  plan.cleanup_command = {"sh", folder + "/delete.sh"};
  plan.cause_path = folder + "/cause.txt";
  plan.working_directory = placement.request.paths.working_directory;
  if (placement.request.platform == Platform::cpu && placement.request.launch.kubernetes.memory.empty())
    plan.remarks.push_back(
        "the pods request no memory, so the cluster may evict them first: set launch.kubernetes.memory");
}

}  // namespace

// A JobSet with one pod per node. A script creates it with kubectl, follows its pods, collects what they leave and
// deletes it.
LauncherModule kubernetes_launcher() {
  return {Launcher::kubernetes,
          "Kubernetes",
          place_in_pods,
          [](const LauncherSettings&) { return find_in_path("kubectl").has_value(); },
          "kubectl is not in PATH",
          "install it (https://kubernetes.io/docs/tasks/tools/), or show the manifest with --dry-run"};
}

}  // namespace tprimat::suite
