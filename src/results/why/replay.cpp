#include "why/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>

#include "base/error.h"
#include "trace/trace.h"

namespace tprimat::results {
namespace {

using logs::OperationKind;
using logs::WorkerOperation;

// Clocks of workers are synchronised to about this; a transfer or a delay more negative than that is an error of them.
constexpr double k_clock_seconds = 0.01;

struct Direction {
  OperationKind compute, recv, send;
  int32_t step;  // to the next chunk of the model
};
constexpr std::array k_directions = {
    Direction{OperationKind::forward_compute, OperationKind::forward_recv, OperationKind::forward_send, 1},
    Direction{OperationKind::backward_compute, OperationKind::backward_recv, OperationKind::backward_send, -1}};

bool is_message(OperationKind kind) {
  return kind == OperationKind::forward_recv || kind == OperationKind::forward_send ||
         kind == OperationKind::backward_recv || kind == OperationKind::backward_send;
}

// What a message belongs to: the chunk of the whole model that receives it, and the micro-batch.
using MessageKey = std::tuple<bool /*backward*/, int64_t /*chunk*/, int64_t /*micro-batch*/>;
struct Message {
  uint32_t send = logs::k_none, recv = logs::k_none;          // operations that move it
  uint32_t producer = logs::k_none, consumer = logs::k_none;  // the computations at its ends
};

// Operations of one kind or stream of a worker, in the order of their begins.
using Stream = std::vector<uint32_t>;

// Adds one step of all workers to the graph.
class StepEdges {
 public:
  StepEdges(PipelineReplay& pipeline, std::string_view where, int64_t chunks, bool has_messages)
      : pipeline_(pipeline), where_(where), chunks_(chunks), has_messages_(has_messages) {}

  void add_worker(uint32_t begin, uint32_t end) {
    for (auto& stream : streams_) stream.clear();
    main_.clear();
    for (uint32_t i = begin; i < end; ++i) streams_[static_cast<size_t>(at(i).kind)].push_back(i);
    find_computations(begin, end);
    if (computations_.empty()) fail(at(begin), "has no forward or backward computation");
    link_main(begin, end);
    link_parameters();
    link_gradients();
    for (const Direction& direction : k_directions) {
      link(of(direction.recv));
      link(of(direction.send));
      match(direction);
    }
    link_first_backward();
    join_groups(begin, end);
  }

  void finish_replica() {
    for (const auto& [key, message] : messages_) connect(key, message);
    messages_.clear();
    add_groups(replica_groups_);
  }

  void finish_step() { add_groups(step_groups_); }

 private:
  using Groups = std::map<std::tuple<OperationKind, int32_t, size_t>, Stream>;

  const WorkerOperation& at(uint32_t i) const { return pipeline_.operations[i]; }
  double end_of(uint32_t i) const { return at(i).begin + at(i).duration; }
  Stream& of(OperationKind kind) { return streams_[static_cast<size_t>(kind)]; }
  void edge(uint32_t earlier, uint32_t later) { pipeline_.graph.add_edge(earlier, later); }
  void link(const Stream& stream) {
    for (size_t i = 1; i < stream.size(); ++i) edge(stream[i - 1], stream[i]);
  }
  // Of the whole model.
  int64_t chunk_of(uint32_t i) const { return int64_t{std::max(at(i).chunk, 0)} * pipeline_.stages + at(i).stage; }

  [[noreturn]] void fail(const WorkerOperation& of, std::string what,
                         std::string hint = "record every operation of every worker") const {
    throw Error(Problem{fmt::format("stage {} of replica {} {} in step {}", of.stage, of.dp_rank, what, of.step),
                        std::string(where_), std::move(hint)});
  }

  void find_computations(uint32_t begin, uint32_t end) {
    computations_.clear();
    last_end_ = -1e300;
    for (uint32_t i = begin; i < end; ++i) {
      if (!is_compute(at(i).kind)) continue;
      if (!computations_.empty() && at(i).begin < last_end_ - k_clock_seconds)
        fail(at(i), "computes two things at once", "times are seconds by one clock; record the job again");
      computations_.push_back(i);
      last_end_ = std::max(last_end_, end_of(i));
    }
  }

