#include "cli/why_sides.h"

#include <fmt/format.h>
#include <glob.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "base/error.h"
#include "result/result_file.h"
#include "text/words.h"
#include "trace/rocprof_csv.h"
#include "trace/trace_format.h"
#include "why/pipeline_ledger.h"
#include "why/totals_ledger.h"

namespace tprimat::cli {
namespace {

namespace fs = std::filesystem;

// A result states its version within its first bytes; a trace does not.
bool is_result_file(const fs::path& path) {
  if (path.extension() != ".json") return false;
  std::ifstream file(path, std::ios::binary);
  std::string begin(64 << 10, '\0');
  file.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  begin.resize(static_cast<size_t>(file.gcount()));
  return begin.find("\"schema_version\"") != std::string::npos && begin.find("\"traceEvents\"") == std::string::npos;
}

bool looks_like_trace(const fs::path& path) {
  constexpr auto k_endings = std::to_array<std::string_view>({".json", ".gz", ".zst", ".sqlite", ".pftrace", ".csv"});
  const std::string ending = path.extension().string();
  return !path.filename().string().starts_with(".") && std::ranges::find(k_endings, ending) != k_endings.end();
}

// Those of a folder, by name.
std::vector<fs::path> list_files(const fs::path& folder, bool (*is_kind)(const fs::path&)) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.is_regular_file() && is_kind(entry.path())) files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

// The files of a pattern with *, ? or [], which a shell left alone; the word itself where it is none.
std::vector<fs::path> expand_pattern(const std::string& word) {
  if (word.find_first_of("*?[") == std::string::npos || fs::exists(word)) return {word};
  glob_t found{};
  const int status = glob(word.c_str(), 0, nullptr, &found);
  std::vector<fs::path> files;
  for (size_t i = 0; status == 0 && i < found.gl_pathc; ++i) files.emplace_back(found.gl_pathv[i]);
  globfree(&found);
  if (files.empty()) throw Error(Problem{"matches no file", word, "name traces or a result"});
  return files;
}

std::vector<fs::path> expand(const std::string& word) {
  if (fs::exists(word)) return {word};
  std::vector<fs::path> files;
  for (const std::string_view part : split(word, ','))
    if (!part.empty()) std::ranges::move(expand_pattern(std::string(part)), std::back_inserter(files));
  if (files.empty()) throw Error(Problem{"names no file", "'" + word + "'", "name a result, a trace or a folder"});
  std::set<fs::path> seen;
  for (const fs::path& file : files)
    if (!seen.insert(fs::weakly_canonical(file)).second)
      throw Error(Problem{"is named twice", file.string(), "name each rank's trace once"});
  return files;
}

std::string describe_steps(const logs::Trace& trace) {
  if (trace.marks.empty()) return "name a trace that marks steps";
  const auto [first, last] = std::ranges::minmax(trace.marks, {}, &logs::StepMark::step);
  return fmt::format("it marks steps {} to {}: name some of them", first.step, last.step);
}

void keep_steps(logs::Trace& trace, const suite::StepRange& steps, const fs::path& file) {
  const std::string recorded = describe_steps(trace);
  std::erase_if(trace.marks,
                [&](const logs::StepMark& mark) { return mark.step < steps.first || mark.step > steps.last; });
  if (trace.marks.empty())
    throw Error(Problem{fmt::format("marks none of the steps {} to {}", steps.first, steps.last), file.string(),
                        fmt::format("{}, or omit --steps", recorded)});
}

logs::Trace prepare(logs::Trace trace, const fs::path& file, const std::optional<suite::StepRange>& steps) {
  logs::find_phases(trace);
  if (steps) keep_steps(trace, *steps, file);
  return trace;
}

results::SideInput load_traces(const std::string& label, const std::vector<fs::path>& files,
                               const std::optional<suite::StepRange>& steps) {
  results::SideInput side{.label = label};
  for (const fs::path& file : files)  // a file of Nsight Systems can hold several ranks
    for (logs::Trace& trace : logs::read_process_traces(file, logs::TraceContent::everything)) {
      side.ranks.push_back(prepare(std::move(trace), file, steps));
      side.files.push_back(file.string());
    }
  return side;
}

// Those of a result's profile; none where it has no profile.
std::vector<fs::path> list_traces(const fs::path& path, const RunResult& result) {
  std::vector<fs::path> files;
  if (!result.profile) return files;
  for (const std::string& file : result.profile->files) files.push_back(path.parent_path() / file);
  return files;
}

results::SideInput load_recorded(const fs::path& path, const RunResult& result, const std::vector<fs::path>& traces,
                                 const std::optional<suite::StepRange>& steps) {
  results::SideInput side = load_traces(path.stem().string(), traces, steps);
  side.files.insert(side.files.begin(), path.string());
  side.result = result;
  return side;
}

results::SideInput load_result_side(const fs::path& path, const std::optional<suite::StepRange>& steps) {
  const RunResult result = load_run_result(path);
  const std::vector<fs::path> traces = list_traces(path, result);
  if (traces.empty())
    throw Error(Problem{"has no profile", path.string(),
                        "record one with tprimat run --profile-steps 3, or name the traces instead"});
  return load_recorded(path, result, traces, steps);
}

std::string name_of_folder(const fs::path& path) {
  return (path.filename().empty() ? path.parent_path() : path).filename().string();
}

results::SideInput load_folder(const fs::path& folder, const std::optional<suite::StepRange>& steps) {
  const std::vector<fs::path> results = list_files(folder, is_result_file);
  if (results.size() == 1) return load_result_side(results.front(), steps);
  if (results.size() > 1)
    throw Error(Problem{fmt::format("holds {} results", results.size()), folder.string(),
                        fmt::format("name one of them, such as {}", results.front().string())});
  if (!logs::find_rocprof_csv(folder).empty()) return load_traces(name_of_folder(folder), {folder}, steps);
  const std::vector<fs::path> traces = list_files(folder, looks_like_trace);
  if (traces.empty())
    throw Error(Problem{"holds neither a result nor traces", folder.string(), "name a folder with one trace per rank"});
  return load_traces(name_of_folder(folder), traces, steps);
}

results::PipelineSide load_pipeline_side(const std::string& path) {
  return {name_of_folder(path), {path}, results::report_pipeline(results::load_pipeline(path))};
}

bool is_tracelens(const std::string& path) { return fs::is_directory(path) && logs::is_tracelens_folder(path); }

results::TotalsInput load_totals(const std::string& path) {
  return {name_of_folder(path), path, logs::read_recorded_totals(path)};
}

// "h100" of "runs/h100.json.gz"
std::string label_of(const fs::path& path) {
  std::string name = path.filename().string();
  for (const std::string_view ending : {".gz", ".zst", ".json", ".pt.trace", ".sqlite", ".pftrace", ".csv"})
    if (name.size() > ending.size() && name.ends_with(ending)) name.erase(name.size() - ending.size());
  return name;
}

}  // namespace

