#include "why/trace_replay.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/error.h"
#include "stats/descriptive.h"
#include "trace/kernel_classes.h"
#include "why/checks.h"
#include "why/collective_calls.h"
#include "why/host_states.h"
#include "why/step_pieces.h"
#include "why/step_windows.h"
#include "why/work_rows.h"

namespace tprimat::results {
namespace {

using logs::GpuEvent;
using logs::HostEvent;
using logs::KernelClass;
using logs::Span;
using logs::Trace;

// A kernel of another stream that ended so shortly before is the cause.
constexpr int64_t k_causal_nanoseconds = 20'000;
constexpr int64_t k_waiting_copy_nanoseconds = 100'000;  // a call of a copy as long as this waits for the device
constexpr int64_t k_step_end_nanoseconds = 100'000;  // a step that ends so soon after the device's work waited for it

double seconds(int64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1e9; }

ReplayPart part_of(KernelClass kernel_class) {
  switch (kernel_class) {
    case KernelClass::matmul:
    case KernelClass::convolution: return ReplayPart::products;
    case KernelClass::attention: return ReplayPart::attention;
    case KernelClass::collective: return ReplayPart::communication;
    case KernelClass::other: return ReplayPart::other;
    default: return ReplayPart::memory_bound;
  }
}

// Adds one rank to the graph.
class RankReplay {
 public:
  RankReplay(TraceReplay& replayed, const Trace& trace, uint32_t rank, const StepPieces& pieces)
      : replayed_(replayed), trace_(trace), rank_(rank), pieces_(pieces), states_(trace) {
    begin_ = pieces.windows.front().span.begin;
    const StepWindow& last = pieces.windows.back();
    end_ = last.span.begin + last.length;
  }

  void add() {
    if (pieces_.device)
      add_device();
    else
      add_processor();
    replayed_.ends.push_back(last_host_);
  }

  int64_t measured() const { return end_ - begin_; }
  // By index of the event that made the call.
  const std::map<uint32_t, uint32_t>& calls() const { return calls_; }

 private:
  uint32_t add_node(ReplayPart part, double duration, uint32_t name = logs::k_none, double flops = 0) {
    replayed_.operations.push_back({rank_, part, name, flops, logs::k_none});
    replayed_.durations.push_back(duration);
    replayed_.delays.push_back(0);
    return replayed_.graph.add_operation();
  }
  void edge(uint32_t earlier, uint32_t later) {
    if (earlier != logs::k_none) replayed_.graph.add_edge(earlier, later);
  }

  // The next thing that the host does.
  uint32_t add_host(ReplayPart part, int64_t length) {
    const uint32_t node = add_node(part, seconds(length));
    edge(last_host_, node);
    last_host_ = node;
    return node;
  }

  // The host's time until `moment`: waiting for input, then the rest.
  void advance_host(int64_t moment) {
    if (moment <= host_time_) return;
    int64_t data = 0;
    for (const Piece& piece : states_.split({host_time_, moment}, std::nullopt, logs::k_none))
      if (piece.moment == Moment::data) data += piece.span.length();
    if (data > 0) add_host(ReplayPart::data, data);
    add_host(ReplayPart::launch, moment - host_time_ - data);
    host_time_ = moment;
  }

  struct HostPoint {
    int64_t time = 0;
    uint32_t event = 0;  // place in order_, or, if it waits, index into host_events; k_none: a step ends
    bool waits = false;
  };

  // A copy from or to pageable memory waits too, which shows in its length.
  bool waits_for_device(const HostEvent& event) const {
    if (event.kind != logs::HostEventKind::runtime) return false;
    const std::string& name = trace_.names[event.name];
    if (name.find("Synchronize") != std::string::npos) return true;
    return name.find("Memcpy") != std::string::npos && event.span.length() >= k_waiting_copy_nanoseconds;
  }

  std::vector<HostPoint> list_points() const {
    std::vector<HostPoint> points;
    for (uint32_t i = 0; i < order_.size(); ++i)
      if (at(i).launched >= 0) points.push_back({at(i).launched, i, false});
    for (uint32_t i = 0; i < trace_.host_events.size(); ++i) {
      const HostEvent& event = trace_.host_events[i];
      if (waits_for_device(event) && event.span.begin >= begin_ && event.span.end <= end_)
        points.push_back({event.span.begin, i, true});
    }
    if (std::none_of(points.begin(), points.end(), [](const HostPoint& point) { return point.waits; }))
      for (const StepWindow& window : pieces_.windows)
        points.push_back({window.span.begin + window.length, logs::k_none, true});
    std::stable_sort(points.begin(), points.end(), [](const auto& a, const auto& b) { return a.time < b.time; });
    return points;
  }