  // Gradients are reduced beside the computations, on a stream of their own.
  bool is_overlapped(uint32_t i) const {
    return at(i).kind == OperationKind::grads_reduce_scatter && at(i).begin < last_end_ - k_clock_seconds;
  }

  // Computations, then what ends the step, one after the other.
  void link_main(uint32_t begin, uint32_t end) {
    for (uint32_t i = begin; i < end; ++i)
      if (!is_message(at(i).kind) && at(i).kind != OperationKind::params_all_gather && !is_overlapped(i))
        main_.push_back(i);
    std::stable_partition(main_.begin(), main_.end(), [&](uint32_t i) { return is_compute(at(i).kind); });
    link(main_);
  }

  // The weights of a chunk are there before its first forward computation.
  void link_parameters() {
    const Stream& gathers = of(OperationKind::params_all_gather);
    link(gathers);
    for (const uint32_t gather : gathers)
      for (const uint32_t compute : of(OperationKind::forward_compute))
        if (at(gather).chunk < 0 || at(compute).chunk == at(gather).chunk) {
          edge(gather, compute);
          break;
        }
  }

  // An overlapped reduction follows the backward computations that have ended when it begins.
  void link_gradients() {
    Stream overlapped;
    for (const uint32_t i : of(OperationKind::grads_reduce_scatter))
      if (is_overlapped(i)) overlapped.push_back(i);
    link(overlapped);
    for (const uint32_t i : overlapped) {
      uint32_t last = logs::k_none;
      for (const uint32_t compute : of(OperationKind::backward_compute))
        if (end_of(compute) <= at(i).begin + k_clock_seconds) last = compute;
      if (last != logs::k_none) edge(last, i);
    }
    if (!overlapped.empty() && main_.size() > computations_.size())
      edge(overlapped.back(), main_[computations_.size()]);
  }

  bool receives(uint32_t compute, const Direction& direction) const {
    const int64_t from = chunk_of(compute) - direction.step;
    return from >= 0 && from < chunks_ * pipeline_.stages;
  }
  bool sends(uint32_t compute, const Direction& direction) const {
    const int64_t to = chunk_of(compute) + direction.step;
    return to >= 0 && to < chunks_ * pipeline_.stages;
  }

  // The computations that the messages of a kind belong to, in the same order. Some profilers also record messages that
  // the ends of the pipeline leave out: then every computation has one.
  template <class Needs>
  Stream partners(const Direction& direction, OperationKind kind, Needs needs) {
    const Stream &all = of(direction.compute), &messages = of(kind);
    Stream needing;
    for (const uint32_t compute : all)
      if (needs(compute)) needing.push_back(compute);
    if (!has_messages_ || messages.size() == needing.size()) return needing;
    if (messages.size() == all.size()) return all;
    fail(at(computations_.front()),
         fmt::format("has {} of {} where {} are needed", messages.size(), enum_name(kind), needing.size()));
  }

  MessageKey key(uint32_t compute, const Direction& direction, int64_t chunk, size_t place) const {
    const int32_t stated = at(compute).micro_batch;
    return {direction.step < 0, chunk, stated >= 0 ? stated : static_cast<int64_t>(place)};
  }

  void match(const Direction& direction) {
    const auto receiving = [&](uint32_t i) { return receives(i, direction); };
    const auto sending = [&](uint32_t i) { return sends(i, direction); };
    const Stream in = partners(direction, direction.recv, receiving);
    const Stream out = partners(direction, direction.send, sending);
    for (size_t i = 0; i < in.size(); ++i) {
      if (has_messages_) link_receive(direction, in[i], of(direction.recv)[i]);
      if (!receiving(in[i])) continue;
      Message& message = messages_[key(in[i], direction, chunk_of(in[i]), i)];
      message.consumer = in[i];
      if (has_messages_) message.recv = of(direction.recv)[i];
    }
    for (size_t i = 0; i < out.size(); ++i) {
      if (has_messages_) edge(out[i], of(direction.send)[i]);
      if (!sending(out[i])) continue;
      Message& message = messages_[key(out[i], direction, chunk_of(out[i]) + direction.step, i)];
      message.producer = out[i];
      if (has_messages_) message.send = of(direction.send)[i];
    }
  }

