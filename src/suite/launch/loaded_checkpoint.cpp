#include "launch/loaded_checkpoint.h"

#include <fmt/format.h>

#include <optional>
#include <sstream>
#include <string_view>
#include <system_error>

#include "base/error.h"
#include "base/files.h"
#include "text/words.h"

namespace tprimat::suite {
namespace {

namespace fs = std::filesystem;

constexpr const char* k_option = "--load";
constexpr const char* k_tracker = "latest_checkpointed_iteration.txt";  // of Megatron-LM and its relatives

bool is_there(const fs::path& path) {
  std::error_code unreadable;
  return fs::exists(path, unreadable);
}

bool is_same(const std::string& a, const std::string& b) {
  std::error_code unreadable;
  return !a.empty() && !b.empty() && fs::equivalent(a, b, unreadable);
}

// "step_00001000" -> 1000 with the prefix "step_".
std::optional<int64_t> step_in(const std::string& name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return std::nullopt;
  return parse_number<int64_t>(std::string_view(name).substr(prefix.size()));
}

// The first word of a file.
std::string read_word(const fs::path& file) {
  std::istringstream text(read_file(file));
  std::string word;
  text >> word;
  constexpr size_t k_longest = 40;  // of a step or a tag
  return word.substr(0, k_longest);
}

[[noreturn]] void refuse_folder(const fs::path& folder, const std::string& what, const std::string& remedy) {
  throw Error(Problem{fmt::format("{} {}", folder.string(), what), k_option, remedy});
}

// Without it a checkpoint is incomplete.
bool is_native_checkpoint(const fs::path& folder) { return is_there(folder / "manifest.json"); }

std::string read_tracker(const fs::path& folder, const char* program) {
  const fs::path tracker = folder / k_tracker;
  if (!is_there(tracker))
    refuse_folder(folder, fmt::format("holds no checkpoint of {}: there is no {}", program, k_tracker),
                  "give the folder that its --save named");
  return read_word(tracker);
}

int64_t step_of_tracker(const fs::path& folder, const std::string& word) {
  const auto step = parse_number<int64_t>(word);
  if (!step || *step < 1)
    refuse_folder(folder / k_tracker, fmt::format("names no step but '{}'", word),
                  "let it hold the number of a step, or release");
  return *step;
}

}  // namespace

LoadedCheckpoint find_native_checkpoint(const fs::path& path) {
  if (const auto step = step_in(path.filename().string(), "step_"); step && is_native_checkpoint(path)) {
    if (*step < 0) refuse_folder(path, "is named after no step", "name it step_ and the number of its step");
    return {path.parent_path().string(), *step};
  }
  std::optional<int64_t> newest;
  std::error_code unreadable;
  for (const auto& entry : fs::directory_iterator(path, unreadable)) {
    const auto step = step_in(entry.path().filename().string(), "step_");
    if (step && *step > newest.value_or(-1) && is_native_checkpoint(entry.path())) newest = step;
  }
  if (!newest)
    refuse_folder(path, "holds no checkpoint of the native trainer",
                  "give the folder that it saved into: it has folders such as step_00001000");
  return {path.string(), *newest};
}

LoadedCheckpoint find_megatron_checkpoint(const fs::path& path) {
  if (const auto step = step_in(path.filename().string(), "iter_"); step && is_there(path.parent_path() / k_tracker)) {
    if (*step < 1 || !is_there(path))
      refuse_folder(path, "is no checkpoint of Megatron-LM", "give a folder such as iter_0000100, or the one above it");
    return {path.parent_path().string(), *step};
  }
  const std::string newest = read_tracker(path, "Megatron-LM");
  const bool is_release = newest == "release";  // converted weights, from which step 1 follows
  const int64_t step = is_release ? 0 : step_of_tracker(path, newest);
  const std::string name = is_release ? newest : fmt::format("iter_{:07}", step);
  if (!is_there(path / name))
    refuse_folder(path, fmt::format("has no {}, which its {} names", name, k_tracker),
                  "restore it, or let the file name another step");
  return {path.string(), step};
}

// DeepSpeed reads the file `latest`, and Megatron the other one.
LoadedCheckpoint find_megatron_deepspeed_checkpoint(const fs::path& path) {
  const int64_t step = step_of_tracker(path, read_tracker(path, "Megatron-DeepSpeed"));
  if (!is_there(path / "latest"))
    refuse_folder(path, "holds no checkpoint of DeepSpeed: there is no latest",
                  "give the folder that its --save named");
  const std::string tag = read_word(path / "latest");
  if (tag != fmt::format("global_step{}", step))
    refuse_folder(path,
                  fmt::format("has checkpoints of two steps: latest names {}, and {} step {}", tag, k_tracker, step),
                  "let both name one step");
  return {path.string(), step};
}

void require_loading(const FrameworkModule& module) {
  if (module.find_checkpoint != nullptr) return;
  throw Error(Problem{fmt::format("tprimat cannot let {} load a checkpoint", module.long_name), k_option,
                      "leave --load out, or choose the framework native, mega or mgds"});
}

void choose_checkpoint(const FrameworkModule& module, const fs::path& path, TrainSpec& spec) {
  require_loading(module);
  fs::path folder = fs::absolute(path).lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();  // "checkpoints/"
  const LoadedCheckpoint found = module.find_checkpoint(folder);
  if (found.step >= spec.steps)
    throw Error(
        Problem{fmt::format("the checkpoint is of step {}, and the training ends at step {}", found.step, spec.steps),
                k_option, fmt::format("set --steps above {}: it counts from the first step", found.step)});
  spec.checkpoint.load = found.folder;
  spec.checkpoint.load_step = found.step;
}

bool continues_in_place(const TrainSpec& spec, const std::string& checkpoints_path) {
  return is_same(spec.checkpoint.load.value_or(""), checkpoints_path);
}

void require_kept_checkpoint(const TrainSpec& spec, const std::string& checkpoints_path) {
  if (checkpoints_path.empty() || !is_same(spec.checkpoint.load.value_or(""), checkpoints_path + ".before")) return;
  throw Error(Problem{fmt::format("the run would replace {}, from which it continues", *spec.checkpoint.load), k_option,
                      "rename that folder first"});
}

}  // namespace tprimat::suite
