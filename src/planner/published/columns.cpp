#include "published/columns.h"

#include <fmt/format.h>

#include <algorithm>

#include "text/words.h"

namespace tprimat::planner {
namespace {

bool is_commit(std::string_view text) {
  constexpr size_t k_shortest = 7, k_longest = 40;
  return text.size() >= k_shortest && text.size() <= k_longest &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// "karpathy/llm.c"
bool is_repository(std::string_view word) {
  constexpr std::string_view k_plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._/";
  return std::ranges::count(word, '/') == 1 && !word.starts_with('/') && !word.ends_with('/') &&
         word.find_first_not_of(k_plain) == std::string_view::npos;
}

// "README.md, line 12" of a repository.
std::string file_link(std::string_view repository, std::string_view place, std::string_view commit) {
  const size_t comma = place.find(", ");
  const std::string_view path = place.substr(0, comma);
  const std::string_view name = path.substr(path.rfind('/') + 1);
  const std::string kind = name.find('.') == std::string_view::npos ? "tree" : "blob";
  std::string line;
  constexpr std::string_view k_line = ", line ";
  if (comma != std::string_view::npos && place.substr(comma).starts_with(k_line))
    line = fmt::format("?plain=1#L{}", place.substr(comma + k_line.size()));
  return fmt::format("https://github.com/{}/{}/{}/{}{}", repository, kind, is_commit(commit) ? commit : "HEAD", path,
                     line);
}

}  // namespace

const std::vector<PublishedColumn>& published_columns() {
  static const std::vector<PublishedColumn> columns = {
      {"id", "name of the row; it does not change between versions of the data"},
      {"model", "as the source names it"},
      {"params", "parameters, as printed"},
      {"layers", "Transformer layers"},
      {"hidden", "hidden size"},
      {"ffn", "inner width of the MLP"},
      {"heads", "query heads"},
      {"kv_heads", "key and value heads"},
      {"vocab", "vocabulary"},
      {"gpu", "GPU, as the source names it"},
      {"n_gpus", "number of GPUs"},
      {"submitter", "who submitted the result to MLPerf"},
      {"system", "name of the submitted system"},
      {"framework", "program that trains, with its release where known"},
      {"precision", "number format of the matrix products, as printed"},
      {"seq", "tokens per sequence"},
      {"gbs", "sequences per step"},
      {"mbs", "sequences per micro-batch"},
      {"ga", "micro-batches per step and rank"},
      {"tp", "tensor-parallel ranks"},
      {"pp", "pipeline stages"},
      {"vp", "virtual stages per pipeline rank"},
      {"cp", "context-parallel ranks"},
      {"ep", "expert-parallel ranks"},
      {"dp", "data-parallel ranks"},
      {"sharding", "what data-parallel ranks split: zero0 to zero3, fsdp"},
      {"recompute", "activations that are computed twice"},
      {"step_time_s", "seconds per step"},
      {"tokens_per_s", "tokens/s of the whole job"},
      {"tokens_per_s_per_gpu", "tokens/s per GPU"},
      {"tflops_per_gpu", "TFLOP/s per GPU, by the source's count"},
      {"mfu_pct", "MFU in percent, by the source's count and peak"},
      {"hfu_pct", "HFU in percent, by the source's count and peak"},
      {"mem", "memory of a GPU; OOM: it did not suffice"},
      {"mem_unit", "unit of mem, and what it counts"},
      {"runs", "runs of the submission"},
      {"runs_success", "of them, those that reached the target"},
      {"ttt_min_olympic_mean", "minutes to the target: mean without the best and the worst run"},
      {"ttt_min_best", "minutes to the target of the best run"},
      {"ttt_min_worst", "minutes to the target of the worst run"},
      {"reading", "how the figures were obtained"},
      {"flop_convention", "count of FLOPs by which the printed TFLOP/s or MFU follow; empty: none does"},
      {"notes", "settings and doubts that have no column"},
      {"source", "where the figures stand"},
      {"commit", "version of the source that was read: a commit, a date, a paper"},
      {"also", "further sources, mostly of the layout"},
      {"reach", "who can open the source"}};
  return columns;
}

const std::vector<PublishedColumn>& published_readings() {
  static const std::vector<PublishedColumn> readings = {
      {"printed", "the source prints tokens/s"},
      {"step_time", "the source prints the step time; tokens/s follow from the batch"},
      {"median_of_log", "median over the steps of logs"},
      {"median_between_evaluations", "median over blocks of steps between evaluations, which may include evaluation"},
      {"mean_of_steps", "mean over some steps, as the source states"},
      {"one_step", "a single step"},
      {"read_from_chart", "read from a chart"},
      {"derived_from_duration", "tokens trained over the duration that the source states"},
      {"derived_from_flops", "the source prints TFLOP/s alone; tokens/s follow by its count of FLOPs"},
      {"derived_from_mfu", "the source prints MFU or HFU alone; tokens/s follow by its count and peak"},
      {"time_to_train", "time to the target alone"},
      {"one_layer", "the time of a single layer: no training step"},
      {"memory_only", "memory alone"}};
  return readings;
}

const std::vector<PublishedColumn>& published_reaches() {
  static const std::vector<PublishedColumn> reaches = {
      {"public repository", "a file of a public repository, or a public discussion"},
      {"arXiv", "a paper"},
      {"pull request", "a pull request, whose branch may be deleted"},
      {"discussion", "a public thread of a project's users"},
      {"draft", "a branch that its project has not published; figures may change"},
      {"personal report", "one person's measurements, not confirmed by others"}};
  return reaches;
}

std::string source_link(const PublishedRow& row) {
  const std::string& source = row.cell("source");
  const size_t blank = std::min(source.find(' '), source.size());
  const std::string_view first = std::string_view(source).substr(0, blank);
  const std::string_view rest = trim_blanks(std::string_view(source).substr(blank));
  if (first == "arXiv") return fmt::format("https://arxiv.org/abs/{}", rest.substr(0, rest.find(' ')));
  const size_t hash = first.find('#');  // "ROCm/TransformerEngine#79"
  if (!is_repository(first.substr(0, hash))) return "";
  if (hash != first.npos)
    return fmt::format("https://github.com/{}/issues/{}", first.substr(0, hash), first.substr(hash + 1));
  struct Thread {
    std::string_view word, folder;
  };
  for (const Thread& thread : {Thread{"pull request ", "pull"}, {"discussion ", "discussions"}})
    if (rest.starts_with(thread.word))
      return fmt::format("https://github.com/{}/{}/{}", first, thread.folder, rest.substr(thread.word.size()));
  return file_link(first, rest, row.cell("commit"));
}

}  // namespace tprimat::planner
