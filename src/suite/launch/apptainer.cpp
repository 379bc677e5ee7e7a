#include "launch/apptainer.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/environment.h"
#include "base/error.h"

namespace tprimat::suite {
namespace {

// A path, or a reference such as docker://nvcr.io/nvidia/pytorch:25.06-py3; other words name an image of a registry.
std::string reference_of(const std::string& image) {
  if (image.empty())
    throw Error(Problem{"no image is named, and Apptainer cannot build one from a Dockerfile", "launch.docker.image",
                        "name an image of a registry or a .sif file, or build tprimat:<platform> with Docker or Podman "
                        "and name docker-daemon:tprimat:<platform> or an archive of it"});
  const bool is_file = image.front() == '/' || image.front() == '.' || image.ends_with(".sif");
  const bool is_reference = image.find("://") != std::string::npos || image.starts_with("docker-daemon:") ||
                            image.starts_with("docker-archive:") || image.starts_with("oci-archive:");
  return is_file || is_reference ? image : "docker://" + image;
}

// A word with several = is read as a line of CSV, so that a comma would begin another variable.
std::string assignment(const std::string& name, const std::string& value) {
  if (value.find_first_of("\"\n\r") != std::string::npos)
    throw Error(Problem{fmt::format("Apptainer cannot pass on the value of {}: it has a quote or a line break", name),
                        "platform_optimizations.<platform>.environment", "change the value, or use Docker or Podman"});
  const bool is_csv = value.find('=') != std::string::npos && value.find(',') != std::string::npos;
  return is_csv ? fmt::format("\"{}={}\"", name, value) : fmt::format("{}={}", name, value);
}

}  // namespace

bool is_apptainer(ContainerProgram program) {
  return program == ContainerProgram::apptainer || program == ContainerProgram::singularity;
}

void hand_over_secrets(const std::string& program, std::map<std::string, std::string>& environment) {
  const std::string prefix = program == "singularity" ? "SINGULARITYENV_" : "APPTAINERENV_";
  std::map<std::string, std::string> added;
  for (const auto& [name, value] : environment)
    if (holds_a_secret(name, value)) added[prefix + name] = value;
  environment.merge(added);
}

Arguments apptainer_arguments(const ApptainerRun& run) {
  Arguments arguments = {run.program, "exec"};
  if (run.platform == Platform::nvd) arguments.emplace_back("--nv");
  if (run.platform == Platform::amd) arguments.emplace_back("--rocm");
  if (!run.home.empty()) append(arguments, {"--home", run.home});
  for (const std::string& volume : run.volumes) append(arguments, {"--bind", volume});
  if (!run.working_directory.empty()) append(arguments, {"--pwd", run.working_directory});
  for (const auto& [name, value] : run.environment)
    if (!holds_a_secret(name, value)) append(arguments, {"--env", assignment(name, value)});
  append(arguments, run.arguments);
  arguments.push_back(reference_of(run.image));
  return arguments;
}

}  // namespace tprimat::suite
