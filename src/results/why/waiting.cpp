#include "why/waiting.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "stats/descriptive.h"
#include "why/collective_calls.h"
#include "why/own_work.h"

namespace tprimat::results {
namespace {

constexpr double k_min_lateness = 0.05;       // of the longest duration of a call: less is noise
constexpr double k_share_of_late_rank = 0.5;  // of all waiting
constexpr double k_min_waiting = 0.005;       // of a step: less is nobody's fault

class Splitter {
 public:
  Splitter(std::span<const logs::Trace> ranks, const MatchedCalls& calls) : calls_(calls) {
    for (const logs::Trace& trace : ranks) {
      RankWaiting rank;
      rank.events.assign(trace.events.size(), 0);
      rank.host_events.assign(trace.host_events.size(), 0);
      waiting_.ranks.push_back(std::move(rank));
    }
    caused_.assign(ranks.size(), std::vector<int64_t>(ranks.size(), 0));
  }

  void split(const MatchedCall& matched) {
    const auto length = [&](const MatchedCall::Member& member) {
      return calls_.calls[member.rank][member.place].span.length();
    };
    const auto [shortest, longest] =
        std::minmax_element(matched.members.begin(), matched.members.end(),
                            [&](const auto& a, const auto& b) { return length(a) < length(b); });
    const int64_t transfer = length(*shortest);
    for (const auto& member : matched.members) {
      enter(member.rank, member.place, transfer);
      caused_[shortest->rank][member.rank] += length(member) - transfer;
    }
    const auto latest = static_cast<double>(length(*longest));
    if (latest - static_cast<double>(transfer) > k_min_lateness * latest) ++waiting_.ranks[shortest->rank].last_calls;
  }

  // A message takes as long as the shortest of its kind and size; the rest waits for the peer.
  void split_messages() {
    std::map<std::tuple<std::string_view, int64_t>, int64_t> shortest;
    for_each_message([&](size_t, size_t, const RankCall& call) {
      auto& least = shortest.try_emplace({call.call->operation, call.call->bytes}, call.span.length()).first->second;
      least = std::min(least, call.span.length());
    });
    for_each_message([&](size_t rank, size_t place, const RankCall& call) {
      enter(rank, place, shortest.at({call.call->operation, call.call->bytes}));
    });
  }

  void count_unmatched() {
    for (size_t rank = 0; rank < calls_.calls.size(); ++rank) {
      int64_t all = 0;
      for (const RankCall& call : calls_.calls[rank]) all += call.span.length();
      waiting_.ranks[rank].unmatched = all - waiting_.ranks[rank].waiting - waiting_.ranks[rank].transfer;
    }
  }

  const std::vector<std::vector<int64_t>>& caused() const { return caused_; }
  Waiting& waiting() { return waiting_; }

 private:
  template <class Visit>
  void for_each_message(Visit visit) const {
    for (size_t rank = 0; rank < calls_.calls.size(); ++rank)
      for (size_t place = 0; place < calls_.calls[rank].size(); ++place)
        if (is_message(calls_.calls[rank][place].call->operation)) visit(rank, place, calls_.calls[rank][place]);
  }

  void enter(size_t rank, size_t place, int64_t transfer) {
    const RankCall& call = calls_.calls[rank][place];
    RankWaiting& entry = waiting_.ranks[rank];
    (call.on_host ? entry.host_events : entry.events)[call.event] = call.span.length() - transfer;
    entry.waiting += call.span.length() - transfer;
    entry.transfer += transfer;
    ++entry.matched_calls;
  }

  const MatchedCalls& calls_;
  Waiting waiting_;
  std::vector<std::vector<int64_t>> caused_;  // by late rank, of each rank: what it waits
};

// The rank that causes most of the waiting, where that is a good part of it and of the step.
void find_late_rank(std::span<const logs::Trace> ranks, const std::vector<std::vector<int64_t>>& caused,
                    Waiting& waiting) {
  std::vector<int64_t> sums;
  int64_t all = 0;
  for (const auto& by_rank : caused) {
    sums.push_back(std::accumulate(by_rank.begin(), by_rank.end(), int64_t{0}));
    all += sums.back();
  }
  const size_t late = static_cast<size_t>(std::max_element(sums.begin(), sums.end()) - sums.begin());
  if (all == 0 || static_cast<double>(sums[late]) < k_share_of_late_rank * static_cast<double>(all)) return;
  const RecordedSteps steps = recorded_steps(ranks[late]);
  std::vector<double> others;
  for (size_t rank = 0; rank < ranks.size(); ++rank)
    if (rank != late) others.push_back(static_cast<double>(caused[late][rank]) / 1e9 / steps.count);
  const double seconds = median(others);
  if (seconds < k_min_waiting * steps.seconds) return;
  waiting.late = {late, static_cast<double>(sums[late]) / static_cast<double>(all), seconds,
                  find_longer_work(ranks, late)};
}

}  // namespace

Waiting match_collectives(std::span<const logs::Trace> ranks) {
  if (ranks.size() < 2) return {std::vector<RankWaiting>(ranks.size()), std::nullopt, {}};
  const MatchedCalls calls = match_calls(ranks);
  Splitter splitter(ranks, calls);
  for (const MatchedCall& matched : calls.matched) splitter.split(matched);
  splitter.split_messages();
  splitter.count_unmatched();
  Waiting waiting = std::move(splitter.waiting());
  waiting.notes = calls.notes;
  find_late_rank(ranks, splitter.caused(), waiting);
  return waiting;
}

std::optional<ExpertImbalance> find_expert_imbalance(std::span<const logs::Trace> ranks, const Waiting& waiting) {
  if (ranks.size() < 2 || waiting.ranks.size() != ranks.size()) return std::nullopt;
  std::vector<double> between(ranks.size(), 0);
  ExpertImbalance found;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    const std::vector<RankCall> calls = list_calls(ranks[rank]);
    const double steps = recorded_steps(ranks[rank]).count;
    const RankCall* dispatch = nullptr;
    for (const RankCall& call : calls) {
      if (!is_all_to_all(call.call->operation)) continue;
      const auto& waits = call.on_host ? waiting.ranks[rank].host_events : waiting.ranks[rank].events;
      if (call.event < waits.size())
        found.waiting_seconds +=
            static_cast<double>(waits[call.event]) / 1e9 / steps / static_cast<double>(ranks.size());
      if (dispatch != nullptr) between[rank] += static_cast<double>(call.span.begin - dispatch->span.end) / 1e9;
      dispatch = dispatch == nullptr ? &call : nullptr;
    }
  }
  const double even = mean(between);
  if (even <= 0) return std::nullopt;
  const auto slowest = std::max_element(between.begin(), between.end());
  found.slowest = static_cast<size_t>(slowest - between.begin());
  found.slowest_over_mean = *slowest / even;
  return found;
}

}  // namespace tprimat::results
