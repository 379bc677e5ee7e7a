#include "why/work_rows.h"

#include <algorithm>
#include <map>

#include "stats/descriptive.h"

namespace tprimat::results {
namespace {

using logs::KernelClass;
using logs::Trace;

constexpr double k_stall_factor = 8;        // of the median of an operation's calls,
constexpr double k_shortest_stall = 1e6;    // ns
constexpr size_t k_min_calls = 8;           // that show a median
constexpr int64_t k_short_gap = 1'000'000;  // ns; a longer one is an event of its own, not the cost of a launch
constexpr double k_seconds = 1e-9;

// "aten::cudnn_batch_norm" and "aten::miopen_batch_norm" are the same operation.
std::string without_vendor(std::string name) {
  for (const std::string_view vendor : {"cudnn_", "miopen_", "Cudnn", "Miopen", "hipblaslt_", "cublaslt_"})
    if (const size_t at = name.find(vendor); at != std::string::npos) name.erase(at, vendor.size());
  return name;
}

size_t step_at(const std::vector<StepWindow>& windows, int64_t time) {
  const auto after = std::ranges::upper_bound(windows, time, {}, [](const StepWindow& w) { return w.span.begin; });
  return after == windows.begin() ? 0 : static_cast<size_t>(after - windows.begin() - 1);
}

class WorkCollector {
 public:
  WorkCollector(const Trace& trace, const StepPieces& pieces)
      : trace_(trace), cut_(pieces), steps_(pieces.windows.size()) {
    for (auto& each : work_.moments) each.assign(steps_, 0.0);
  }

  StepWork collect() {
    work_.on_gpu = cut_.device.has_value();
    for (const StepWindow& window : cut_.windows)
      work_.step_seconds.push_back(static_cast<double>(window.length) * k_seconds);
    add_after_mark();
    if (!cut_.device) find_typical();
    for (const Piece& piece : cut_.pieces) add(piece);
    count();
    work_.busy_seconds = static_cast<double>(cut_.busy) * k_seconds / static_cast<double>(steps_);
    work_.hidden_communication_seconds =
        static_cast<double>(cut_.hidden_communication) * k_seconds / static_cast<double>(steps_);
    return std::move(work_);
  }

 private:
  // Spread over the steps: what the first does before its first work, the last does after its mark.
  void add_after_mark() {
    int64_t after = 0;
    for (const StepWindow& window : cut_.windows) after += window.span.length() - window.length;
    work_.after_mark.assign(steps_, static_cast<double>(after) * k_seconds / static_cast<double>(steps_));
  }

  void add(const Piece& piece) {
    for (size_t step = step_at(cut_.windows, piece.span.begin); step < steps_; ++step) {
      const logs::Span& window = cut_.windows[step].span;
      if (window.begin >= piece.span.end) return;
      const int64_t inside = std::min(window.end, piece.span.end) - std::max(window.begin, piece.span.begin);
      if (inside > 0)
        add({piece.span, moment_in(piece, step), piece.event}, step, static_cast<double>(inside) * k_seconds);
    }
  }

  // Of each row, the median of its calls; 0 where they are few. Others within a call cut it into several pieces.
  void find_typical() {
    call_lengths_.assign(trace_.host_events.size(), 0.0);
    for (const Piece& piece : cut_.pieces)
      if (piece.moment == Moment::compute) call_lengths_[piece.event] += static_cast<double>(piece.span.length());
    std::vector<std::vector<double>> lengths;
    for (uint32_t event = 0; event < call_lengths_.size(); ++event) {
      if (call_lengths_[event] <= 0) continue;
      const size_t index = row_index(event);
      lengths.resize(std::max(lengths.size(), index + 1));
      lengths[index].push_back(call_lengths_[event]);
    }
    for (const std::vector<double>& each : lengths) typical_.push_back(each.size() < k_min_calls ? 0.0 : median(each));
  }

