#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "compare/gate.h"
#include "result/run_result.h"

namespace tprimat {

enum class Severity { note, warning, error };
template <>
struct EnumNames<Severity> {
  static constexpr std::pair<Severity, std::string_view> values[] = {
      {Severity::note, "note"}, {Severity::warning, "warning"}, {Severity::error, "error"}};
};

// One fact that shows a finding. Of a pair: its value on either side. Of one run: what it states, and what was found.
struct Evidence {
  std::string what;                // "hidden size"
  std::string reference, subject;  // or stated and found
};

// What the audit found. An error means: not the same thing was measured, so nobody is declared faster.
struct Finding {
  std::string code;  // "sequence_length"
  Severity severity = Severity::note;
  std::string sentence;  // with the figures that show it
  std::string remedy;    // what to do
  std::string why = {};  // what it does to the comparison
  std::vector<Evidence> evidence = {};
};

// A result file and what it holds.
struct LoadedRun {
  std::string path;
  RunResult result;
};

struct SkippedFile {
  std::string path, reason;
};

// One participant: a run, or its repetitions (files that differ only in _r<k>).
struct Contender {
  std::string letter;           // "A": short name in tables and plots, unique within its model
  std::string label;            // "AMD Primus", longer where that is not unique
  std::vector<LoadedRun> runs;  // at least one
  std::vector<Finding> findings;
  const RunResult& first() const { return runs.front().result; }
};

enum class Verdict { faster, slower, same, inconclusive };
template <>
struct EnumNames<Verdict> {
  static constexpr std::pair<Verdict, std::string_view> values[] = {{Verdict::faster, "faster"},
                                                                    {Verdict::slower, "slower"},
                                                                    {Verdict::same, "same"},
                                                                    {Verdict::inconclusive, "inconclusive"}};
};

// What the audit makes of two participants: an error of the pair or of either side forbids the comparison, a warning is
// a note that belongs beside it.
enum class Fairness { comparable, with_notes, not_comparable };
template <>
struct EnumNames<Fairness> {
  static constexpr std::pair<Fairness, std::string_view> values[] = {{Fairness::comparable, "comparable"},
                                                                     {Fairness::with_notes, "with notes"},
                                                                     {Fairness::not_comparable, "not comparable"}};
};

// Subject against reference, both indices into the group's contenders.
struct Pair {
  size_t subject = 0, reference = 0;
  std::vector<Finding> findings;  // of the two together; each contender has its own besides
  bool comparable = true;         // no error-severity finding of the pair or of either side
  Fairness fairness = Fairness::comparable;
  std::optional<Estimate> ratio;  // tokens/s per device, subject / reference; there even when not comparable
  Verdict verdict = Verdict::inconclusive;
  std::string explanation;               // why this verdict, with the interval
  std::map<std::string, double> ratios;  // subject / reference of further metrics, by key
};

// Runs of one model. Different models are never a pair.
struct ModelGroup {
  std::string model;
  std::vector<Contender> contenders;
  std::vector<Pair> pairs;
  bool has_baseline = false;  // the first contender is it, and every pair's reference
  bool against_best = false;  // too many to pair each with each: the first is the best, and every pair's reference
};

struct Comparison {
  std::vector<ModelGroup> groups;
  std::vector<SkippedFile> skipped;
  double smallest_effect = 0.01;  // a ratio within 1/(1+this) .. 1+this is "same"
  bool force = false;  // verdicts are printed for pairs that are not comparable, with the reasons beside them
  std::vector<GateResult> gates = {};
};

}  // namespace tprimat
