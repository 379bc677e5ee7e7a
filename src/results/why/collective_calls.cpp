#include "why/collective_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "stats/descriptive.h"

namespace tprimat::results {
namespace {

using logs::Span;
using logs::StepMark;
using logs::Trace;

// -1 where no mark covers the moment.
int64_t step_at(const std::vector<StepMark>& marks, int64_t moment) {
  const auto after = std::upper_bound(marks.begin(), marks.end(), moment,
                                      [](int64_t time, const StepMark& mark) { return time < mark.span.begin; });
  if (after == marks.begin()) return -1;
  const StepMark& mark = *(after - 1);
  return moment < mark.span.end ? mark.step : -1;
}

std::vector<RankCall> calls_on_gpu(const Trace& trace) {
  std::vector<RankCall> calls;
  for (uint32_t i = 0; i < trace.events.size(); ++i)
    if (trace.events[i].collective != logs::k_none)
      calls.push_back({i, false, -1, trace.events[i].span, &trace.collectives[trace.events[i].collective]});
  return calls;
}

std::vector<RankCall> calls_on_host(const Trace& trace) {
  std::vector<RankCall> calls;
  for (uint32_t i = 0; i < trace.host_events.size(); ++i)
    if (trace.host_events[i].collective != logs::k_none)
      calls.push_back({i, true, -1, trace.host_events[i].span, &trace.collectives[trace.host_events[i].collective]});
  std::stable_sort(calls.begin(), calls.end(), [&](const RankCall& a, const RankCall& b) {
    const auto key = [&](const RankCall& call) {
      return std::tuple(trace.host_events[call.event].thread, call.span.begin, -call.span.end);
    };
    return key(a) < key(b);
  });
  std::vector<RankCall> outermost;
  for (const RankCall& call : calls) {
    const bool is_inside = !outermost.empty() && call.span.end <= outermost.back().span.end &&
                           trace.host_events[call.event].thread == trace.host_events[outermost.back().event].thread;
    if (!is_inside) outermost.push_back(call);
  }
  return outermost;
}

// What calls of different ranks must share to be the same one.
using CallKey = std::tuple<int64_t /*step*/, std::string_view /*operation*/, std::string_view /*group*/>;
using PlacesByRank = std::map<size_t, std::vector<size_t>>;

// How well two ranks' calls end together, whatever their clocks: spread of the distance of their ends.
double end_spread(const std::vector<RankCall>& a, const std::vector<size_t>& a_places, const std::vector<RankCall>& b,
                  const std::vector<size_t>& b_places) {
  std::vector<double> distances;
  for (size_t i = 0; i < std::min(a_places.size(), b_places.size()); ++i)
    distances.push_back(static_cast<double>(a[a_places[i]].span.end - b[b_places[i]].span.end));
  return distances.size() < 2 ? 0 : median_absolute_deviation(distances);
}

class Matcher {
 public:
  explicit Matcher(MatchedCalls& result) : result_(result) {}

  void match(const CallKey& key, const PlacesByRank& places) {
    const logs::CollectiveCall& call = *first_call(places).call;
    const auto size = static_cast<size_t>(std::max<int64_t>(call.group_size, 0));
    if (size == 1) return;
    if (size >= 2 && places.size() > size && places.size() % size == 0) return match_parts(key, places, size);
    if (size > places.size()) ++incomplete_[fmt::format("{} of {}", call.operation, call.group)];
    match_group(key, places);
  }

  void write_notes() {
    for (const auto& [what, calls] : uneven_)
      result_.notes.push_back(
          fmt::format("{}: {} calls have no counterpart, since ranks made different numbers of them", what, calls));
    if (!incomplete_.empty())
      result_.notes.push_back(
          fmt::format("{}: not all ranks of the group have a trace, so waiting for the others counts as transfer",
                      incomplete_.begin()->first));
  }

 private:
  const RankCall& first_call(const PlacesByRank& places) const {
    return result_.calls[places.begin()->first][places.begin()->second.front()];
  }