  // Of a call that is far longer than its operation's others: the part beyond their median.
  double stall_share(const Piece& piece) {
    if (cut_.device || piece.moment != Moment::compute) return 0;
    const size_t index = row_index(piece.event);
    const double typical = index < typical_.size() ? typical_[index] : 0.0, length = call_lengths_[piece.event];
    if (typical <= 0 || length < std::max(k_shortest_stall, k_stall_factor * typical)) return 0;
    return 1.0 - typical / length;
  }

  // A long gap before the first or after the last work of a step is that of the step, not of an operation.
  Moment moment_in(const Piece& piece, size_t step) {
    if (piece.moment <= Moment::copy) worked_ = step;
    if (piece.moment == Moment::host && piece.event == logs::k_none) return Moment::last;
    if (piece.moment != Moment::host || piece.span.length() <= k_short_gap) return piece.moment;
    if (worked_ != step) return Moment::first;
    return piece.span.end >= cut_.windows[step].span.end ? Moment::last : Moment::host;
  }

  void add(const Piece& piece, size_t step, double seconds) {
    const bool is_work =
        piece.moment == Moment::compute || piece.moment == Moment::communication || piece.moment == Moment::copy;
    const bool is_gap = piece.moment == Moment::host || piece.moment == Moment::latency;
    if (is_work) {
      const double stall = seconds * stall_share(piece);
      row(piece.event).seconds[step] += seconds - stall;
      work_.moment(Moment::stall)[step] += stall;
    } else if (is_gap && piece.event != logs::k_none)
      (piece.span.length() <= k_short_gap ? row(piece.event).gap_seconds : row(piece.event).long_seconds)[step] +=
          seconds;
    else
      work_.moment(piece.moment)[step] += seconds;
  }

  uint32_t launcher_of(uint32_t event) const {
    if (!cut_.device) return event;
    const uint32_t launcher = trace_.events[event].launcher;
    return launcher < trace_.host_events.size() ? launcher : logs::k_none;
  }

  uint32_t collective_of(uint32_t event, uint32_t launcher) const {
    uint32_t collective = cut_.device ? trace_.events[event].collective : trace_.host_events[event].collective;
    if (collective == logs::k_none && launcher != logs::k_none) collective = trace_.host_events[launcher].collective;
    return collective < trace_.collectives.size() ? collective : logs::k_none;
  }

  WorkKey key_of(uint32_t event, uint32_t launcher) const {
    WorkKey key;
    key.kernel_class = cut_.classes[event];
    const uint32_t own_name = cut_.device ? trace_.events[event].name : trace_.host_events[event].name;
    if (launcher != logs::k_none) {
      const logs::HostEvent& host = trace_.host_events[launcher];
      key.phase = host.phase;
      key.operation = without_vendor(trace_.names[host.name]);
      if (host.shapes < trace_.shapes.size()) key.shapes = trace_.shapes[host.shapes];
    } else if (key.kernel_class == KernelClass::other) {
      key.operation = trace_.names[own_name];
    }
    if (key.kernel_class != KernelClass::collective) return key;
    if (const uint32_t index = collective_of(event, launcher); index != logs::k_none) {
      const logs::CollectiveCall& call = trace_.collectives[index];
      key.operation = call.group.empty() ? call.operation : call.operation + " (" + call.group + ")";
      key.shapes = call.bytes > 0 ? std::to_string(call.bytes) + " bytes" : "";
    }
    return key;
  }

  // Keys are made once for each combination of what an event refers to.
  size_t row_index(uint32_t event) {
    const uint32_t launcher = launcher_of(event);
    const uint32_t own_name = cut_.device ? trace_.events[event].name : trace_.host_events[event].name;
    std::array<uint32_t, 5> parts = {static_cast<uint32_t>(cut_.classes[event]), own_name, logs::k_none, logs::k_none,
                                     collective_of(event, launcher)};
    if (launcher != logs::k_none) {
      const logs::HostEvent& host = trace_.host_events[launcher];
      parts[1] = host.name, parts[2] = host.shapes, parts[3] = static_cast<uint32_t>(host.phase);
    }
    const auto [place, is_new] = by_parts_.try_emplace(parts, 0);
    if (is_new) place->second = new_row(key_of(event, launcher), launcher);
    return place->second;
  }