  const GpuEvent& at(uint32_t place) const { return trace_.events[order_[place]]; }

  void list_events() {
    for (uint32_t i = 0; i < trace_.events.size(); ++i) {
      const GpuEvent& event = trace_.events[i];
      const int64_t moment = event.launched >= 0 ? event.launched : event.span.begin;
      if (event.device == *pieces_.device && moment >= begin_ && moment < end_) order_.push_back(i);
    }
    std::stable_sort(order_.begin(), order_.end(),
                     [&](uint32_t a, uint32_t b) { return trace_.events[a].span.begin < trace_.events[b].span.begin; });
    std::map<std::pair<uint32_t, KernelClass>, double> kernels;
    for (const uint32_t i : order_) ++kernels[{trace_.events[i].launcher, pieces_.classes[i]}];
    for (const uint32_t i : order_) {
      const GpuEvent& event = trace_.events[i];
      const ReplayPart part =
          event.collective != logs::k_none ? ReplayPart::communication : part_of(pieces_.classes[i]);
      const double calls = kernels[{event.launcher, pieces_.classes[i]}];
      nodes_.push_back(add_node(part, seconds(event.span.length()), event.name, flops_of(event.launcher, i) / calls));
      if (event.launcher < trace_.host_events.size())
        replayed_.operations.back().shapes = trace_.host_events[event.launcher].shapes;
      if (part == ReplayPart::communication) calls_[i] = nodes_.back();
    }
  }

  double flops_of(uint32_t operation, uint32_t event) const {
    if (operation >= trace_.host_events.size() || part_of(pieces_.classes[event]) != ReplayPart::products) return 0;
    const uint32_t shapes = trace_.host_events[operation].shapes;
    if (shapes >= trace_.shapes.size()) return 0;
    return 2 * volume_of(pieces_.classes[event], trace_.shapes[shapes]);
  }

  void add_device() {
    list_events();
    std::vector<uint32_t> launches(order_.size(), logs::k_none);
    const std::vector<HostPoint> points = knows_host() ? list_points() : std::vector<HostPoint>{};
    host_time_ = begin_;
    last_host_ = add_node(ReplayPart::other, 0);
    std::vector<uint32_t> by_launch;  // up to the point
    for (const HostPoint& point : points) {
      if (point.event == logs::k_none) {
        end_step(point.time, by_launch);
        continue;
      }
      advance_host(point.time);
      if (!point.waits) {
        launches[point.event] = last_host_;
        by_launch.push_back(point.event);
      } else {
        add_wait(trace_.host_events[point.event].span, by_launch);
      }
    }
    if (knows_host()) advance_host(end_);
    link_streams(launches);
    end_device();
  }

  // Without launches and operations the trace tells of the device alone, and no host holds it up.
  bool knows_host() const {
    return !trace_.host_events.empty() ||
           std::ranges::any_of(order_, [&](uint32_t i) { return trace_.events[i].launched >= 0; });
  }

  // Of the launched work, what ended last before the moment.
  uint32_t last_ended(int64_t moment, const std::vector<uint32_t>& launched) const {
    uint32_t last = logs::k_none;
    constexpr size_t k_looked_at = 4096;  // of the last launches
    const size_t first = launched.size() > k_looked_at ? launched.size() - k_looked_at : 0;
    for (size_t i = first; i < launched.size(); ++i) {
      const int64_t end = at(launched[i]).span.end;
      if (end <= moment && (last == logs::k_none || end > at(last).span.end)) last = launched[i];
    }
    return last;
  }

  // The host goes on when the device has done what the call waited for.
  void add_wait(const Span& span, const std::vector<uint32_t>& launched) {
    const uint32_t cause = last_ended(span.end, launched);
    const bool waited = cause != logs::k_none && at(cause).span.end > span.begin;
    const int64_t begin = waited ? at(cause).span.end : span.begin;
    const uint32_t node = add_host(ReplayPart::wait, std::max<int64_t>(0, span.end - begin));
    if (waited) edge(nodes_[cause], node);
    host_time_ = std::max(host_time_, span.end);
  }

