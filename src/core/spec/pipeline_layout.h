#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "spec/model_spec.h"

namespace tprimat {

// What one of the PP x VP chunks of a pipeline holds.
struct PlaceLayers {
  int64_t layers = 0;
  int64_t prediction = 0;  // layers that predict further tokens
  bool embedding = false;
  bool loss = false;
};

// The chunks of a pipeline in the model's order, place = chunk x PP + stage, from the notation of Megatron-LM's
// --pipeline-model-parallel-layout: E embedding, t a layer, m a layer that predicts further tokens, L head and loss,
// '|' between chunks, "t*3" and "(tt|)*29" repeated, commas without meaning. "Et*3|(tt|)*29m|L": 61 layers in 32
// chunks. Nothing for other text, or for parts that are out of order.
std::optional<std::vector<PlaceLayers>> parse_pipeline_layout(std::string_view text);

// The same notation, with repetitions, for a cut whose last chunk has all that follows the layers; where its last two
// have none, what predicts further tokens lies in the first of them ("m|L").
std::string write_pipeline_layout(const std::vector<int64_t>& layers_of_places, int64_t prediction_layers);

// The layers of each chunk; nothing for text that is no layout.
std::optional<std::vector<int64_t>> list_place_layers(std::string_view text);

// Why that text cannot cut this model into PP x VP chunks, as a sentence; empty where it can.
std::string find_layout_fault(std::string_view text, const ModelSpec& model, int64_t pipeline, int64_t chunks);

// "5+14x4+1": counts of layers, equal neighbours together; "of 1 to 3" where that would be long.
std::string describe_place_layers(const std::vector<int64_t>& layers_of_places);

}  // namespace tprimat
