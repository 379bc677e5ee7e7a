// What an operation of the native trainer costs beside its work: handing pieces to the threads and waiting for them,
// alone and in operations on so few numbers that nothing else takes time. One operation follows the other, as in a
// step.
//   bench_operation_cost [rounds]
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <vector>

#include "base/clock.h"
#include "device/parallel.h"
#include "ops/op_table.h"
#include "stats/descriptive.h"

namespace tprimat {
namespace {

using engine::bf16;
using engine::matrix;

constexpr int k_calls = 2000;  // a round

void print_cost(const char* name, int rounds, const std::function<void()>& call) {
  std::vector<double> micros;
  for (int round = 0; round < rounds; ++round) {
    const auto start = SteadyClock::now();
    for (int i = 0; i < k_calls; ++i) call();
    micros.push_back(seconds_since(start) / k_calls * 1e6);
  }
  fmt::print("{:<44}{:>8.2f}{:>8.2f}\n", name, median(micros), std::ranges::min(micros));
}

}  // namespace
}  // namespace tprimat

int main(int argc, char** argv) {
  using namespace tprimat;
  engine::set_thread_count(0);
  const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 51;
  const int64_t pieces = engine::k_pieces_per_thread * engine::thread_count();
  fmt::print("{} threads; microseconds a call, {} rounds of {} calls\n{:<44}{:>8}{:>8}\n", engine::thread_count(),
             rounds, k_calls, "", "median", "lowest");
  print_cost("a loop of as many pieces as threads", rounds,
             [] { engine::parallel_each(engine::thread_count(), [](int64_t) {}); });
  print_cost("a loop of four pieces per thread", rounds, [&] { engine::parallel_each(pieces, [](int64_t) {}); });

  constexpr int64_t k_rows = 8, k_cols = 32;
  std::vector<bf16> x(k_rows * k_cols), y(k_rows * k_cols), weight(k_cols * k_cols);
  std::vector<float> scale(k_rows);
  const auto& ops = engine::cpu_ops<bf16>();
  print_cost("rmsnorm of 8 x 32", rounds, [&] {
    ops.rmsnorm_forward({k_rows, k_cols}, x.data(), weight.data(), y.data(), scale.data());
  });
  print_cost("sum of two tensors of 8 x 32", rounds, [&] { ops.add(k_rows * k_cols, x.data(), y.data(), y.data()); });
  print_cost("product of 8 x 32 x 32, bf16", rounds, [&] {
    ops.matmul(matrix<const bf16>(x.data(), k_rows, k_cols), matrix<const bf16>(weight.data(), k_cols, k_cols),
               matrix(y.data(), k_rows, k_cols), false);
  });
}
