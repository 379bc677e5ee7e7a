#pragma once

#include "config/raw_types.h"
#include "spec/train_spec.h"
#include "text/fields.h"

// frameworks, as written.
namespace tprimat::suite::raw {

struct FrameworkOptimizer {
  std::optional<MomentFormat> moments;
  Flag master_weights;
  static constexpr auto fields() {
    using O = FrameworkOptimizer;
    return field_list(field("moments", &O::moments, "number format of Adam's moments in this framework"),
                      field("master_weights", &O::master_weights, "fp32 copy of 16-bit weights in this framework"));
  }
};

// A text alone is its folder.
struct InstallationSection {
  Text folder, image, python;
  static constexpr std::string_view scalar_key = "folder";
  static constexpr auto fields() {
    using I = InstallationSection;
    return field_list(
        field("folder", &I::folder,
              "its checkout or Python environment: a folder of this machine, or of the image where there is one"),
        field("image", &I::image, "its container image, for the launchers docker, slurm and kubernetes"),
        field("python", &I::python, "path of its Python in that image; launch.python_inside when absent"));
  }
};

struct FrameworkSection {
  Text description;
  Flag enabled;
  Text strategy;
  std::optional<Precision> precision;
  std::optional<Recompute> recompute;
  FrameworkOptimizer optimizer;
  std::optional<Offload> offload;
  TextList arguments;
  Named<InstallationSection, NameKind::label> installations;
  static constexpr auto fields() {
    using F = FrameworkSection;
    return field_list(
        field("description", &F::description, "one sentence on this framework's part, for people"),
        field("enabled", &F::enabled, "false: neither experiment.frameworks nor all includes it; true when absent"),
        field("strategy", &F::strategy, "its layout: a name under parallelism; experiment.methodology when absent"),
        field("precision", &F::precision, "its number format; that of the platform when absent"),
        field("recompute", &F::recompute, "activations it recomputes; as on the platform when absent"),
        field("optimizer", &F::optimizer, "its formats of the optimizer's state; training.optimizer's when absent"),
        field("offload", &F::offload,
              "state that the host's memory keeps: none, optimizer, or parameters too; for deep, fsdp and tita"),
        field("arguments", &F::arguments,
              "additional arguments, passed to its program as they are; for prim, settings of its experiment file"),
        field("installations", &F::installations, "several installations of it, by a label of your choice"));
  }
};

}  // namespace tprimat::suite::raw
