#include "planner/row_shape.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "planner/weights.h"
#include "published/cells.h"
#include "published/printed.h"
#include "published/row_inputs.h"

namespace tprimat::planner {
namespace {

constexpr double k_gpt2_vocabulary = 51200;    // padded by Megatron-LM
constexpr double k_bloom_vocabulary = 250880;  // arXiv 2211.05100, table 3

// Heads that a row does not print: of 128 channels each.
void assume_heads(PublishedWorkload& read, const PublishedRow& row) {
  ModelSpec& model = read.workload.shape.model;
  constexpr int64_t k_head = 128;
  if (model.num_attention_heads != 1 || model.head_dim <= 2 * k_head || count_cell(row, "heads")) return;
  model.num_attention_heads = model.num_key_value_heads = std::max<int64_t>(1, model.hidden_size / k_head);
  model.head_dim = k_head;
  read.assumptions.push_back("heads of 128");
}

// A dense GPT of which the parameter count and the hidden size are printed has so many layers: 12 l h^2 + V h.
std::optional<CountedModel> shape_from_count(const PublishedRow& row) {
  const auto count = parse_printed_count(row.cell("params"));
  const auto hidden = count_cell(row, "hidden");
  if (!count || !hidden) return std::nullopt;
  PublishedRow complete = row;
  const auto h = static_cast<double>(*hidden);
  const double layers = std::round((count->value - k_bloom_vocabulary * h) / (12 * h * h));
  if (layers < 1 || layers > 1000) return std::nullopt;
  complete.cells["layers"] = std::to_string(static_cast<int64_t>(layers));
  return read_inputs(complete).shape;
}

// The vocabulary whose table of embeddings brings the printed parameter count about: GPT-2's, padded, or BLOOM's.
double assume_vocabulary(const PublishedRow& row, const ModelSpec& model) {
  const auto count = parse_printed_count(row.cell("params"));
  if (!count) return k_gpt2_vocabulary;
  const auto off = [&](double vocabulary) {
    const double counted = static_cast<double>(model.num_layers) * layer_weights(model) +
                           vocabulary * static_cast<double>(model.hidden_size);
    return std::fabs(counted - count->value);
  };
  return off(k_bloom_vocabulary) < off(k_gpt2_vocabulary) ? k_bloom_vocabulary : k_gpt2_vocabulary;
}

void find_missing_shape(RowInputs& inputs, std::vector<std::string>& assumptions, const PublishedRow& row) {
  if (inputs.shape) return;
  inputs.shape = shape_from_count(row);
  if (inputs.shape) assumptions.push_back(fmt::format("{} layers", inputs.shape->model.num_layers));
}

}  // namespace

bool read_row_shape(PublishedWorkload& read, const PublishedRow& row) {
  RowInputs inputs = read_inputs(row);
  find_missing_shape(inputs, read.assumptions, row);
  const std::string notes = lower_text(row.cell("notes"));
  if (!inputs.shape)
    read.missing = inputs.missing;
  else if (!unpredictable(*inputs.shape).empty())
    read.missing = unpredictable(*inputs.shape);
  else if (inputs.tuning == TuningKind::adapters)
    read.missing = "only adapters are trained";
  else if (mentions(notes, "check:"))
    read.missing = "marked CHECK: its figures contradict each other";
  else if (mentions(notes, "single transformer layer"))
    read.missing = "a single layer";
  if (!read.missing.empty()) return false;
  read.workload.shape = *inputs.shape;
  if (!inputs.vocabulary_known) {
    ModelSpec& model = read.workload.shape.model;
    model.vocab_size = static_cast<int64_t>(assume_vocabulary(row, model));
    read.assumptions.push_back(fmt::format("vocabulary {}", model.vocab_size));
  }
  assume_heads(read, row);
  return true;
}

}  // namespace tprimat::planner