  // A receive is posted after the computation before, of the same direction, and before its own.
  void link_receive(const Direction& direction, uint32_t compute, uint32_t recv) {
    edge(recv, compute);
    const Stream& all = of(direction.compute);
    const auto place = std::find(all.begin(), all.end(), compute);
    if (place != all.begin()) edge(*(place - 1), recv);
  }

  // The first backward messages are posted with the last forward ones, two computations earlier.
  void link_first_backward() {
    const auto first = std::find_if(computations_.begin(), computations_.end(),
                                    [&](uint32_t i) { return at(i).kind == OperationKind::backward_compute; });
    if (first - computations_.begin() < 2 || first == computations_.end()) return;
    for (const OperationKind kind : {OperationKind::backward_recv, OperationKind::backward_send})
      if (!of(kind).empty()) edge(*(first - 2), of(kind).front());
  }

  void connect(const MessageKey& key, const Message& message) {
    const bool has_both = message.producer != logs::k_none && message.consumer != logs::k_none;
    if (!has_both) {
      const bool received = message.producer == logs::k_none;
      fail(at(received ? message.consumer : message.producer),
           fmt::format("{} micro-batch {} that no other stage {}", received ? "receives" : "sends", std::get<2>(key),
                       received ? "sends" : "receives"));
    }
    if (has_messages_)
      pipeline_.graph.add_group(std::array{message.send, message.recv});
    else
      edge(message.producer, message.consumer);
  }

  void join_groups(uint32_t begin, uint32_t end) {
    std::map<OperationKind, size_t> seen;
    for (uint32_t i = begin; i < end; ++i) {
      const OperationKind kind = at(i).kind;
      const size_t place = seen[kind]++;
      if (kind == OperationKind::embedding_grads_all_reduce)
        replica_groups_[{kind, 0, place}].push_back(i);
      else if (kind == OperationKind::optimizer_clip_main_grad)
        step_groups_[{kind, 0, place}].push_back(i);
      else if (kind == OperationKind::params_all_gather || kind == OperationKind::grads_reduce_scatter ||
               kind == OperationKind::separate_grads_all_reduce)
        step_groups_[{kind, at(i).stage, place}].push_back(i);
    }
  }

  void add_groups(Groups& groups) {
    for (const auto& [key, members] : groups) pipeline_.graph.add_group(members);
    groups.clear();
  }

