#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "launch/launch_plan.h"
#include "spec/names.h"

namespace tprimat::suite {

// The version of a checkout that states none.
inline constexpr std::string_view k_unknown_version = "not known";

// How a framework was found on this machine.
struct Installation {
  std::string version;
  std::string place;  // "built in", a folder
};

// A checkpoint from which a training goes on.
struct LoadedCheckpoint {
  std::string folder;  // of checkpoints
  int64_t step = 0;
};

// The upstream versions that a framework's plan was checked against.
struct CheckedVersions {
  std::string_view program;                // "Megatron-LM"; empty: none are known
  std::vector<std::string_view> versions;  // as `find` states them; of a commit at least its first seven digits
  std::string_view beside = {};            // what was checked with it: "PyTorch 2.13.0"
};

// Everything the suite knows about one framework.
struct FrameworkModule {
  Framework id;
  std::string_view long_name;
  std::vector<Platform> platforms;
  std::optional<Installation> (*find)(const Checkout&);  // nothing: not installed
  TrainProgram (*plan)(const LaunchRequest&);  // pure: writes and starts nothing; throws Error for unsupported requests
  std::string_view installing;                 // how to install it, as a sentence
  std::string_view checkout;                   // its name under `paths:`; empty for a package
  std::vector<Profiler> profilers = {};        // supported by its plan, the preferred one of each platform first
  std::optional<Problem> (*lacking_on)(Platform) = nullptr;  // a further requirement that this machine lacks
  bool sets_formats = false;            // takes other formats of the optimizer's state than its own
  bool offloads = false;                // keeps state in the host's memory on request
  bool takes_arguments = false;         // its program has a command line of its own
  std::vector<Profiler> unmarked = {};  // of `profilers`, those for which its program marks no steps
  // What a request states in a file, as the program's own arguments: for a message about arguments that replace it.
  std::vector<std::string> (*stated_in_files)(const LaunchRequest&) = nullptr;
  LoadedCheckpoint (*find_checkpoint)(const std::filesystem::path&) = nullptr;  // loaded_checkpoint.h; it loads none
  bool is_environment = false;  // its installation is a Python environment, not a checkout
  CheckedVersions checked = {};
  // Of the steps that its program trains after the measured ones on request; nothing: it cannot.
  std::optional<Profiler> further_steps = {};
  bool (*trains_in)(Precision, Platform) = nullptr;  // what its plan does not refuse; nullptr: all
};

// Collects the parts of a training that a framework does not support.
class Refusals {
 public:
  explicit Refusals(Framework framework) : framework_(framework) {}
  void add_if(bool refused, const std::string& what, const std::string& hint, const std::string& where = "");
  void throw_if_any() { tprimat::throw_if_any(std::move(problems_)); }

 private:
  Framework framework_;
  std::vector<Problem> problems_;
};

// Of a framework that cuts a pipeline by its own rule alone, and does not choose what selective recomputation repeats.
void refuse_megatron_settings(Refusals& refusals, const TrainSpec& spec);

// For hints: the power of two nearest to a loss scale, at least 2.
double nearest_power_of_two(double scale);

// All of them, in the order of menus and tables.
const std::vector<FrameworkModule>& framework_modules();

// Whether a plan will be executed here, or only shown.
enum class Presence { installed, any };

const FrameworkModule* find_framework(Framework id);  // nullptr where this version cannot launch it

// Throws Error (ExitStatus::missing_component) with the available ones if the framework is not available on that
// platform.
const FrameworkModule& require_framework(Framework id, Platform platform);

// Why an installed framework cannot train on that platform; nothing if it can.
std::optional<Problem> find_lacking(const FrameworkModule& module, Platform platform);

// Throws Error (ExitStatus::missing_component) that says how to install it, or what it lacks on that platform.
void require_installed(const FrameworkModule& module, const Checkout& checkout, Platform platform);

bool runs_on(const FrameworkModule& module, Platform platform);

// "Transformers 5.23.0 (with PyTorch 2.13.0)"; empty where no checked version is known.
std::string describe_checked(const FrameworkModule& module);

// What to know of an installed version that the plan was not checked against; nothing for one that it was, and for one
// that is not known.
std::optional<std::string> find_unchecked_version(const FrameworkModule& module, const std::string& installed);

// Its checkout, as `paths:` of the configuration states it: "primus.installation" -> folder.
Checkout checkout_of(const FrameworkModule& module, const std::map<std::string, std::string>& paths, Platform platform);

// The framework's program under a launcher, with the environment that the platform's settings become. Throws Error for
// requests that the framework does not support.
LaunchPlan plan_launch(const FrameworkModule& module, const LaunchRequest& request);

}  // namespace tprimat::suite