  // Several groups of this name: neighbouring ranks, or those a stride apart, whichever end their calls together.
  void match_parts(const CallKey& key, const PlacesByRank& places, size_t size) {
    std::vector<size_t> ranks;
    for (const auto& [rank, list] : places) ranks.push_back(rank);
    const size_t groups = ranks.size() / size;
    const auto part = [&](size_t group, bool strided) {
      PlacesByRank members;
      for (size_t i = 0; i < size; ++i) {
        const size_t rank = ranks[strided ? group + i * groups : group * size + i];
        members[rank] = places.at(rank);
      }
      return members;
    };
    const auto spread = [&](bool strided) {
      double sum = 0;
      for (size_t group = 0; group < groups; ++group) {
        const PlacesByRank members = part(group, strided);
        const auto& [first, first_places] = *members.begin();
        for (const auto& [rank, list] : members)
          sum += end_spread(result_.calls[first], first_places, result_.calls[rank], list);
      }
      return sum;
    };
    const bool strided = spread(true) < spread(false);
    for (size_t group = 0; group < groups; ++group) match_group(key, part(group, strided));
  }

  void match_group(const CallKey& key, const PlacesByRank& places) {
    const size_t calls = places.begin()->second.size();
    const bool even =
        std::all_of(places.begin(), places.end(), [&](const auto& each) { return each.second.size() == calls; });
    if (places.size() < 2) return;
    if (!even) {
      int64_t& uneven = uneven_[fmt::format("{} of {}", std::get<1>(key), std::get<2>(key))];
      for (const auto& [rank, list] : places) uneven += std::ssize(list);
      return;
    }
    for (size_t i = 0; i < calls; ++i) {
      MatchedCall matched;
      for (const auto& [rank, list] : places) matched.members.push_back({rank, list[i]});
      result_.matched.push_back(std::move(matched));
    }
  }

  MatchedCalls& result_;
  std::map<std::string, int64_t> uneven_, incomplete_;
};

}  // namespace

bool is_message(std::string_view operation) {
  constexpr std::array k_names = {"send",  "recv", "receive", "send_recv", "sendrecv", "batch_isend_irecv",
                                  "isend", "irecv"};
  return std::find(k_names.begin(), k_names.end(), operation) != k_names.end();
}

bool is_all_to_all(std::string_view operation) {
  return operation.starts_with("all_to_all") || operation.starts_with("alltoall");
}

std::vector<StepMark> dividing_marks(const Trace& trace) {
  std::vector<StepMark> marks;
  for (const bool on_device : {false, true}) {
    for (const StepMark& mark : trace.marks)
      if (mark.device.has_value() == on_device) marks.push_back(mark);
    if (!marks.empty()) break;
  }
  std::stable_sort(marks.begin(), marks.end(),
                   [](const auto& a, const auto& b) { return a.span.begin < b.span.begin; });
  return marks;
}

std::vector<RankCall> list_calls(const Trace& trace) {
  std::vector<RankCall> calls = calls_on_gpu(trace);
  if (calls.empty()) calls = calls_on_host(trace);
  const std::vector<StepMark> marks = dividing_marks(trace);
  const bool on_host_clock = !marks.empty() && !marks.front().device;
  for (RankCall& call : calls) {
    const int64_t launched = call.on_host ? -1 : trace.events[call.event].launched;
    call.step = step_at(marks, on_host_clock && launched >= 0 ? launched : call.span.begin);
  }
  if (!marks.empty()) std::erase_if(calls, [](const RankCall& call) { return call.step < 0; });
  // Several threads take the calls of one queue in turn.
  std::stable_sort(calls.begin(), calls.end(),
                   [](const auto& a, const auto& b) { return a.span.begin < b.span.begin; });
  return calls;
}

MatchedCalls match_calls(std::span<const Trace> ranks) {
  MatchedCalls result;
  std::map<CallKey, PlacesByRank> by_key;
  for (const Trace& trace : ranks) result.calls.push_back(list_calls(trace));
  for (size_t rank = 0; rank < ranks.size(); ++rank)
    for (size_t place = 0; place < result.calls[rank].size(); ++place) {
      const RankCall& call = result.calls[rank][place];
      if (!is_message(call.call->operation))
        by_key[{call.step, call.call->operation, call.call->group}][rank].push_back(place);
    }
  Matcher matcher(result);
  for (const auto& [key, places] : by_key) matcher.match(key, places);
  matcher.write_notes();
  return result;
}

}  // namespace tprimat::results