  // A trace without calls that wait: a step that ends right after the device waited for it.
  void end_step(int64_t moment, const std::vector<uint32_t>& launched) {
    const uint32_t cause = last_ended(moment, launched);
    const bool waited = cause != logs::k_none && at(cause).span.end > host_time_ &&
                        moment - at(cause).span.end <= k_step_end_nanoseconds;
    if (waited)
      add_wait({host_time_, moment}, launched);
    else
      advance_host(moment);
  }

  // What a kernel waited for: its launch, its stream, another stream.
  void link_streams(const std::vector<uint32_t>& launches) {
    std::map<int32_t, uint32_t> last_of_stream;
    std::vector<int64_t> delays(order_.size(), 0);
    std::vector<bool> launch_bound(order_.size(), false);
    uint32_t latest_end = logs::k_none;  // of the events so far, the one that ended last before the present begin
    for (uint32_t i = 0; i < order_.size(); ++i) {
      const GpuEvent& event = at(i);
      int64_t ready = launches[i] != logs::k_none ? event.launched : begin_;
      edge(launches[i], nodes_[i]);
      const auto before = last_of_stream.find(event.stream);
      const int64_t stream_free = before == last_of_stream.end() ? INT64_MIN : at(before->second).span.end;
      if (before != last_of_stream.end()) edge(nodes_[before->second], nodes_[i]);
      launch_bound[i] = launches[i] != logs::k_none && ready >= stream_free;
      ready = std::max(ready, stream_free);
      latest_end = find_cause(i, ready);
      if (latest_end != logs::k_none) {
        edge(nodes_[latest_end], nodes_[i]);
        ready = std::max(ready, at(latest_end).span.end);
      }
      delays[i] = std::max<int64_t>(0, event.span.begin - ready);
      last_of_stream[event.stream] = i;
    }
    set_delays(launches, delays, launch_bound);
    for (const auto& [stream, event] : last_of_stream) last_of_streams_.push_back(event);
  }

  // Of another stream, an event that ended just before this one began, where nothing else explains the begin.
  uint32_t find_cause(uint32_t place, int64_t ready) const {
    const GpuEvent& event = at(place);
    if (event.span.begin - ready <= k_causal_nanoseconds / 2) return logs::k_none;
    constexpr uint32_t k_looked_at = 64;
    uint32_t cause = logs::k_none;
    for (uint32_t back = 1; back <= k_looked_at && back <= place; ++back) {
      const GpuEvent& other = at(place - back);
      const bool fits = other.stream != event.stream && other.span.end <= event.span.begin && other.span.end > ready &&
                        event.span.begin - other.span.end < k_causal_nanoseconds;
      if (fits && (cause == logs::k_none || other.span.end > at(cause).span.end)) cause = place - back;
    }
    return cause;
  }

  // Medians, apart for work that waited for its launch and for its stream. Without launches gaps are the host's.
  void set_delays(const std::vector<uint32_t>& launches, const std::vector<int64_t>& delays,
                  const std::vector<bool>& launch_bound) {
    std::vector<double> by_kind[2];
    for (size_t i = 0; i < delays.size(); ++i)
      if (launches[i] != logs::k_none) by_kind[launch_bound[i] ? 1 : 0].push_back(seconds(delays[i]));
    const double typical[2] = {by_kind[0].empty() ? 0 : median(by_kind[0]),
                               by_kind[1].empty() ? 0 : median(by_kind[1])};
    for (size_t i = 0; i < delays.size(); ++i)
      replayed_.delays[nodes_[i]] = launches[i] == logs::k_none ? seconds(delays[i]) : typical[launch_bound[i] ? 1 : 0];
  }

  void end_device() {
    int64_t last = begin_;
    for (const uint32_t event : last_of_streams_) last = std::max(last, at(event).span.end);
    const int64_t idle = knows_host() ? 0 : std::max<int64_t>(0, end_ - last);
    const uint32_t node = add_host(ReplayPart::other, idle);
    for (const uint32_t event : last_of_streams_) edge(nodes_[event], node);
    end_ = std::max(end_, last);
  }

  // The pieces of the processor's time, one after the other.
  void add_processor() {
    last_host_ = add_node(ReplayPart::other, 0);
    for (const Piece& piece : pieces_.pieces) {
      const bool known = piece.event < trace_.host_events.size();
      const bool of_work = piece.moment == Moment::compute || piece.moment == Moment::communication;
      const ReplayPart part = part_of_piece(piece);
      const uint32_t node = add_host(part, piece.span.length());
      if (!known || !of_work) continue;
      const HostEvent& event = trace_.host_events[piece.event];
      replayed_.operations[node].name = event.name;
      replayed_.operations[node].shapes = event.shapes;
      if (part == ReplayPart::products) replayed_.operations[node].flops = flops_of_piece(piece);
      if (part == ReplayPart::communication) calls_.try_emplace(piece.event, node);
    }
    end_ = pieces_.windows.back().span.end;
  }

