#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compare/audit.h"
#include "result/run_result.h"
#include "text/enum_names.h"

namespace tprimat::results {

inline std::string words(const std::string& value) { return value; }
inline std::string words(int64_t value) { return fmt::format("{}", value); }
inline std::string words(double value) { return fmt::format("{:g}", value); }
inline std::string words(bool value) { return value ? "yes" : "no"; }
template <NamedEnum E>
std::string words(E value) {
  return std::string(enum_name(value));
}

template <class T>
bool is_equal(const T& a, const T& b) {
  return a == b;
}
// Files round, and single precision writes 0.1 as 0.10000000149.
inline bool is_equal(double a, double b) { return std::fabs(a - b) <= 1e-5 * std::max(std::fabs(a), std::fabs(b)); }

// Known on both sides and different.
template <class T>
void add(Evidences& evidence, const char* what, const std::optional<T>& reference, const std::optional<T>& subject) {
  if (reference && subject && !is_equal(*reference, *subject))
    evidence.push_back({what, words(*reference), words(*subject)});
}
template <class T>
void add(Evidences& evidence, const char* what, const T& reference, const T& subject) {
  add(evidence, what, std::optional<T>(reference), std::optional<T>(subject));
}

// Evidence of a difference between two runs; nothing if they agree or a side is unknown.
using Shown = std::optional<Proof>;
inline Shown show(Evidences evidence) { return evidence.empty() ? Shown() : Shown(Proof(std::move(evidence))); }

template <class T>
Shown show_difference(const char* what, const std::optional<T>& reference, const std::optional<T>& subject) {
  Evidences evidence;
  add(evidence, what, reference, subject);
  return show(std::move(evidence));
}

// By the shape, else as the result states it, else by the catalogue's model of that full name.
std::optional<int64_t> parameters_of(const RunResult& run);

// Differences that change the work of a model: layers, widths, heads, experts, a window shorter than the sequence.
// Without both shapes the parameter counts decide, and without both counts the full names.
Evidences find_other_work(const RunResult& reference, const RunResult& subject);

// Differences between models of about the same work: kind of norm and positions, biases, padding of the vocabulary.
Evidences find_other_details(const RunResult& reference, const RunResult& subject);

// Neither shapes, counts nor full names show that the models are equal.
bool is_model_unproven(const RunResult& reference, const RunResult& subject);

// Settings as the frameworks printed them, known on both sides and different; other names of one setting are one.
Evidences find_other_data_settings(const RunResult& reference, const RunResult& subject);  // what is computed
Evidences find_synthetic_data(const RunResult& reference, const RunResult& subject);       // where tokens come from
Evidences find_other_tuning(const RunResult& reference, const RunResult& subject);         // how it is computed

}  // namespace tprimat::results
