#pragma once

#include <string>

#include "archive/verification.h"
#include "text/json.h"

namespace tprimat::results {

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

// Where numbers stand, and which of them are passed over.
struct NumberPlace {
  std::string file, where;      // where: "statistics"
  bool skip_intervals = false;  // ci95_low and ci95_high, which another method made
  std::string witness = {};     // the file of the derived numbers; empty: `file`
};

// Holds every number in `stated`, however deep, against the one at its place in `derived`. What `stated` leaves out of
// an object is no statement; what it leaves out of a list is.
void check_numbers(const NumberPlace& place, const Json& stated, const Json& derived, Verification& found);

// What a word means that the log does not have: the user may have added it, or nobody could.
enum class Silence { allows, denies };

// Holds every string, true and false in `stated` against the one at its place in `derived`.
void check_words(const NumberPlace& place, const Json& stated, const Json& derived, Silence silence,
                 Verification& found);

}  // namespace tprimat::results