  size_t new_row(WorkKey key, uint32_t launcher) {
    const auto [place, is_new] = by_key_.try_emplace(key, work_.rows.size());
    if (is_new) {
      WorkRow& row = work_.rows.emplace_back();
      row.key = std::move(key);
      row.seconds.assign(steps_, 0.0);
      row.gap_seconds.assign(steps_, 0.0);
      row.long_seconds.assign(steps_, 0.0);
      row.has_operation = launcher != logs::k_none;
      if (row.has_operation && trace_.host_events[launcher].flops > 0)
        volumes_.push_back(static_cast<double>(trace_.host_events[launcher].flops) / 2.0);
      else
        volumes_.push_back(volume_of(row.key.kernel_class, row.key.shapes));
      last_launcher_.push_back(logs::k_none);
    }
    return place->second;
  }

  WorkRow& row(uint32_t event) { return work_.rows[row_index(event)]; }

  // Calls within the windows; sums by class over the whole recording.
  void count() {
    const size_t events = cut_.device ? trace_.events.size() : trace_.host_events.size();
    const double steps = static_cast<double>(steps_);
    for (uint32_t i = 0; i < events; ++i) {
      if (cut_.device && trace_.events[i].device != *cut_.device) continue;
      const bool is_range = !cut_.device && trace_.host_events[i].kind == logs::HostEventKind::annotation;
      const bool is_operation = !cut_.device && trace_.host_events[i].kind == logs::HostEventKind::operation;
      if (!cut_.device && !is_operation && !(is_range && cut_.classes[i] == KernelClass::collective)) continue;
      const logs::Span& span = cut_.device ? trace_.events[i].span : trace_.host_events[i].span;
      ClassSum& sum = work_.classes[static_cast<size_t>(cut_.classes[i])];
      if (cut_.device) sum.seconds += static_cast<double>(span.length()) * k_seconds / steps, sum.calls += 1.0 / steps;
      const bool inside = span.end > cut_.windows.front().span.begin && span.begin < cut_.windows.back().span.end;
      if (inside) count_call(i, steps);
    }
    if (cut_.device) return;
    for (const WorkRow& row : work_.rows) {  // on the processor operations nest: the innermost ones' own time
      ClassSum& sum = work_.classes[static_cast<size_t>(row.key.kernel_class)];
      sum.seconds += row.mean_seconds(), sum.calls += row.calls;
    }
  }

  // An operation counts once, however many kernels of a class it launches.
  void count_call(uint32_t event, double steps) {
    const size_t index = row_index(event);
    const uint32_t launcher = launcher_of(event);
    if (launcher != logs::k_none && last_launcher_[index] == launcher) return;
    last_launcher_[index] = launcher;
    work_.rows[index].calls += 1.0 / steps;
    work_.rows[index].volume += volumes_[index] / steps;
  }

  const Trace& trace_;
  const StepPieces& cut_;
  size_t steps_;
  StepWork work_;
  std::map<std::array<uint32_t, 5>, size_t> by_parts_;
  std::map<WorkKey, size_t> by_key_;
  std::vector<double> volumes_;  // of a call, for each row
  std::vector<uint32_t> last_launcher_;
  std::vector<double> typical_;              // ns, of a row
  std::vector<double> call_lengths_;         // ns, of each host event
  size_t worked_ = static_cast<size_t>(-1);  // the step in which something ran last
};

}  // namespace

double mean_of(const std::vector<double>& series) { return series.empty() ? 0.0 : mean(series); }

StepWork collect_work(const Trace& trace, const StepPieces& pieces) { return WorkCollector(trace, pieces).collect(); }

std::string describe_key(const WorkKey& key) {
  std::string text = key.operation.empty() ? std::string(enum_name(key.kernel_class)) : key.operation;
  if (!key.shapes.empty()) text += " " + key.shapes;
  if (key.phase == logs::Phase::backward || key.phase == logs::Phase::recompute || key.phase == logs::Phase::optimizer)
    text += fmt::format(" ({})", enum_name(key.phase));
  return text;
}

}  // namespace tprimat::results
