#include "trace/pipeline_records.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/files.h"
#include "text/json.h"
#include "text/words.h"

namespace tprimat::logs {
namespace {

constexpr double k_longest_milliseconds = 1e12;  // 31 years: sums of these in ns fit
constexpr std::string_view k_prefix = "pp_rank_", k_suffix = ".json";

std::optional<int64_t> parse_index(std::string_view text) {
  const auto index = parse_number<int64_t>(text);
  return index && *index >= 0 ? index : std::nullopt;
}

std::optional<int64_t> rank_of_file(const std::string& name) {
  if (!name.starts_with(k_prefix) || !name.ends_with(k_suffix)) return std::nullopt;
  const std::string_view digits(name);
  return parse_index(digits.substr(k_prefix.size(), digits.size() - k_prefix.size() - k_suffix.size()));
}

int64_t read_time(const Json& value, const std::string& where) {
  const double milliseconds = value.is_number() ? value.get<double>() : -1.0;
  if (!(milliseconds >= 0.0 && milliseconds <= k_longest_milliseconds))
    throw Error(Problem{"must be a time in milliseconds that is not negative", where, ""});
  return std::llround(milliseconds * 1e6);
}

// The intervals between two lists of times.
std::vector<Span> read_intervals(const Json& record, const std::string& kind, const std::string& where) {
  const Json* const begins = record.find(kind + "_start");
  const Json* const ends = record.find(kind + "_end");
  if (begins == nullptr || ends == nullptr || !begins->is_array() || begins->size() != ends->size())
    throw Error(Problem{fmt::format("needs as many {0}_start as {0}_end", kind), where, ""});
  std::vector<Span> spans;
  for (size_t i = 0; i < begins->size(); ++i) {
    const std::string place = fmt::format("{}, {} {}", where, kind, i);
    spans.push_back({read_time((*begins)[i], place), read_time((*ends)[i], place)});
    if (spans.back().length() < 0) throw Error(Problem{"ends before it begins", place, ""});
  }
  return spans;
}

PipelineIteration read_iteration(const std::string& key, const Json& record, std::string_view file) {
  const std::string where = fmt::format("{}: iteration {}", file, key);
  const auto number = parse_index(key);
  if (!number || !record.is_object() || !record.contains("total"))
    throw Error(Problem{"is no record of an iteration: it needs a number, its total and its intervals", where, ""});
  PipelineIteration iteration{*number, read_time(record["total"], where), std::nullopt,
                              read_intervals(record, "fwd", where), read_intervals(record, "bwd", where)};
  if (const Json* const memory = record.find("memory"); memory != nullptr && memory->is_number())
    iteration.memory_gigabytes = memory->get<double>();
  return iteration;
}

// Ranks that did not run the same iterations, or a number of intervals that the layout rules out.
void check_agreement(const PipelineRecords& records, const std::filesystem::path& folder) {
  const auto refuse = [&](const PipelineRank& rank, int64_t iteration, std::string_view what) {
    throw Error(Problem{fmt::format("rank {}, iteration {}: {}", rank.rank, iteration, what), folder.string(),
                        "give the records of one run, all ranks"});
  };
  const auto& layout = records.layout;
  for (const PipelineRank& rank : records.ranks) {
    const PipelineRank& first = records.ranks.front();
    if (rank.iterations.size() != first.iterations.size())
      refuse(rank, rank.iterations.back().iteration, "other ranks have another number of iterations");
    for (size_t i = 0; i < rank.iterations.size(); ++i) {
      const PipelineIteration& mine = rank.iterations[i];
      const PipelineIteration& theirs = first.iterations[i];
      if (mine.iteration != theirs.iteration) refuse(rank, mine.iteration, "other ranks have no such iteration");
      const size_t expected = layout.micro_batches
                                  ? static_cast<size_t>(*layout.micro_batches * layout.virtual_stages.value_or(1))
                                  : theirs.forward.size();
      if (mine.forward.size() != expected || mine.backward.size() != expected)
        refuse(rank, mine.iteration,
               fmt::format("has {} forward and {} backward intervals, not {}", mine.forward.size(),
                           mine.backward.size(), expected));
    }
  }
}

std::vector<std::pair<int64_t, std::filesystem::path>> rank_files(const std::filesystem::path& folder) {
  std::vector<std::pair<int64_t, std::filesystem::path>> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    if (const auto rank = rank_of_file(entry.path().filename().string())) files.emplace_back(*rank, entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

bool is_pipeline_folder(const std::filesystem::path& folder) { return !rank_files(folder).empty(); }

PipelineRank parse_pipeline_rank(std::string_view json, std::string_view where, int64_t rank) {
  const Json document = parse_json(json, where, SameKeys::refused);
  if (!document.is_object() || document.empty())
    throw Error(Problem{"holds no iterations of a pipeline", std::string(where), ""});
  PipelineRank read{rank, {}};
  for (const auto& [key, record] : document.items()) read.iterations.push_back(read_iteration(key, record, where));
  std::sort(read.iterations.begin(), read.iterations.end(),
            [](const auto& a, const auto& b) { return a.iteration < b.iteration; });
  const auto twice = std::adjacent_find(read.iterations.begin(), read.iterations.end(),
                                        [](const auto& a, const auto& b) { return a.iteration == b.iteration; });
  if (twice != read.iterations.end())
    throw Error(Problem{fmt::format("holds iteration {} twice", twice->iteration), std::string(where), ""});
  return read;
}

PipelineLayout parse_pipeline_layout(std::string_view json, std::string_view where) {
  constexpr int64_t k_largest = 10'000'000;  // products of two fit
  const Json document = parse_json(json, where, SameKeys::refused);
  const auto figure = [&](std::string_view key) -> std::optional<int64_t> {
    const Json* const value = document.find(key);
    if (value == nullptr || value->is_null()) return std::nullopt;
    if (!value->is_number_integer() || value->get<int64_t>() < 1 || value->get<int64_t>() > k_largest)
      throw Error(Problem{fmt::format("{} must be a whole number from 1", key), std::string(where), ""});
    return value->get<int64_t>();
  };
  return {figure("world_size"), figure("dp_size"), figure("tp_size"), figure("ep_size"),
          figure("pp_size"),    figure("vp_size"), figure("num_mbs"), figure("train_iters")};
}

PipelineRecords read_pipeline_records(const std::filesystem::path& folder) {
  const auto files = rank_files(folder);
  if (files.empty())
    throw Error(Problem{"holds no records of a pipeline", folder.string(), "give a folder with pp_rank_0.json"});
  PipelineRecords records;
  const auto config = folder / "config.json";
  if (std::filesystem::exists(config)) records.layout = parse_pipeline_layout(read_file(config), config.string());
  for (const auto& [rank, file] : files) {
    if (!records.ranks.empty() && records.ranks.back().rank == rank)
      throw Error(Problem{fmt::format("rank {} is there twice", rank), folder.string(), "remove one of its files"});
    records.ranks.push_back(parse_pipeline_rank(read_file(file), file.string(), rank));
  }
  check_agreement(records, folder);
  return records;
}

}  // namespace tprimat::logs
