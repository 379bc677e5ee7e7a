#include "probe/gpu_probes.h"

#include <algorithm>
#include <random>

namespace tprimat::engine {
namespace {

constexpr size_t k_cached_bytes = size_t{256} << 20;  // more than any GPU's last cache holds
constexpr size_t k_max_copies = 8;
constexpr size_t k_drawn = (size_t{1} << 20) + 61;  // numbers that are drawn; no row length divides them

template <class T>
const std::vector<T>& drawn_numbers() {
  static const std::vector<T> numbers = [] {
    std::mt19937_64 generator(7);
    std::normal_distribution<float> normal;
    std::vector<T> values(k_drawn);
    for (T& value : values) value = narrow<T>(normal(generator));
    return values;
  }();
  return numbers;
}

template <class T>
void fill_randomly(Device& device, T* to, size_t count) {
  const std::vector<T>& numbers = drawn_numbers<T>();
  for (size_t done = 0; done < count; done += numbers.size())
    device.upload(to + done, numbers.data(), std::min(numbers.size(), count - done) * sizeof(T));
}

// As many times two inputs as no cache holds together.
size_t copies_of(size_t bytes) {
  return std::clamp<size_t>(k_cached_bytes / std::max<size_t>(bytes, 1) + 1, 2, k_max_copies);
}

struct Sizes {
  int64_t m, n, k;
  int64_t left() const { return m * k; }
  int64_t right() const { return n * k; }
};

template <class T>
class PlainProduct : public GpuProduct {
 public:
  PlainProduct(const GpuMachine& machine, const OpTable<T>& ops, const ProductShape& shape, bool alone)
      : ops_(ops),
        pass_(shape.pass),
        sizes_{shape.m, shape.n, shape.k},
        count_(sizes_.left() + sizes_.right()),
        copies_(alone ? copies_of(static_cast<size_t>(count_) * sizeof(T)) : 1),
        inputs_(*machine.device, copies_ * static_cast<size_t>(count_) * sizeof(T)),
        output_(*machine.device, static_cast<size_t>(sizes_.m * sizes_.n) * sizeof(float)) {
    fill_randomly(*machine.device, inputs_.as<T>(), copies_ * static_cast<size_t>(count_));
  }

  void run() override {
    const T* const left = inputs_.as<T>() + static_cast<int64_t>(turn_++ % copies_) * count_;
    const T* const right = left + sizes_.left();
    const auto [m, n, k] = sizes_;
    switch (pass_) {
      case ProductPass::forward:
        return ops_.matmul(matrix(left, m, k), transposed(matrix(right, n, k)), result<T>(), false);
      case ProductPass::dgrad: return ops_.matmul(matrix(left, m, k), matrix(right, k, n), result<T>(), false);
      case ProductPass::wgrad:
        return ops_.matmul_wide(transposed(matrix(left, k, m)), matrix(right, k, n), result<float>(), true);
    }
  }

 private:
  template <class C>
  MatrixView<C> result() const {
    return matrix(output_.as<C>(), sizes_.m, sizes_.n);
  }
  const OpTable<T>& ops_;
  ProductPass pass_;
  Sizes sizes_;
  int64_t count_;
  size_t copies_, turn_ = 0;
  DeviceBytes inputs_, output_;
};

// Both operands have the summed dimension innermost, whatever the pass.
class Fp8ProbeProduct : public GpuProduct {
 public:
  Fp8ProbeProduct(const GpuMachine& machine, const ProductShape& shape, bool alone)
      : ops_(*machine.bf16_ops),
        pass_(shape.pass),
        sizes_{shape.m, shape.n, shape.k},
        count_(sizes_.left() + sizes_.right()),
        copies_(alone ? copies_of(static_cast<size_t>(count_)) : 1),
        inputs_(*machine.device, copies_ * static_cast<size_t>(count_)),
        scales_(*machine.device, 6 * sizeof(float)),
        output_(*machine.device, static_cast<size_t>(sizes_.m * sizes_.n) * sizeof(float)) {
    const DeviceBytes drawn(*machine.device,
                            static_cast<size_t>(std::max(sizes_.left(), sizes_.right())) * sizeof(bf16));
    for (size_t copy = 0; copy < copies_; ++copy) {
      uint8_t* const to = inputs_.as<uint8_t>() + static_cast<int64_t>(copy) * count_;
      quantize(machine, drawn, {sizes_.m, sizes_.k, left_format(), scale(0), to});
      quantize(machine, drawn, {sizes_.n, sizes_.k, Fp8Format::e4m3, scale(3), to + sizes_.left()});
    }
    machine.device->finish();
  }

  void run() override {
    const uint8_t* const left = inputs_.as<uint8_t>() + static_cast<int64_t>(turn_++ % copies_) * count_;
    const Fp8Matrix a{left, sizes_.m, sizes_.k, left_format(), scale(0).back},
        b{left + sizes_.left(), sizes_.n, sizes_.k, Fp8Format::e4m3, scale(3).back};
    if (pass_ == ProductPass::wgrad)
      ops_.fp8_matmul_wide({a, b, matrix(output_.as<float>(), sizes_.m, sizes_.n), true, false});
    else
      ops_.fp8_matmul({a, b, matrix(output_.as<bf16>(), sizes_.m, sizes_.n), false, pass_ == ProductPass::forward});
  }

 private:
  struct Operand {
    int64_t rows, cols;
    Fp8Format format;
    Fp8Scale scale;
    uint8_t* to;
  };
  Fp8Format left_format() const { return pass_ == ProductPass::forward ? Fp8Format::e4m3 : Fp8Format::e5m2; }
  Fp8Scale scale(int first) const {
    float* const floats = scales_.as<float>() + first;
    return {floats, floats + 1, floats + 2};
  }
  void quantize(const GpuMachine& machine, const DeviceBytes& drawn, const Operand& o) const {
    fill_randomly(*machine.device, drawn.as<bf16>(), static_cast<size_t>(o.rows * o.cols));
    ops_.fp8_quantize({o.rows, o.cols, drawn.as<bf16>(), o.format, Fp8Scaling::current, o.scale, o.to, nullptr});
  }

  const OpTable<bf16>& ops_;
  ProductPass pass_;
  Sizes sizes_;
  int64_t count_;
  size_t copies_, turn_ = 0;
  DeviceBytes inputs_, scales_, output_;
};

}  // namespace

std::unique_ptr<GpuProduct> make_gpu_product(const GpuMachine& machine, const ProductShape& shape, Precision precision,
                                             bool alone) {
  machine.products->tf32 = precision == Precision::tf32;
  switch (precision) {
    case Precision::fp32:
    case Precision::tf32: return std::make_unique<PlainProduct<float>>(machine, *machine.f32_ops, shape, alone);
    case Precision::bf16: return std::make_unique<PlainProduct<bf16>>(machine, *machine.bf16_ops, shape, alone);
    case Precision::fp16: return std::make_unique<PlainProduct<f16>>(machine, *machine.f16_ops, shape, alone);
    case Precision::fp8: break;
  }
  if (machine.bf16_ops->fp8_matmul == nullptr) return nullptr;
  return std::make_unique<Fp8ProbeProduct>(machine, shape, alone);
}

}  // namespace tprimat::engine
