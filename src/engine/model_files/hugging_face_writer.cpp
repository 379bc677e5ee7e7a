#include <span>
#include <utility>

#include "base/check.h"
#include "base/files.h"
#include "model_files/hugging_face.h"
#include "text/json.h"

namespace tprimat::engine {
namespace {

// Hands out tensors in the order of our weights, each of which is asked for once.
class TensorCutter {
 public:
  TensorCutter(const ModelSpec& model, const WholeWeightSource& weights) : weights_(weights) {
    const HuggingFaceFamily family = find_hugging_face_family(model);
    for (const NamedShape& shape : whole_weights(model)) {
      int64_t first = 0;
      for (const TensorPart& part : tensor_parts(model, family, shape)) {
        places_[part.name] = {shape, part, first};
        shapes_.push_back({part.name, part.stored_shape()});
        first += part.count();
      }
    }
  }

  const std::vector<TensorShape>& shapes() const { return shapes_; }

  std::vector<float> cut(const std::string& tensor) {
    const Place& place = places_.at(tensor);
    if (place.weight.name != held_name_) {
      held_.clear();
      held_ = weights_(place.weight.name);
      held_name_ = place.weight.name;
      CHECK(static_cast<int64_t>(held_.size()) == place.weight.count());
    }
    const TensorPart& part = place.part;
    if (part.count() == place.weight.count() && !part.transposed) {
      held_name_.clear();
      return std::move(held_);
    }
    const auto rows = std::span(held_).subspan(static_cast<size_t>(place.first), static_cast<size_t>(part.count()));
    std::vector<float> values(rows.begin(), rows.end());
    if (part.transposed) transpose_matrix(rows, part.rows, part.cols, values);
    return values;
  }

 private:
  struct Place {
    NamedShape weight;
    TensorPart part;
    int64_t first = 0;  // its first value in the weight
  };
  const WholeWeightSource& weights_;
  std::map<std::string, Place> places_;
  std::vector<TensorShape> shapes_;
  std::string held_name_;
  std::vector<float> held_;
};

}  // namespace

void write_hugging_face(const SafetensorsOutput& output, const ModelSpec& model, const WholeWeightSource& weights) {
  const Json config = make_hugging_face_config(model, output.format);
  TensorCutter cutter(model, weights);
  write_safetensors_folder(output, cutter.shapes(), [&](const TensorShape& tensor) { return cutter.cut(tensor.name); });
  write_file_atomically(output.folder / "config.json", print_json(config));
}

}  // namespace tprimat::engine
