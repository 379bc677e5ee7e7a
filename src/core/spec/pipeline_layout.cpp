#include "spec/pipeline_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace tprimat {
namespace {

constexpr size_t k_max_parts = 1 << 16;  // of a text with its repetitions written out; above any use

// Reads "*29" at a place of the text; 1 where there is none, 0 for a count that is none or too large.
size_t read_count(std::string_view text, size_t& at) {
  if (at >= text.size() || text[at] != '*') return 1;
  size_t count = 0, digits = 0;
  for (++at; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at, ++digits)
    count = std::min(k_max_parts + 1, count * 10 + static_cast<size_t>(text[at] - '0'));
  return digits == 0 || count > k_max_parts ? 0 : count;
}

bool append_repeated(std::string& to, std::string_view part, size_t count) {
  if (count == 0 || part.size() * count > k_max_parts - std::min(k_max_parts, to.size())) return false;
  for (size_t i = 0; i < count; ++i) to += part;
  return true;
}

// Each part as often as it says: first those in parentheses, which hold no others, then single letters.
std::optional<std::string> repeat_parts(std::string_view text, bool groups) {
  std::string whole;
  for (size_t at = 0; at < text.size();) {
    std::string_view part = text.substr(at, 1);
    if (groups && part == "(") {
      const size_t end = text.find(')', at);
      if (end == std::string_view::npos || end == at + 1) return std::nullopt;
      part = text.substr(at + 1, end - at - 1);
      at = end + 1;
      if (at >= text.size() || text[at] != '*') return std::nullopt;
    } else {
      ++at;
    }
    const size_t count = groups && text[at - 1] != ')' ? 1 : read_count(text, at);
    if (!append_repeated(whole, part, count)) return std::nullopt;
  }
  return whole;
}

// The order in which a model's parts follow one another; -1 for what is none.
int order_of(char part) {
  constexpr std::string_view k_parts = "EtmL";
  const size_t found = k_parts.find(part);
  return found == std::string_view::npos ? -1 : static_cast<int>(found);
}

void add_part(PlaceLayers& place, char part) {
  if (part == 'E') place.embedding = true;
  if (part == 't') ++place.layers;
  if (part == 'm') ++place.prediction;
  if (part == 'L') place.loss = true;
}

std::string write_place(const PlaceLayers& place) {
  const auto repeated = [](char part, int64_t count) {
    return count <= 2 ? std::string(static_cast<size_t>(count), part) : fmt::format("{}*{}", part, count);
  };
  return (place.embedding ? "E" : "") + repeated('t', place.layers) + repeated('m', place.prediction) +
         (place.loss ? "L" : "");
}

int64_t sum_of(const std::vector<PlaceLayers>& places, int64_t PlaceLayers::*part) {
  int64_t sum = 0;
  for (const PlaceLayers& each : places) sum += each.*part;
  return sum;
}

// All in one chunk, which is the last of its stage.
bool suits_prediction(const std::vector<PlaceLayers>& places, int64_t pipeline, int64_t prediction) {
  for (size_t place = 0; place < places.size(); ++place) {
    const int64_t here = places[place].prediction;
    const bool last_of_stage = static_cast<int64_t>(places.size() - place) <= pipeline;
    if (here != 0 && (here != prediction || !last_of_stage || (place == 0 && places.size() > 1))) return false;
  }
  return true;
}

}  // namespace

std::optional<std::vector<PlaceLayers>> parse_pipeline_layout(std::string_view text) {
  std::string plain(text.substr(0, k_max_parts));
  if (plain.size() != text.size()) return std::nullopt;
  std::erase(plain, ',');
  auto parts = repeat_parts(plain, true);
  if (parts) parts = repeat_parts(*parts, false);
  if (!parts) return std::nullopt;
  std::vector<PlaceLayers> places(1);
  int before = -1;
  for (const char part : *parts) {
    if (part == '|') {
      places.emplace_back();
      continue;
    }
    const int order = order_of(part);
    if (order < before || order < 0 || (order == before && (part == 'E' || part == 'L'))) return std::nullopt;
    before = order;
    add_part(places.back(), part);
  }
  if (!places.front().embedding || !places.back().loss) return std::nullopt;
  return places;
}

std::string write_pipeline_layout(const std::vector<int64_t>& layers_of_places, int64_t prediction_layers) {
  std::vector<std::string> places;
  const size_t count = layers_of_places.size();
  const bool apart = count > 2 && layers_of_places[count - 1] == 0 && layers_of_places[count - 2] == 0;
  for (size_t place = 0; place < count; ++place) {
    const bool predicts = place + (apart ? 2 : 1) == count;
    const bool first = place == 0, last = place + 1 == count;
    places.push_back(write_place({layers_of_places[place], predicts ? prediction_layers : 0, first, last}));
  }
  std::string text;
  for (size_t from = 0, to = 0; from < places.size(); from = to) {
    while (to < places.size() && places[to] == places[from]) ++to;
    const std::string each = places[from] + (to < places.size() ? "|" : "");
    text += to - from == 1 ? each : fmt::format("({})*{}", each, to - from);
  }
  return text;
}

std::optional<std::vector<int64_t>> list_place_layers(std::string_view text) {
  const auto places = parse_pipeline_layout(text);
  if (!places) return std::nullopt;
  std::vector<int64_t> layers;
  for (const PlaceLayers& each : *places) layers.push_back(each.layers);
  return layers;
}

std::string find_layout_fault(std::string_view text, const ModelSpec& model, int64_t pipeline, int64_t chunks) {
  const auto places = parse_pipeline_layout(text);
  if (!places)
    return "pipeline_layout is no list of chunks such as \"Et*3|(tt|)*29m|L\": E first, then t for each layer, m for "
           "each layer that predicts further tokens, and L last";
  const auto count = static_cast<int64_t>(places->size());
  if (count != pipeline * chunks)
    return fmt::format("pipeline_layout has {} chunks, but PP {} x VP {} is {}", count, pipeline, chunks,
                       pipeline * chunks);
  const int64_t layers = sum_of(*places, &PlaceLayers::layers);
  if (layers != model.num_layers)
    return fmt::format("pipeline_layout has {} layers (t), but the model has {}", layers, model.num_layers);
  const int64_t prediction = sum_of(*places, &PlaceLayers::prediction), asked = model.prediction_layers.value_or(0);
  if (prediction != asked)
    return fmt::format("pipeline_layout has {} layers that predict further tokens (m), but the model has {}",
                       prediction, asked);
  return suits_prediction(*places, pipeline, prediction)
             ? ""
             : "pipeline_layout must have all layers that predict further tokens (m) in one chunk, the last of its "
               "stage, and not in the first";
}

std::string describe_place_layers(const std::vector<int64_t>& layers_of_places) {
  std::string text;
  for (size_t from = 0, to = 0; from < layers_of_places.size(); from = to) {
    while (to < layers_of_places.size() && layers_of_places[to] == layers_of_places[from]) ++to;
    text += text.empty() ? "" : "+";
    if (to - from > 1) text += fmt::format("{}x", to - from);
    text += std::to_string(layers_of_places[from]);
  }
  constexpr size_t k_max = 28;
  if (text.size() <= k_max) return text;
  const auto [least, most] = std::ranges::minmax(layers_of_places);
  return fmt::format("of {} to {}", least, most);
}

}  // namespace tprimat
