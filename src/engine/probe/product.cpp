#include "probe/product.h"

#include <fmt/format.h>

#include <cstring>
#include <random>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "base/check.h"
#include "base/error.h"
#include "device/arena.h"
#include "device/element.h"
#include "ops/cpu/bf16_panels.h"
#include "ops/cpu/float_product.h"
#include "ops/cpu/onednn.h"
#include "ops/op_table.h"

namespace tprimat::engine {
namespace {

using dnnl::memory;
using Type = memory::data_type;
using Layout = memory::format_tag;

struct Types {
  Type input, weights, output;
};

Types types_of(ProductFormat format, ProductPass pass) {
  switch (format) {
    case ProductFormat::fp32: return {Type::f32, Type::f32, Type::f32};
    case ProductFormat::bf16: return {Type::bf16, Type::bf16, pass == ProductPass::wgrad ? Type::f32 : Type::bf16};
    case ProductFormat::fp16: return {Type::f16, Type::f16, pass == ProductPass::wgrad ? Type::f32 : Type::f16};
    case ProductFormat::int8: return {Type::u8, Type::s8, Type::s32};
  }
  CHECK(!"a format");
}

// Normal numbers, drawn once and repeated: their bits vary enough that no multiplier idles.
std::vector<float> draw_normal() {
  std::mt19937 generator(42);
  std::normal_distribution<float> normal;
  std::vector<float> values((1 << 16) + 7);  // odd, so that rows differ
  for (float& value : values) value = normal(generator);
  return values;
}

void fill_normal(std::byte* to, int64_t count, Type type) {
  static const std::vector<float> normal = draw_normal();
  for (int64_t i = 0; i < count; ++i) {
    const float value = normal[static_cast<size_t>(i) % normal.size()];
    if (type == Type::f32) {
      std::memcpy(to + i * 4, &value, 4);
    } else if (type == Type::bf16) {
      const bf16 rounded = to_bf16(value);
      std::memcpy(to + i * 2, &rounded, 2);
    } else if (type == Type::f16) {
      const f16 half = to_f16(value);
      std::memcpy(to + i * 2, &half, 2);
    } else {
      to[i] = std::byte(static_cast<uint8_t>(static_cast<int8_t>(value * 24)));
    }
  }
}

dnnl::matmul::primitive_desc describe(const ProductShape& shape, const Types& types, const dnnl::engine& engine) {
  const bool is_wgrad = shape.pass == ProductPass::wgrad;
  const memory::desc input({shape.m, shape.k}, types.input, is_wgrad ? Layout::ba : Layout::ab);
  const memory::desc weights({shape.k, shape.n}, types.weights, is_wgrad ? Layout::ab : Layout::any);
  const memory::desc output({shape.m, shape.n}, types.output, Layout::ab);
  dnnl::primitive_attr strict;
  strict.set_fpmath_mode(dnnl::fpmath_mode::strict);  // fp32 stays fp32 whatever the environment says
  return describe_product(engine, input, weights, output, strict);
}

class DnnlProduct : public Product {
 public:
  DnnlProduct(const ProductShape& shape, ProductFormat format)
      : engine_(dnnl::engine::kind::cpu, 0),
        stream_(engine_),
        types_(types_of(format, shape.pass)),
        described_(describe(shape, types_, engine_)),
        product_(described_),
        arena_(plan()) {
    const memory weights(described_.weights_desc(), engine_, arena_.at(weights_));
    fill_weights(shape, weights);
    fill_normal(arena_.at(input_), shape.m * shape.k, types_.input);
    arguments_ = {{DNNL_ARG_SRC, memory(described_.src_desc(), engine_, arena_.at(input_))},
                  {DNNL_ARG_WEIGHTS, weights},
                  {DNNL_ARG_DST, memory(described_.dst_desc(), engine_, arena_.at(output_))}};
  }

  void run() override {
    product_.execute(stream_, arguments_);
    stream_.wait();
  }

 private:
  ArenaPlan plan() {
    ArenaPlan plan;
    weights_ =
        plan.reserve<std::byte>(Component::workspace, static_cast<int64_t>(described_.weights_desc().get_size()));
    input_ = plan.reserve<std::byte>(Component::workspace, static_cast<int64_t>(described_.src_desc().get_size()));
    output_ = plan.reserve<std::byte>(Component::workspace, static_cast<int64_t>(described_.dst_desc().get_size()));
    return plan;
  }

