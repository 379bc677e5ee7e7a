#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tprimat {

// Where one weight lives in the flat vector of all weights, which gradients and optimizer states mirror.
struct Parameter {
  std::string name;    // "layers.3.mlp.down.weight"
  int64_t offset = 0;  // elements
  int64_t rows = 1;
  int64_t cols = 0;
  double mean = 0.0;  // initial values are drawn from N(mean, stddev²)
  double stddev = 0.0;
  bool decays = false;  // weight decay applies: matrices yes, norms and biases no
  int64_t count() const { return rows * cols; }
};

class ParameterTable {
 public:
  // Return the offset of the new weight.
  int64_t add_matrix(const std::string& name, int64_t rows, int64_t cols, double stddev);
  int64_t add_vector(const std::string& name, int64_t count, double value);

  const std::vector<Parameter>& all() const { return all_; }
  int64_t size() const { return size_; }    // elements of the flat vector, alignment gaps included
  int64_t count() const { return count_; }  // weights

 private:
  int64_t add(Parameter parameter);
  std::vector<Parameter> all_;
  int64_t size_ = 0;
  int64_t count_ = 0;
};

// The initial values of one weight, drawn from N(mean, stddev²). Value i depends on the seed, the weight's name and i
// only, so that any number of threads or ranks draws the same weights.
class InitialValues {
 public:
  InitialValues(const Parameter& parameter, int64_t seed);
  double at(int64_t index) const;

 private:
  double mean_, stddev_;
  uint64_t stream_;
};

}  // namespace tprimat
