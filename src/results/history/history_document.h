#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "history/history.h"
#include "report/comparison_document.h"
#include "text/fields.h"
#include "text/json_members.h"

// `tprimat compare --history --json`, as structs with field lists: its JSON and its schema follow from them.
namespace tprimat::results::document {

struct HistoryIndex {
  std::string path;
  int64_t files_read = 0, files_gone = 0;
  std::string note;

  static constexpr auto fields() {
    using I = HistoryIndex;
    return field_list(field("path", &I::path, "file of the index; empty: kept in memory only"),
                      field("files_read", &I::files_read, "result files that were new or changed"),
                      field("files_gone", &I::files_gone, "indexed files that no longer exist"),
                      field("note", &I::note, "repairs of the index; empty: none"));
  }
};

// The newest point against an earlier one.
struct Step {
  std::string file;
  Nullable<Estimate> change;
  TrendVerdict verdict = TrendVerdict::inconclusive;
  Nullable<std::string> why;

  static constexpr auto fields() {
    using S = Step;
    return field_list(field("file", &S::file, "first file of the earlier point"),
                      field("change", &S::change, "newest / earlier - 1; null: not comparable"),
                      field("verdict", &S::verdict, "the newest against the earlier point"),
                      field("why", &S::why, "reason why they are not comparable; null: they are"));
  }
};

struct Shift {
  std::string time, after, file;
  double level_before = 0, level_after = 0;

  static constexpr auto fields() {
    using S = Shift;
    return field_list(field("time", &S::time, "first point of the new level, UTC"),
                      field("after", &S::after, "last point of the old level, UTC"),
                      field("file", &S::file, "first file of the new level"),
                      field("level_before", &S::level_before, "mean of the old level, in the metric's unit"),
                      field("level_after", &S::level_after, "mean of the new level, in the metric's unit"));
  }
};

struct Copy {
  std::string path, of;

  static constexpr auto fields() {
    using C = Copy;
    return field_list(field("path", &C::path, "file that holds a run counted already"),
                      field("of", &C::of, "file that counts"));
  }
};

struct Point {
  std::string time;
  std::vector<std::string> files;
  std::vector<Copy> copies;
  RunStatus status = RunStatus::complete;
  Nullable<std::string> fault;
  Nullable<Estimate> figure;

  static constexpr auto fields() {
    using P = Point;
    return field_list(field("time", &P::time, "newest of its runs, UTC"),
                      field("files", &P::files, "result files, one per repetition"),
                      field("copies", &P::copies, "copies of these runs, which do not count"),
                      field("status", &P::status, "complete if all its runs are"),
                      field("fault", &P::fault, "error that the audit finds in a run; null: none"),
                      field("figure", &P::figure, "the metric, in its unit; null: not known"));
  }
};

struct Series {
  SeriesKey series;
  std::string title;
  Nullable<std::string> other_work;
  Nullable<Step> against_previous, against_best;
  std::vector<Shift> shifts;
  std::vector<Point> points;

  static constexpr auto fields() {
    using S = Series;
    return field_list(
        field("series", &S::series, "what all its runs have in common"),
        field("title", &S::title, "the same as a sentence"),
        field("other_work", &S::other_work, "difference in work from the first series of the same key; null: none"),
        field("against_previous", &S::against_previous, "newest point against the one before; null: none before"),
        field("against_best", &S::against_best, "newest point against the best before; null: none before"),
        field("shifts", &S::shifts, "shifts of the level, by time"), field("points", &S::points, "runs, by time"));
  }
};

struct HistoryReport {
  int64_t history_version = 1;
  std::string folder, metric, unit;
  double smallest_effect = 0, assumed_run_spread = 0;
  int64_t exit_status = 0;
  HistoryIndex index;
  std::vector<Series> series;
  std::vector<Gate> gates;
  std::vector<SkippedFile> skipped;

  static constexpr auto fields() {
    using H = HistoryReport;
    return field_list(
        field("history_version", &H::history_version, "version of this format"),
        field("folder", &H::folder, "folder of the results"), field("metric", &H::metric, "key of the metric"),
        field("unit", &H::unit, "unit of the metric; empty: a fraction or a count"),
        field("smallest_effect", &H::smallest_effect, "a ratio within 1 / (1 + this) and 1 + this counts as the same"),
        field("assumed_run_spread", &H::assumed_run_spread,
              "relative standard deviation between runs that is assumed for points of one run"),
        field("exit_status", &H::exit_status, "exit status of the command"),
        field("index", &H::index, "index of the folder"),
        field("series", &H::series, "runs that differ only by deliberate changes and noise"),
        field("gates", &H::gates, "--fail-if conditions on the newest point of each series"),
        field("skipped", &H::skipped, "files that are no results"));
  }
};

HistoryReport describe_history(const History& history);

}  // namespace tprimat::results::document