  double flops_of_piece(const Piece& piece) const {
    const HostEvent& event = trace_.host_events[piece.event];
    const double whole = static_cast<double>(std::max<int64_t>(1, event.span.length()));
    const double flops = event.flops > 0 ? static_cast<double>(event.flops) : flops_of(piece.event, piece.event);
    return flops * static_cast<double>(piece.span.length()) / whole;
  }

  ReplayPart part_of_piece(const Piece& piece) const {
    switch (piece.moment) {
      case Moment::compute: return part_of(pieces_.classes[piece.event]);
      case Moment::communication: return ReplayPart::communication;
      case Moment::waiting: return ReplayPart::wait;
      case Moment::data: return ReplayPart::data;
      default: return ReplayPart::launch;
    }
  }

  TraceReplay& replayed_;
  const Trace& trace_;
  uint32_t rank_;
  const StepPieces& pieces_;
  HostStates states_;
  int64_t begin_ = 0, end_ = 0, host_time_ = 0;
  uint32_t last_host_ = logs::k_none;
  std::vector<uint32_t> order_;  // indices of events, by begin
  std::vector<uint32_t> nodes_;  // of the graph, by place in this order
  std::vector<uint32_t> last_of_streams_;
  std::map<uint32_t, uint32_t> calls_;
};

// Members of a call begin together; none of them waits on its own any more.
void join_calls(TraceReplay& replayed, const MatchedCalls& matched,
                const std::vector<std::map<uint32_t, uint32_t>>& calls) {
  for (const MatchedCall& call : matched.matched) {
    std::vector<uint32_t> nodes;
    int64_t shortest = INT64_MAX;
    for (const auto& member : call.members) {
      const RankCall& own = matched.calls[member.rank][member.place];
      const auto node = calls[member.rank].find(own.event);
      if (node != calls[member.rank].end()) nodes.push_back(node->second);
      shortest = std::min(shortest, own.span.length());
    }
    if (nodes.size() != call.members.size()) continue;
    for (const uint32_t node : nodes) replayed.durations[node] = std::min(replayed.durations[node], seconds(shortest));
    replayed.graph.add_group(nodes);
  }
}

}  // namespace

TraceReplay make_trace_replay(std::span<const Trace> ranks) {
  if (ranks.empty()) throw Error(Problem{"has no trace to replay", "--what-if", "name at least one trace"});
  TraceReplay replayed;
  std::vector<std::map<uint32_t, uint32_t>> calls;
  const Waiting waiting = match_collectives(ranks);
  for (uint32_t rank = 0; rank < ranks.size(); ++rank) {
    const RankWaiting* own = ranks.size() > 1 ? &waiting.ranks[rank] : nullptr;
    const std::string where = "trace of rank " + std::to_string(rank);
    const StepPieces pieces = cut_steps(ranks[rank], own, where);
    check_pieces(ranks[rank], pieces, where);
    RankReplay adder(replayed, ranks[rank], rank, pieces);
    adder.add();
    calls.push_back(adder.calls());
    replayed.steps.push_back(static_cast<double>(pieces.windows.size()));
    replayed.measured_seconds = std::max(replayed.measured_seconds, seconds(adder.measured()) / replayed.steps.back());
  }
  if (ranks.size() > 1) {
    join_calls(replayed, match_calls(ranks), calls);
    for (size_t i = 0; i < replayed.operations.size(); ++i)  // the groups wait
      if (replayed.operations[i].part == ReplayPart::wait && ranks[replayed.operations[i].rank].events.empty())
        replayed.durations[i] = 0;
  }
  replayed.graph.finish("the traces");
  return replayed;
}

double replay_step(const TraceReplay& replayed, std::span<const double> durations) {
  const Replay times = replay(replayed.graph, durations, replayed.delays);
  double longest = 0;
  for (size_t rank = 0; rank < replayed.ends.size(); ++rank)
    longest = std::max(longest, times.end[replayed.ends[rank]] / replayed.steps[rank]);
  return longest;
}

}  // namespace tprimat::results
