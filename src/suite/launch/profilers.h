#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/frameworks.h"

namespace tprimat::suite {

// Everything the suite knows about one profiler.
struct ProfilerModule {
  Profiler id;
  std::string_view long_name;
  std::vector<Platform> platforms;
  std::string_view program;     // looked up in PATH; empty: it comes with the framework
  std::string_view installing;  // the command that brings it here
  std::string_view ending;      // of the trace file
};

// All of them, in the order of menus.
const std::vector<ProfilerModule>& profiler_modules();
const ProfilerModule& profiler_module(Profiler id);

// The requested one, else the framework's first that supports the platform. Throws Error (ExitStatus::usage) for an
// unsuitable one.
Profiler choose_profiler(const FrameworkModule& framework, Platform platform, std::optional<Profiler> asked);

// Whether the profiler is told which steps to record; else it records the whole run.
bool marks_steps(const FrameworkModule& framework, Profiler profiler);

// Throws Error (ExitStatus::missing_component) with the command that installs it.
void require_profiler(const ProfilerModule& profiler);

// The profiler's output file: the window's trace with its ending.
std::string trace_file(const ProfileWindow& window);

// Where rocprofv3 writes, one set of files per rank.
std::string rocprof_folder(const ProfileWindow& window);

// --tensorboard-dir of a program that has the PyTorch profiler itself: it names its trace as it likes, in this folder
// or in `torch_profile` beside it.
std::string torch_trace_folder(const RunPaths& paths);

// The steps for the ranks' variable TPRIMAT_PROFILE: "own:11:15:PATH".
std::string print_window(const ProfileWindow& window);

// The window of `count` steps after the measured ones, of which all ranks write traces. One more step goes before it,
// in which the profiler gets ready. Throws Error with a sentence where the framework's program, or the launcher, cannot
// do that.
ProfileWindow choose_further_steps(const FrameworkModule& framework, const LaunchRequest& request, int64_t count);

// Where the ranks write them, and where one rank does.
std::string rank_traces_folder(const RunPaths& paths);
std::string trace_of_rank(const ProfileWindow& window, int64_t rank);

// Puts a launch under the profiler: it precedes the launcher, so that it sees all ranks of this machine, and
// TPRIMAT_PROFILE tells the ranks which steps to record.
void add_profiler(LaunchPlan& plan, const LaunchRequest& request);

}  // namespace tprimat::suite
