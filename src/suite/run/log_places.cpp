#include "run/log_places.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <deque>
#include <map>

#include "config/schema.h"
#include "text/words.h"

namespace tprimat::suite {
namespace {

namespace fs = std::filesystem;

// Primus: output/<team>/<user>/<experiment>/logs/<module>/rank-<k>/info.log.
constexpr int k_deepest = 7;

// Where Primus, Megatron-LM, NeMo and torchtitan write below the folder in which they are started.
constexpr const char* k_usual_folders[] = {"output",           "outputs",         "log",        "logs",
                                           "results",          "experiments",     "slurm_logs", "tensorboard",
                                           "tensorboard_logs", "nemo_experiments"};

void add_installation(std::vector<LogPlace>& places, const std::string& name, const fs::path& folder,
                      Framework framework) {
  places.push_back({.name = name, .folder = folder, .framework = framework, .any_name = false});
  std::error_code unreadable;
  for (const char* below : k_usual_folders)
    if (fs::is_directory(folder / below, unreadable))
      places.push_back({.name = name, .folder = folder / below, .framework = framework, .depth = k_deepest});
}

bool is_log_name(std::string name, bool any_name) {
  name = lower_case(name);
  for (const char* packed : {".gz", ".zst"})
    if (name.ends_with(packed)) name.erase(name.size() - std::string_view(packed).size());
  if (name.ends_with(".log")) return true;
  const bool is_text = name.ends_with(".txt") || name.ends_with(".out");
  if (!any_name)
    return is_text &&
           (name.find("train") != std::string::npos || name.starts_with("log_") || name.starts_with("slurm-"));
  return is_text || name.starts_with("events.out.tfevents.") || name == "trainer_state.json" || name == "metrics.csv" ||
         name == "steps.jsonl" || name == "trainer_log.jsonl";
}

bool is_left_out(const std::string& folder) { return folder.starts_with('.') || folder == "checkpoints"; }

// One place, the folders nearest to it first, so that a limit cuts off the deepest.
class PlaceSearch {
 public:
  PlaceSearch(LogPlace& place, size_t number, const SearchLimits& limits, LogSearch& found)
      : place_(place), number_(number), limits_(limits), found_(found) {}

  void run() {
    std::error_code unreadable;
    place_.exists = fs::is_directory(place_.folder, unreadable);
    if (place_.exists) folders_.push_back({place_.folder, 0});
    while (!folders_.empty() && place_.incomplete.empty()) {
      const Folder folder = folders_.front();
      folders_.pop_front();
      list(folder);
    }
    if (has_deeper_ && place_.incomplete.empty())
      place_.incomplete = fmt::format("it has folders more than {} levels deep", place_.depth);
  }

 private:
  struct Folder {
    fs::path path;
    int depth = 0;
  };

  void list(const Folder& folder) {
    std::error_code error;
    std::vector<fs::path> paths;
    for (fs::directory_iterator each(folder.path, error); !error && each != fs::directory_iterator();
         each.increment(error)) {
      if (++entries_ > limits_.entries) {
        place_.incomplete = fmt::format("it has more than {} entries", limits_.entries);
        break;
      }
      paths.push_back(each->path());
    }
    if (error) found_.skipped.push_back({folder.path, fmt::format("cannot be listed: {}", error.message())});
    std::ranges::sort(paths);
    for (const fs::path& path : paths) look_at(path, folder.depth);
  }

  void look_at(const fs::path& path, int depth) {
    struct stat facts {};
    const std::string name = path.filename().string();
    if (::lstat(path.c_str(), &facts) != 0) return;
    const bool is_link = S_ISLNK(facts.st_mode);
    if (is_link && ::stat(path.c_str(), &facts) != 0) return;
    if (S_ISDIR(facts.st_mode)) {
      if (is_link || is_left_out(name)) return;
      if (depth < place_.depth) return folders_.push_back({path, depth + 1});
      has_deeper_ |= place_.depth > 0;
      return;
    }
    if (!is_log_name(name, place_.any_name)) return;
    if (!S_ISREG(facts.st_mode)) return found_.skipped.push_back({path, "is not a regular file"});
    ++place_.logs;
    const double changed =
        static_cast<double>(facts.st_mtim.tv_sec) + static_cast<double>(facts.st_mtim.tv_nsec) * 1e-9;
    found_.logs.push_back({path.lexically_normal(), path.lexically_relative(place_.folder), number_, changed});
  }

  LogPlace& place_;
  size_t number_;
  const SearchLimits& limits_;
  LogSearch& found_;
  std::deque<Folder> folders_;
  size_t entries_ = 0;
  bool has_deeper_ = false;
};

// A file in two places counts for the first, or for the first that states its framework or model.
void drop_repeated(std::vector<FoundLog>& logs, const std::vector<LogPlace>& places) {
  std::map<fs::path, size_t> seen;
  std::vector<FoundLog> once;
  for (FoundLog& log : logs) {
    std::error_code unreadable;
    const auto [known, is_new] = seen.try_emplace(fs::weakly_canonical(log.path, unreadable), once.size());
    if (is_new)
      once.push_back(std::move(log));
    else if (FoundLog& first = once[known->second]; !places[first.place].framework && places[first.place].model.empty())
      first.place = log.place, first.below = log.below;
  }
  logs = std::move(once);
}

}  // namespace

std::vector<LogPlace> list_log_places(const Experiment& experiment, const fs::path& output) {
  std::vector<LogPlace> places = {{.name = "output folder", .folder = output, .depth = k_deepest},
                                  {.name = "current folder", .folder = ".", .any_name = false}};
  constexpr std::string_view k_ending = ".installation";
  for (const auto& [key, path] : experiment.paths) {
    if (!key.ends_with(k_ending) || path.empty()) continue;
    const auto framework = parse_enum<Framework>(key.substr(0, key.size() - k_ending.size()));
    if (framework) add_installation(places, "paths." + key, path, *framework);
  }
  for (const auto& [framework, setup] : experiment.framework_setups)
    for (const InstallationEntry& entry : setup.installations)
      if (!entry.folder.empty() && entry.image.empty())
        add_installation(places, fmt::format("frameworks.{}.installations.{}", enum_name(framework), entry.label),
                         entry.folder, framework);
  return places;
}

LogSearch search_logs(std::vector<LogPlace>& places, const SearchLimits& limits) {
  LogSearch found;
  for (size_t i = 0; i < places.size(); ++i) PlaceSearch(places[i], i, limits, found).run();
  drop_repeated(found.logs, places);
  std::ranges::stable_sort(found.logs, std::ranges::greater(), &FoundLog::unix_time);
  return found;
}

}  // namespace tprimat::suite
