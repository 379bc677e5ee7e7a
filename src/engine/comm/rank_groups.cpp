#include "comm/rank_groups.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/error.h"

namespace tprimat::engine {
namespace {

void check_world(const ParallelSpec& layout, int ranks) {
  if (layout.ranks() == ranks) return;
  throw Error(Problem{
      fmt::format("the layout TP={} · CP={} · DP={} · PP={} needs {} ranks, but there {} {}", layout.tensor,
                  layout.context, layout.data, layout.pipeline, layout.ranks(), ranks == 1 ? "is" : "are", ranks),
      "parallel",
      fmt::format("start it with mpirun -n {0}, or torchrun --no-python --nproc-per-node {0}", layout.ranks())});
}

// A tied embedding is kept twice: on the first and on the last stage.
int embedding_color(const TrainSpec& spec, int rank, RankPlace place) {
  const int last = static_cast<int>(spec.parallel.pipeline) - 1;
  const bool has_copy = spec.model.tied_embeddings && last > 0 && (place.pipeline == 0 || place.pipeline == last);
  if (!has_copy) return rank;
  place.pipeline = 0;
  return rank_at(spec.parallel, place);
}

// With more tensor-parallel ranks than key/value heads, TP / heads neighbours hold the same head.
int key_value_color(const TrainSpec& spec, RankPlace place) {
  const int64_t heads = std::max<int64_t>(spec.model.num_key_value_heads, 1);
  const auto sharing = static_cast<int>(std::max<int64_t>(spec.parallel.tensor / heads, 1));
  place.tensor -= place.tensor % sharing;
  return rank_at(spec.parallel, place);
}

}  // namespace

RankPlace rank_place(const ParallelSpec& layout, int rank) {
  CHECK(rank >= 0 && rank < layout.ranks());
  RankPlace place;
  const auto take = [&rank](int64_t size) {
    const int digit = static_cast<int>(rank % size);
    rank = static_cast<int>(rank / size);
    return digit;
  };
  place.tensor = take(layout.tensor);
  place.context = take(layout.context);
  place.data = take(layout.data);
  place.pipeline = take(layout.pipeline);
  return place;
}

int rank_at(const ParallelSpec& layout, const RankPlace& place) {
  return static_cast<int>(place.tensor +
                          layout.tensor *
                              (place.context + layout.context * (place.data + layout.data * int64_t{place.pipeline})));
}

// The places that differ inside a group are set to 0.
GroupColors group_colors(const TrainSpec& spec, int rank) {
  const ParallelSpec& layout = spec.parallel;
  const RankPlace at = rank_place(layout, rank);
  return {.tensor = rank_at(layout, {0, at.context, at.data, at.pipeline}),
          .context = rank_at(layout, {at.tensor, 0, at.data, at.pipeline}),
          .pipeline = rank_at(layout, {at.tensor, at.context, at.data, 0}),
          .data = rank_at(layout, {at.tensor, 0, 0, at.pipeline}),
          .model = rank_at(layout, {0, at.context, at.data, 0}),
          .embedding = embedding_color(spec, rank, at),
          .key_value = key_value_color(spec, at)};
}

RankGroups make_rank_groups(const TrainSpec& spec, std::unique_ptr<Communicator> world, ConnectDevices connect) {
  check_world(spec.parallel, world->size());
  const int rank = world->rank();
  const GroupColors colors = group_colors(spec, rank);
  RankGroups groups;
  groups.place = rank_place(spec.parallel, rank);
  groups.tensor = world->split(colors.tensor, rank);
  groups.context = world->split(colors.context, rank);
  groups.pipeline = world->split(colors.pipeline, rank);
  groups.data = world->split(colors.data, rank);
  groups.model = world->split(colors.model, rank);
  groups.embedding = world->split(colors.embedding, rank);
  groups.key_value = world->split(colors.key_value, rank);
  if (connect != nullptr)
    for (auto* group : {&groups.tensor, &groups.context, &groups.pipeline, &groups.data, &groups.model,
                        &groups.embedding, &groups.key_value})
      if ((*group)->size() > 1) *group = connect(std::move(*group));
  groups.pipeline->connect_neighbours();  // the only group whose ranks send to each other
  groups.world = std::move(world);
  return groups;
}

}  // namespace tprimat::engine