  void fill_weights(const ProductShape& shape, memory packed) {
    const memory::desc plain({shape.k, shape.n}, types_.weights, Layout::ab);
    ArenaPlan plan;
    const Slot<std::byte> slot = plan.reserve<std::byte>(Component::workspace, static_cast<int64_t>(plain.get_size()));
    const Arena arena(plan);
    fill_normal(arena.at(slot), shape.k * shape.n, types_.weights);
    memory from(plain, engine_, arena.at(slot));
    dnnl::reorder(from, packed).execute(stream_, from, packed);
    stream_.wait();
  }

  dnnl::engine engine_;
  dnnl::stream stream_;
  Types types_;
  dnnl::matmul::primitive_desc described_;
  dnnl::matmul product_;
  Slot<std::byte> weights_, input_, output_;  // before arena_, which is planned from them
  Arena arena_;
  std::unordered_map<int, memory> arguments_;
};

template <class T>
class OwnProduct : public Product {
 public:
  explicit OwnProduct(const ProductShape& shape) : shape_(shape), arena_(plan()) {
    fill_normal(reinterpret_cast<std::byte*>(arena_.at(left_)), shape.m * shape.k, k_type);
    fill_normal(reinterpret_cast<std::byte*>(arena_.at(right_)), shape.k * shape.n, k_type);
  }

  void run() override {
    const auto& [name, pass, m, n, k] = shape_;
    const T *const left = arena_.at(left_), *const right = arena_.at(right_);
    if (pass == ProductPass::wgrad)
      return cpu_ops<T>().matmul_wide(transposed(matrix(left, k, m)), matrix(right, k, n),
                                      matrix(arena_.at(sums_), m, n), false);
    const auto weights = pass == ProductPass::forward ? transposed(matrix(right, n, k)) : matrix(right, k, n);
    cpu_ops<T>().matmul(matrix(left, m, k), weights, matrix(arena_.at(output_), m, n), false);
  }

 private:
  static constexpr Type k_type = std::is_same_v<T, bf16> ? Type::bf16 : Type::f32;

  ArenaPlan plan() {
    ArenaPlan plan;
    const int64_t count = shape_.m * shape_.n;
    left_ = plan.reserve<T>(Component::workspace, shape_.m * shape_.k);
    right_ = plan.reserve<T>(Component::workspace, shape_.k * shape_.n);
    if (shape_.pass == ProductPass::wgrad)
      sums_ = plan.reserve<float>(Component::workspace, count);
    else
      output_ = plan.reserve<T>(Component::workspace, count);
    return plan;
  }

  ProductShape shape_;
  Slot<T> left_, right_, output_;  // before arena_, which is planned from them
  Slot<float> sums_;
  Arena arena_;
};

// The names are those of x86; on Arm the same bits stand for the widths of SVE.
bool has_set([[maybe_unused]] dnnl::cpu_isa set) {
#if defined(__x86_64__)
  const auto needed = static_cast<int>(set);
  return (static_cast<int>(dnnl::get_effective_cpu_isa()) & needed) == needed;
#else
  return false;
#endif
}

// oneDNN offers fp16 on a CPU only where it has the instructions, or else a plain loop named "ref".
bool has_fp16_products() {
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  try {
    const ProductShape shape{"", ProductPass::forward, 64, 64, 64};
    const auto described = describe(shape, types_of(ProductFormat::fp16, shape.pass), engine);
    return std::string(described.impl_info_str()).find("ref") == std::string::npos;
  } catch (const dnnl::error&) {
    return false;
  }
}

}  // namespace

bool has_instructions(ProductFormat format) {
  switch (format) {
    case ProductFormat::fp32: return true;
    case ProductFormat::bf16: return has_set(dnnl::cpu_isa::avx512_core_bf16);
    case ProductFormat::fp16: return has_fp16_products();
    case ProductFormat::int8: return has_set(dnnl::cpu_isa::avx512_core_vnni) || has_set(dnnl::cpu_isa::avx2_vnni);
  }
  CHECK(!"a format");
}

std::unique_ptr<Product> make_product(const ProductShape& shape, ProductFormat format) {
  if (!has_instructions(format)) return nullptr;
  try {
    return std::make_unique<DnnlProduct>(shape, format);
  } catch (const dnnl::error& error) {
    throw Error(Problem{fmt::format("the matrix-product probe failed in oneDNN: {}", error.message), "", ""},
                ExitStatus::work_failed);
  }
}

std::unique_ptr<Product> make_own_product(const ProductShape& shape, ProductFormat format) {
  if (format == ProductFormat::bf16 && has_bf16_pairs()) return std::make_unique<OwnProduct<bf16>>(shape);
  if (format == ProductFormat::fp32 && !float_product_instructions().empty())
    return std::make_unique<OwnProduct<float>>(shape);
  return nullptr;
}

}  // namespace tprimat::engine