results::SideInput load_side(const std::string& word, const std::optional<suite::StepRange>& steps) {
  const std::vector<fs::path> files = expand(word);
  if (files.size() == 1) {
    const fs::path& file = files.front();
    if (!fs::exists(file)) throw Error(Problem{"does not exist", file.string(), "name a result, a trace or a folder"});
    if (fs::is_directory(file)) return load_folder(file, steps);
    if (is_result_file(file)) return load_result_side(file, steps);
    return load_traces(label_of(file), files, steps);
  }
  return load_traces(label_of(files.front()) + fmt::format(" and {} more", files.size() - 1), files, steps);
}

std::optional<results::SideInput> load_profiled(const std::string& path, const RunResult& result) {
  const std::vector<fs::path> traces = list_traces(path, result);
  const bool is_whole = std::ranges::all_of(traces, [](const fs::path& trace) { return fs::exists(trace); });
  if (traces.empty() || !is_whole) return std::nullopt;
  return load_recorded(path, result, traces, std::nullopt);
}

bool is_pipeline(const std::string& path) { return fs::exists(path) && results::is_pipeline_input(path); }

std::optional<results::Ledger> explain_sums(const std::string& a, const std::string& b) {
  const auto both = [&](auto is_kind, const char* kind) {
    const bool of_a = is_kind(a), of_b = is_kind(b);
    if (of_a != of_b)
      throw Error(Problem{fmt::format("is no {}, and {} is one", kind, of_a ? a : b), of_a ? b : a,
                          "name two sides of the same kind"});
    return of_a;
  };
  if (both(is_pipeline, "pipeline's record"))
    return results::make_pipeline_ledger(load_pipeline_side(a), load_pipeline_side(b));
  if (both(is_tracelens, "TraceLens report")) return results::make_totals_ledger(load_totals(a), load_totals(b));
  return std::nullopt;
}

void tell_apart(results::SideInput& a, results::SideInput& b) {
  if (a.label != b.label) return;
  const auto folder_of = [](const results::SideInput& side) {
    return side.files.empty() ? "" : fs::absolute(side.files.front()).parent_path().filename().string();
  };
  const std::string of_a = folder_of(a), of_b = folder_of(b);
  if (of_a == of_b) return void((a.label += " (A)", b.label += " (B)"));
  a.label = of_a + "/" + a.label, b.label = of_b + "/" + b.label;
}

}  // namespace tprimat::cli
