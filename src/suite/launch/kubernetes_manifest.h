#pragma once

#include <string>

#include "launch/launchers.h"

namespace tprimat::suite {

// A run as objects of Kubernetes: a JobSet with one pod per node, and a ConfigMap with the files that the pods start
// from.
struct KubernetesRun {
  const Placement& placement;
  const LaunchPlan& plan;
  std::string name;  // of both objects; the pods' host names begin with it

  // The folder of the run lies in a volume of the pods, where this machine reads the step records; else rank 0's pod
  // prints them.
  bool shares_folder() const;
};

// As Kubernetes and its name service accept it: "tprimat-train-nvd-fsdp-llama-6f2b91c0", at most 40 characters.
std::string kubernetes_name(const std::string& name);

// The host name of node 0.
std::string first_pod_of(const KubernetesRun& run);

// Throws Error for what the pods would lack or lose: an image, a volume for a folder that the run needs, a secret that
// is written out.
void require_complete(const KubernetesRun& run);

// Both objects, as YAML documents.
std::string render_objects(const KubernetesRun& run);

}  // namespace tprimat::suite