  PipelineReplay& pipeline_;
  std::string_view where_;
  int64_t chunks_;
  bool has_messages_;
  std::array<Stream, enum_values<OperationKind>().size()> streams_;  // of the worker, by kind
  Stream main_, computations_;
  double last_end_ = 0;                     // of the worker's computations
  std::map<MessageKey, Message> messages_;  // of the replica
  Groups replica_groups_, step_groups_;
};

void add_edges(PipelineReplay& pipeline, std::string_view where) {
  const auto& rows = pipeline.operations;
  const auto chunk = [](const WorkerOperation& a, const WorkerOperation& b) { return a.chunk < b.chunk; };
  const int64_t chunks = std::max(std::max_element(rows.begin(), rows.end(), chunk)->chunk, 0) + 1;
  const bool has_messages = std::any_of(rows.begin(), rows.end(), [](const auto& row) { return is_message(row.kind); });
  StepEdges step(pipeline, where, chunks, has_messages);
  for (uint32_t begin = 0; begin < rows.size();) {
    const WorkerOperation& first = rows[begin];
    uint32_t end = begin;
    while (end < rows.size() && rows[end].step == first.step && rows[end].dp_rank == first.dp_rank &&
           rows[end].stage == first.stage)
      ++end;
    step.add_worker(begin, end);
    const bool step_ends = end == rows.size() || rows[end].step != first.step;
    if (step_ends || rows[end].dp_rank != first.dp_rank) step.finish_replica();
    if (step_ends) step.finish_step();
    begin = end;
  }
}

// Seconds of each step from `first` to `last` of its operations.
template <class Begin, class End>
std::vector<double> step_lengths(const PipelineReplay& pipeline, Begin begin_of, End end_of) {
  std::vector<double> lengths;
  const auto& rows = pipeline.operations;
  for (size_t i = 0; i < rows.size();) {
    double first = begin_of(i), last = end_of(i);
    const int64_t step = rows[i].step;
    for (; i < rows.size() && rows[i].step == step; ++i) {
      first = std::min(first, begin_of(i));
      last = std::max(last, end_of(i));
    }
    lengths.push_back(last - first);
  }
  return lengths;
}

// The part of each operation that is no waiting, and how long after its causes it began.
void measure_operations(PipelineReplay& pipeline) {
  const auto& rows = pipeline.operations;
  double step_begin = 0;
  for (uint32_t i = 0; i < rows.size(); ++i) {
    if (i == 0 || rows[i].step != rows[i - 1].step) {
      step_begin = rows[i].begin;
      for (uint32_t k = i; k < rows.size() && rows[k].step == rows[i].step; ++k)
        step_begin = std::min(step_begin, rows[k].begin);
    }
    double last = rows[i].begin;
    for (const uint32_t member : pipeline.graph.group(i)) last = std::max(last, rows[member].begin);
    const double transfer = rows[i].begin + rows[i].duration - last;
    pipeline.durations.push_back(transfer <= -k_clock_seconds ? 0 : transfer);
    double cause = step_begin;
    for (const uint32_t earlier : pipeline.graph.before(i))
      cause = std::max(cause, rows[earlier].begin + rows[earlier].duration);
    const double delay = rows[i].begin - cause;
    pipeline.delays.push_back(delay <= -k_clock_seconds ? 0 : delay);
  }
}

void require_every_replica(const PipelineReplay& pipeline, std::string_view where) {
  std::set<int32_t> replicas;
  for (const WorkerOperation& row : pipeline.operations) replicas.insert(row.dp_rank);
  int32_t next = 0;
  for (const int32_t replica : replicas)
    if (replica != next++)
      throw Error(Problem{fmt::format("has replica {} without replica {}", replica, next - 1), std::string(where),
                          "count data-parallel ranks from 0 and record each"});
}

}  // namespace

bool is_compute(OperationKind kind) {
  return kind == OperationKind::forward_compute || kind == OperationKind::backward_compute;
}

bool is_communication(OperationKind kind) {
  return !is_compute(kind) && kind != OperationKind::gc && kind != OperationKind::optimizer;
}

PipelineReplay make_pipeline_replay(std::vector<WorkerOperation> operations, std::string_view where) {
  PipelineReplay pipeline;
  pipeline.operations = std::move(operations);
  for (const WorkerOperation& row : pipeline.operations) {
    pipeline.graph.add_operation();
    pipeline.stages = std::max(pipeline.stages, row.stage + 1);
    pipeline.dp_ranks = std::max(pipeline.dp_ranks, row.dp_rank + 1);
    if (pipeline.steps.empty() || pipeline.steps.back() != row.step) pipeline.steps.push_back(row.step);
  }
  require_every_replica(pipeline, where);
  add_edges(pipeline, where);
  pipeline.graph.finish(where);
  measure_operations(pipeline);
  const auto begin = [&](size_t i) { return pipeline.operations[i].begin; };
  const auto end = [&](size_t i) { return pipeline.operations[i].begin + pipeline.operations[i].duration; };
  pipeline.measured = step_lengths(pipeline, begin, end);
  return pipeline;
}

std::vector<double> replay_steps(const PipelineReplay& pipeline, std::span<const double> durations,
                                 std::span<const double> delays) {
  const Replay times = replay(pipeline.graph, durations, delays);
  return step_lengths(
      pipeline, [&](size_t) { return 0.0; }, [&](size_t i) { return times.end[i]; });
}

}  // namespace tprimat::results
