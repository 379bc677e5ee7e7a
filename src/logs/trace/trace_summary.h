#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/fields.h"
#include "trace/kernel_classes.h"
#include "trace/trace.h"

namespace tprimat::logs {

// Where a device's time went. A moment counts once, however many streams work in it (|S| is the length of a set S of
// moments):
//   compute set C: kernels other than collectives; communication set M: collectives; copy set Y: memory copies
//   and fills by the copy engines (gpu_memcpy, gpu_memset); B = C + M + Y.
//   span                   from the first begin to the last end of C, M and Y; of a step: the length of its mark
//   busy                   |B|
//   idle                   span - busy
//   compute                |C|
//   communication          |M|
//   exposed_communication  |M - C|: nothing is computed meanwhile
//   copy                   |Y|
//   exposed_copy           |Y - C - M|
// so that compute + exposed_communication + exposed_copy + idle = span, to the nanosecond. A collective's time includes
// its waiting for other ranks. TraceLens uses the same terms but counts fills with compute.
struct Timeline {
  std::optional<double> span_seconds, busy_seconds, idle_seconds, compute_seconds;
  std::optional<double> communication_seconds, exposed_communication_seconds, copy_seconds, exposed_copy_seconds;

  static constexpr auto fields() {
    using T = Timeline;
    return field_list(
        field("span_seconds", &T::span_seconds, "from the first begin to the last end, or of the step's mark"),
        field("busy_seconds", &T::busy_seconds, "in which anything ran"),
        field("idle_seconds", &T::idle_seconds, "span - busy"),
        field("compute_seconds", &T::compute_seconds, "in which a kernel ran that is no collective"),
        field("communication_seconds", &T::communication_seconds, "in which a collective ran or waited"),
        field("exposed_communication_seconds", &T::exposed_communication_seconds,
              "of that, the part in which nothing was computed"),
        field("copy_seconds", &T::copy_seconds, "in which memory was copied or filled by the copy engines"),
        field("exposed_copy_seconds", &T::exposed_copy_seconds, "of that, the part in which no kernel ran"));
  }
};

// Sums of durations: they can exceed busy time where streams overlap. share: of the same sum over everything that ran.
struct ClassTotal {
  KernelClass kernel_class = KernelClass::other;
  int64_t calls = 0;
  double total_seconds = 0.0, share = 0.0;

  static constexpr auto fields() {
    using T = ClassTotal;
    return field_list(field("class", &T::kernel_class, "what the kernels do, by their names"),
                      field("calls", &T::calls, "how often one ran"),
                      field("total_seconds", &T::total_seconds, "sum of durations"),
                      field("share", &T::share, "of the sum of durations of everything, 0..1"));
  }
};

struct KernelTotal {
  std::string name;
  KernelClass kernel_class = KernelClass::other;
  int64_t calls = 0;
  double total_seconds = 0.0, share = 0.0;

  static constexpr auto fields() {
    using T = KernelTotal;
    return field_list(
        field("name", &T::name, "as the trace has it"), field("class", &T::kernel_class, "what it does, by its name"),
        field("calls", &T::calls, "how often it ran"), field("total_seconds", &T::total_seconds, "sum of durations"),
        field("share", &T::share, "of the sum of durations of everything, 0..1"));
  }
};

struct StepSummary {
  int64_t step = 0;
  Timeline timeline;
  std::vector<ClassTotal> classes;  // of the work that began within the step

  static constexpr auto fields() {
    using S = StepSummary;
    return field_list(field("step", &S::step, "number of the profiler's step mark"),
                      field("timeline", &S::timeline, "within the mark"),
                      field("classes", &S::classes, "time by class, of what began within the mark"));
  }
};

// One device of a trace, or one rank or device of a report.
struct DeviceSummary {
  std::optional<int64_t> device, rank;
  std::optional<std::string> name, sheet;
  std::optional<int64_t> kernel_calls;   // kernels alone, collectives included
  std::optional<double> kernel_seconds;  // sum of their durations
  Timeline timeline;
  std::vector<ClassTotal> classes;   // longest first
  std::vector<KernelTotal> kernels;  // with copies and fills; longest first
  std::optional<std::string> step_marks;
  std::vector<StepSummary> steps;

  static constexpr auto fields() {
    using D = DeviceSummary;
    return field_list(
        field("device", &D::device, "number of the GPU in the trace"), field("rank", &D::rank, "of the process"),
        field("name", &D::name, "of the GPU, where the trace tells it"),
        field("sheet", &D::sheet, "of a report, that the figures stand in"),
        field("kernel_calls", &D::kernel_calls, "kernels that ran"),
        field("kernel_seconds", &D::kernel_seconds, "sum of their durations"),
        field("timeline", &D::timeline, "where the time went"),
        field("classes", &D::classes, "time by class, longest first"),
        field("kernels", &D::kernels, "time by kernel, longest first"),
        field("step_marks", &D::step_marks, "device: the marks span the step's work; host: the program's own time"),
        field("steps", &D::steps, "each step that the trace marks"));
  }
};

template <class Total>
void sort_longest_first(std::vector<Total>& totals) {
  std::stable_sort(totals.begin(), totals.end(),
                   [](const Total& a, const Total& b) { return a.total_seconds > b.total_seconds; });
}

// Sets the shares and orders the longest first.
template <class Total>
void share_out(std::vector<Total>& totals, double sum) {
  for (Total& total : totals) total.share = sum > 0.0 ? total.total_seconds / sum : 0.0;
  sort_longest_first(totals);
}

// Enters the kernels of a report, and their classes, whose shares are of all of them together.
void set_kernels(DeviceSummary& device, std::vector<KernelTotal> kernels);

// One per device with GPU events, by number. Throws Error if there are none.
std::vector<DeviceSummary> summarise_trace(const Trace& trace, std::string_view where);

// The name of a device. AMD's traces number the devices of the whole machine but list those of the process, so a number
// may be missing from the list; the name is still known if all of them are alike.
std::optional<std::string> device_name(const Trace& trace, int32_t device);

}  // namespace tprimat::logs
