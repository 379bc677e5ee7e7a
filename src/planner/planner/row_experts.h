#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "planner/published_workload.h"

// What a row of a published table says of a model with experts, latent attention or layers that predict further tokens,
// and what the recipes of its program use where it says nothing.
namespace tprimat::planner {

// A number that stands in a cell. `pattern` admits at most nine digits.
std::optional<int64_t> printed_number(const PublishedRow& row, const std::string& column, const char* pattern);

// Who chooses the experts, as the notes say, or the program that the row names always sets it.
std::optional<Routing> noted_routing(const PublishedRow& row);

// Who chooses the experts, and what the row's program usually sets for the model; after shape, precision and release.
void read_usual_settings(PublishedWorkload& read, const PublishedRow& row);

// The row with the layout of these settings, where it prints none.
PublishedRow complete_layout(PublishedWorkload& read, const PublishedRow& row);

// EP and ETP, after the other sizes of the layout. Says why nothing can be predicted; empty where something can.
std::string read_expert_layout(PublishedWorkload& read, const PublishedRow& row);

// What the row says of dispatcher, CUDA graphs and the bytes of the optimizer's moments.
void read_expert_features(Workload& workload, const PublishedRow& row);

// The usual settings where neither the row nor its recipe says anything; the row with what is recomputed.
PublishedRow complete_by_settings(PublishedWorkload& read, const PublishedRow& row);

// Layers that predict further tokens: noted, or what the printed TFLOP/s and tokens/s agree on.
void read_prediction_layers(PublishedWorkload& read, const PublishedRow& row);

// Layers of each chunk where chunks do not divide them.
void cut_unevenly(PublishedWorkload& read, const PublishedRow& row);

// "selective: moe_act, layernorm", "full 5 layers", "15 layers by ID", "1 layer per virtual stage".
void read_partial_recompute(Workload& workload, const PublishedRow& row);

// Why a row's figures are left out of fits; empty where they are not.
std::string weakness_of(const PublishedRow& row);

}  // namespace tprimat::planner
