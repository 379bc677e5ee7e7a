#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "archive/verify.h"
#include "extract/read_log.h"
#include "result/run_result.h"
#include "result/step_record.h"
#include "text/json.h"

// The checks of a result against each of its witnesses.
namespace tprimat::results {

// Validation losses by step, from the step records and from the log; results do not hold them.
struct Evaluations {
  std::string records, log;  // their files
  std::optional<std::map<int64_t, double>> recorded, printed;
};

// A result as stored in its file, and as read.
struct StatedResult {
  std::string file;
  Json stored;
  RunResult read;
  bool of_suite = false;        // see is_of_suite()
  bool skip_intervals = false;  // ci95_low and ci95_high of another method
  std::shared_ptr<Evaluations> evaluations = std::make_shared<Evaluations>();
};

// One result against one witness.
struct ResultCheck {
  const StatedResult& result;
  std::string witness;  // its file; empty: the result itself
  Verification& found;

  void refute(const std::string& what, const std::string& stated, const std::string& follows) const;

  // Counts a fact, and refutes it if the texts differ.
  void compare(const std::string& what, const std::string& stated, const std::string& follows) const;
};

// The audit entry for a setting that had another value than requested; nullptr: none.
const AuditEntry* find_audited(const RunResult& run, std::string_view key);

// Within 1e-6 of each other, or neither a number.
bool is_same_figure(double stated, double derived);

// The same for numbers of JSON, but whole numbers must be equal.
bool is_same_number(const Json& stated, const Json& derived);

// "0.25"; "no number" for NaN and infinities.
std::string show_figure(double figure);

// Whether a secret was redacted in a text. Two such texts count as equal: they may have been cut at different lengths.
bool is_hidden(const Json& value);

// A word without its quotes, a number as JSON prints it, "nothing" for null.
std::string show_word(const Json& value);

// Compares every number in `stated`, at any depth, with its counterpart in `derived`. A missing member of an object in
// `stated` is not a statement; a missing item of a list is. `where` names the place: "statistics".
void check_numbers(const ResultCheck& check, const std::string& where, const Json& stated, const Json& derived);

// What a word that the log lacks means: the user may have added it, or the result is wrong.
enum class Silence { allows, denies };

// Compares every string, true and false in `stated` with its counterpart in `derived`.
void check_words(const ResultCheck& check, const std::string& where, const Json& stated, const Json& derived,
                 Silence silence);

// Compares who chose the experts and how tokens reached them with what the witness tells. A word that the result omits
// fails as well: without it, forced balance would pass for learned routing.
void check_routing(const ResultCheck& check, const ExpertFigures& told);

// Names and contents of the files that the suite writes before a run. Empty contents: not in the archive.
struct RequestFiles {
  std::string spec_name, spec, launch_name, launch;
};

// Compares every setting of a result with the specification of its run, and its config_hash with both files.
void check_request(const StatedResult& result, const RequestFiles& files, Verification& found);

// Whether the suite made a result, by its hash, its sources or its trainer: omitting a single fact cannot hide it. Only
// then do its facts use our names, and its memory peaks follow from its series and sensors.
bool is_of_suite(const RunResult& result);

// Compares facts of a result with other parts of the same result. Results of other tools may use other names and are
// skipped.
void check_own_facts(const StatedResult& result, Verification& found);

// Compares how a run ended, as its file states it, with the series of the same file: readers judge these themselves and
// would overwrite the status. Reason and kind of a failure must name the same cause.
void check_status(const StatedResult& result, Verification& found);

// Compares the status of a run of the suite with the end of its log: a complete run shows no failure there, and the
// reason of a failure quotes the log.
void check_end_of_log(const ResultCheck& check, std::string_view log, const logs::ReadLog& read);

using RecordsByStep = std::map<int64_t, StepRecord>;

// Of a step that was recorded more than once the last record counts.
RecordsByStep index_records(const std::vector<StepRecord>& records);
RecordsByStep parse_records(const std::string& lines);

// The series of a result as records.
RecordsByStep records_of(const RunResult& result);

// Sets what a result's series tell of its experts in the records of their steps.
void add_expert_series(RecordsByStep& records, const RunResult& result);

// Compares time, loss, learning rate, gradient norm, memory, and load and losses of experts of every step of a result
// with its record. A step without a record fails, and so does a record or a figure that the result omits.
void check_series(const ResultCheck& check, const RecordsByStep& records);

// Compares the times of a result's profiled steps with their records.
void check_profile(const ResultCheck& check, const RecordsByStep& records);

// Compares the other fields of step records that a trainer wrote: time stamps, loss scales, tokens, skipped updates.
void check_work(const ResultCheck& check, const RecordsByStep& records);

// The time stamps of step records are a second clock: the distance between the ends of two steps is the time of the
// later one, and no run starts after its first step. Medians over the steps are compared, so evaluations, checkpoints
// and clock changes do not matter.
void check_clock(const ResultCheck& check, const RecordsByStep& records);

// Compares the time stamps of a log with the step times that it prints. Time stamps are rounded to seconds, and
// frameworks do not time all of a step, so differences below a quarter are accepted.
void check_log_clock(const ResultCheck& check);

struct LogText {
  std::string name, text;
};

using StatedResults = std::vector<std::shared_ptr<const StatedResult>>;

// Whether a result names its log and the format. The format of a log is detected again where this program does not know
// the stated one.
bool is_from_log(const RunResult& result);

// Reads the log again as for the results, which have one format, and compares every figure, word and setting of theirs
// with those from the log: series, reported figures, memory, settings, rates. Facts that the user added because the log
// lacks them are taken from the result.
void check_log(const StatedResults& results, const LogText& log, Verification& found);

// Compares every line of our own trainer with the result, to the printed digits: each header, each step, each
// evaluation. Readers of logs merge lines that repeat a step and keep the first header, so the lines are read here one
// by one. A step without a line fails, and so does a line without a step.
void check_own_log(const ResultCheck& check, std::string_view log);

// Compares the validation losses of step records and log, once both have been read.
void check_evaluations(const StatedResult& result, Verification& found);

}  // namespace tprimat::results
