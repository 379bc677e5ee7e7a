#include <charconv>
#include <cmath>

#include "why/work_rows.h"

namespace tprimat::results {
namespace {

double elements(const Dimensions& shape) {
  double product = shape.empty() ? 0 : 1;
  for (const double each : shape) product *= each;
  return product;
}

// m k n of [b,] m k times [b,] k n, or a weight n k: the last two operands that are matrices.
double multiplications(const std::vector<Dimensions>& shapes) {
  std::vector<const Dimensions*> matrices;
  for (const Dimensions& shape : shapes)
    if (shape.size() >= 2) matrices.push_back(&shape);
  if (matrices.size() < 2) return 0;
  const bool with_addend = matrices.size() >= 3 && matrices[0]->size() == matrices[1]->size();
  const Dimensions &left = *matrices[with_addend ? 1 : 0], &right = *matrices[with_addend ? 2 : 1];
  const double inner = left.back() > 0 ? left.back() : 1;
  const double batch = left.size() == 3 && right.size() == 3 && left[0] > 0 ? left[0] : 1;
  return elements(left) * elements(right) / inner / batch;
}

// Queries times keys: [.., length, width] each.
double of_attention(const std::vector<Dimensions>& shapes) {
  if (shapes.size() < 2 || shapes[1].size() < 2) return 0;
  return elements(shapes[0]) * shapes[1][shapes[1].size() - 2];
}

// What it reads or makes first, times the weights for each of its channels: the weight is the last of such rank.
double of_convolution(const std::vector<Dimensions>& shapes) {
  const Dimensions* weight = nullptr;
  for (size_t i = 1; i < shapes.size(); ++i)
    if (shapes[i].size() == shapes[0].size() && shapes[i].size() >= 3) weight = &shapes[i];
  return weight == nullptr ? 0 : elements(shapes[0]) * elements(*weight) / std::max((*weight)[1], 1.0);
}

}  // namespace

std::vector<Dimensions> parse_shapes(std::string_view text) {
  std::vector<Dimensions> shapes;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '[') {
      shapes.emplace_back();
    } else if (!shapes.empty() && text[i] >= '0' && text[i] <= '9') {
      const char* begin = text.data() + i;
      double value = 0;
      const auto done = std::from_chars(begin, text.data() + text.size(), value);
      const bool inside = text.find(']', i) != std::string_view::npos && text.find(']', i) < text.find('[', i);
      if (inside) shapes.back().push_back(value);
      i += static_cast<size_t>(done.ptr - begin) - 1;
    }
  }
  return shapes;
}

double volume_of(logs::KernelClass kernel_class, std::string_view shapes) {
  const std::vector<Dimensions> parsed = parse_shapes(shapes);
  switch (kernel_class) {
    case logs::KernelClass::matmul: return multiplications(parsed);
    case logs::KernelClass::attention: return of_attention(parsed);
    case logs::KernelClass::convolution: return of_convolution(parsed);
    default: break;
  }
  double sum = 0;
  for (const Dimensions& shape : parsed) sum += elements(shape);
  return sum;
}

}  // namespace tprimat::results
