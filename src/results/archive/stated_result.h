#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "archive/verification.h"
#include "result/run_result.h"
#include "text/json.h"

namespace tprimat::results {

// Validation losses by step, which no result holds: those of the step records and those of the log.
struct Evaluations {
  std::string records, log;  // their files
  std::optional<std::map<int64_t, double>> recorded, printed;
};

// A result as its file has it, and as it reads.
struct StatedResult {
  std::string file;
  Json stored;
  RunResult read;
  bool of_suite = false;        // see is_of_suite()
  bool skip_intervals = false;  // ci95_low and ci95_high, which another method made
  std::shared_ptr<Evaluations> evaluations = std::make_shared<Evaluations>();
};

// One result against one witness.
struct ResultCheck {
  const StatedResult& result;
  std::string witness;  // its file; empty: the result itself
  Verification& found;

  void refute(const std::string& what, const std::string& stated, const std::string& follows) const;

  // Counts a fact, and refutes it where the words differ.
  void compare(const std::string& what, const std::string& stated, const std::string& follows) const;
};

// What the audit of a run says about a setting that had another value than asked for; nullptr: nothing.
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

// Holds every number in `stated`, however deep, against the one at its place in `derived`. What `stated` leaves out of
// an object is no statement; what it leaves out of a list is. `where` names the place: "statistics".
void check_numbers(const ResultCheck& check, const std::string& where, const Json& stated, const Json& derived);

// What a word means that the log does not have: the user may have added it, or nobody could.
enum class Silence { allows, denies };

// Holds every string, true and false in `stated` against the one at its place in `derived`.
void check_words(const ResultCheck& check, const std::string& where, const Json& stated, const Json& derived,
                 Silence silence);

}  // namespace tprimat::results
