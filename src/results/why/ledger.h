#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "text/fields.h"
#include "trace/kernel_classes.h"

namespace tprimat::results {

// The terms of a ledger, in the order of its table. A moment of a step belongs to exactly one.
enum class Cause : uint8_t {
  work,             // more calls of the same operations, or larger ones: FLOPs, tokens, recomputation, experts
  micro_batches,    // the same work cut into other micro-batches
  products,         // matrix products and convolutions, per call of the same shape
  attention,        // per call
  memory_bound,     // element-wise operations, norms, softmax, loss, embedding, reductions, optimizer, copies, per call
  communication,    // exposed: nothing is computed meanwhile
  waiting,          // for another rank
  data,             // the host waits for input
  synchronisation,  // the host waits for the device, or allocates memory
  launch,           // the device waits for the host: Python, launches, garbage collection
  clocks,           // frequency, power cap, throttling
  one_sided,        // operations and kernels that only one side has
  outliers,         // single slow steps
  unknown_kernels,  // kernels of no known class
  unexplained       // the rest
};

// What a term consists of.
struct LedgerDetail {
  std::string what;    // "aten::mm [8192,4096] [4096,14336]"
  double seconds = 0;  // B - A
  std::optional<double> a_seconds, b_seconds;
  std::optional<double> a_calls, b_calls;

  static constexpr auto fields() {
    using D = LedgerDetail;
    return field_list(field("what", &D::what, "operation with its shapes, kernel, or kind of idle time"),
                      field("seconds", &D::seconds, "what it adds to the gap, s per step, B - A"),
                      field("a_seconds", &D::a_seconds, "time of it in A, s per step"),
                      field("b_seconds", &D::b_seconds, "time of it in B, s per step"),
                      field("a_calls", &D::a_calls, "calls in A per step"),
                      field("b_calls", &D::b_calls, "calls in B per step"));
  }
};

struct LedgerTerm {
  Cause cause = Cause::work;
  double seconds = 0;
  std::optional<double> low = {}, high = {};
  double a_seconds = 0, b_seconds = 0;
  std::vector<LedgerDetail> details = {};
  std::string sentence = {}, remedy = {};

  static constexpr auto fields() {
    using T = LedgerTerm;
    return field_list(
        field("cause", &T::cause, "name of the term"),
        field("seconds", &T::seconds, "what it adds to the gap, s per step, B - A: positive where B is slower"),
        field("ci95_low", &T::low, "lower end of its 95 % interval; absent: too few steps"),
        field("ci95_high", &T::high, "upper end"),
        field("a_seconds", &T::a_seconds, "time of this kind in A, s per step, whatever the cause of a difference"),
        field("b_seconds", &T::b_seconds, "the same in B"),
        field("details", &T::details, "what it consists of, the largest first; at most twenty"),
        field("sentence", &T::sentence, "of the largest terms, with figures; empty: the term is no finding"),
        field("remedy", &T::remedy, "what to do about it; empty: nothing in particular"));
  }
};

// Sums of durations: they can exceed the step where streams overlap.
struct LedgerClass {
  logs::KernelClass kernel_class = logs::KernelClass::other;
  double a_seconds = 0, b_seconds = 0, a_calls = 0, b_calls = 0;

  static constexpr auto fields() {
    using C = LedgerClass;
    return field_list(field("class", &C::kernel_class, "what the kernels do"),
                      field("a_seconds", &C::a_seconds, "sum of their durations in A, s per step"),
                      field("b_seconds", &C::b_seconds, "the same in B"),
                      field("a_calls", &C::a_calls, "kernels in A per step"),
                      field("b_calls", &C::b_calls, "the same in B"));
  }
};

struct LedgerSide {
  std::string label = {};
  std::vector<std::string> files = {};
  std::optional<std::string> device = {};
  int64_t ranks = 1, steps = 0;
  double step_seconds = 0;
  std::optional<double> low = {}, high = {};
  std::optional<double> recorded_step_seconds = {}, scale = {};
  std::optional<double> busy_seconds = {}, idle_seconds = {}, hidden_communication_seconds = {};

  static constexpr auto fields() {
    using S = LedgerSide;
    return field_list(
        field("label", &S::label, "name of the side"), field("files", &S::files, "traces and results behind it"),
        field("device", &S::device, "name of the device"), field("ranks", &S::ranks, "ranks with a trace"),
        field("steps", &S::steps, "steps that the traces record"),
        field("step_seconds", &S::step_seconds,
              "step that the ledger explains, s: without a profiler where a result states it"),
        field("ci95_low", &S::low, "lower end of its 95 % interval, s"), field("ci95_high", &S::high, "upper end, s"),
        field("recorded_step_seconds", &S::recorded_step_seconds, "mean of the recorded steps, s"),
        field("scale", &S::scale, "step without a profiler over the recorded step"),
        field("busy_seconds", &S::busy_seconds, "in which the device worked, s per recorded step"),
        field("idle_seconds", &S::idle_seconds, "in which it did not"),
        field("hidden_communication_seconds", &S::hidden_communication_seconds,
              "communication during which something was computed, s per recorded step"));
  }
};

// Why B takes longer than A, in seconds per step.
struct Ledger {
  LedgerSide a, b;
  double gap_seconds = 0;
  std::optional<double> low, high;
  std::vector<LedgerTerm> terms;
  std::vector<LedgerClass> classes;
  bool resolved = true;
  std::vector<std::string> findings;
  std::vector<std::string> notes;

  LedgerTerm& term(Cause cause) { return terms[static_cast<size_t>(cause)]; }
  const LedgerTerm& term(Cause cause) const { return terms[static_cast<size_t>(cause)]; }

  static constexpr auto fields() {
    using L = Ledger;
    return field_list(
        field("a", &L::a, "the side compared with"), field("b", &L::b, "the side explained"),
        field("gap_seconds", &L::gap_seconds, "step of B - step of A, s"),
        field("ci95_low", &L::low, "lower end of the gap's 95 % interval; absent: too few steps"),
        field("ci95_high", &L::high, "upper end"), field("terms", &L::terms, "one per cause; they add up to the gap"),
        field("classes", &L::classes, "kernels of both sides by class"),
        field("resolved", &L::resolved, "false: more than 5 % of the gap is unexplained"),
        field("findings", &L::findings, "the largest terms as sentences with their remedies, largest first"),
        field("notes", &L::notes, "what to know before trusting the figures"));
  }
};

}  // namespace tprimat::results
