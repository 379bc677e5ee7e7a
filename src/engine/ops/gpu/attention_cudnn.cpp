#include "ops/gpu/attention_cudnn.h"

#if !defined(TPRIMAT_HAS_CUDNN)
namespace tprimat::engine::gpu {
CudnnRefusal refusal_of_cudnn() {
  static const std::string refusal = "this program was built without the headers of cuDNN (docs/gpu.md)";
  return &refusal;
}
bool is_cudnn_installed() { return false; }
template <class T>
CudnnRefusal cudnn_attention_forward(const AttentionShape&, const AttentionInputs<T>&, const HeadRows<T>&, float*) {
  return refusal_of_cudnn();
}
template <class T>
CudnnRefusal cudnn_attention_backward(const AttentionShape&, const AttentionGradient<T>&, bool) {
  return refusal_of_cudnn();
}
#else
#include <fmt/format.h>

#include <cstdlib>

#include "base/error.h"
#include "device/gpu/context.h"
#include "device/gpu/libraries.h"
#include "ops/gpu/attention_choice.h"
#include "ops/gpu/attention_kernels.h"
#include "ops/gpu/cudnn_plan.h"

void* cudnn_frontend::cudnn_dlhandle = nullptr;

namespace tprimat::engine::gpu {
namespace {

namespace fe = cudnn_frontend;

using TensorAddresses = std::unordered_map<int64_t, void*>;

struct CudnnPlan {
  std::shared_ptr<fe::graph::Graph> graph;  // null: cuDNN does not do it
  void* workspace = nullptr;                // of this plan alone: recorded work points to it
  std::string refusal;
};

std::string why_not_open(const WantedLibrary& wanted) {
  try {
    open_library(wanted);
    return "";
  } catch (const Error& error) {
    return error.problems().front().what;
  }
}

// The library on one GPU, or why there is none, with what was planned there.
class Cudnn {
 public:
  Cudnn() {
    // In-order sums of dquery shall take memory in proportion to the sequence, not to its square.
    ::setenv("CUDNN_FRONTEND_ATTN_DP_WORKSPACE_LIMIT", "0", 0);
    ::setenv("CUDNN_FRONTEND_CUDART_LIB_NAME", runtime_library().names.front().c_str(), 0);
    // cuDNN and the frontend open these by their bare names, and find them once they are open.
    without_compiler = why_not_open(compiler_library());
    try {
      open_library(runtime_library());
      open_library(product_library());
      fe::cudnn_dlhandle = open_library(attention_library());
      start();
    } catch (const Error& error) {  // a library is missing, or cannot be loaded
      refusal = error.problems().front().what;
    } catch (const std::exception& failure) {  // it lacks a function
      refusal = std::string("cuDNN failed to initialize: ") + failure.what();
    }
  }
  ~Cudnn() {
    for (const auto& [attention, plan] : plans) driver::ignore(driver::release(plan.workspace));
    for (const auto& [size, buffer] : gradient_buffers) driver::ignore(driver::release(buffer));
    plans.clear();
    if (handle != nullptr) fe::detail::destroy_handle(handle);
  }
  Cudnn(const Cudnn&) = delete;
  Cudnn& operator=(const Cudnn&) = delete;

  cudnnHandle_t handle = nullptr;
  std::string refusal, without_compiler;  // empty: all is there
  std::map<CudnnAttention, CudnnPlan> plans;
  std::map<std::pair<int64_t, int>, void*> gradient_buffers;  // by their size, since recorded work points to them

 private:
  void start() {
    auto status = fe::detail::create_handle(&handle);
    if (status == CUDNN_STATUS_SUCCESS) status = fe::detail::set_stream(handle, context().stream);
    if (status == CUDNN_STATUS_SUCCESS) return;
    refusal = "cuDNN failed to initialize: " + std::string(fe::detail::get_error_string(status));
    handle = nullptr;
  }
};

[[noreturn]] void throw_failure(const std::string& message) {
  throw Error(Problem{"cuDNN failed: " + message, "attention on a GPU",
                      std::string(k_attention_variable) + "=own runs attention without cuDNN"},
              ExitStatus::work_failed);
}

CudnnPlan refused(const std::string& why) { return {nullptr, nullptr, why}; }

CudnnPlan make_plan(const Cudnn& cudnn, const CudnnAttention& attention) {
  CudnnPlan plan{attention_graph(attention), nullptr, ""};
  int64_t bytes = 0;
  try {
    if (auto status = plan.graph->build(cudnn.handle, {fe::HeurMode_t::A}); status.is_bad())
      return refused("no execution plan for this shape: " + status.get_message() +
                     (cudnn.without_compiler.empty() ? "" : "; " + cudnn.without_compiler));
    if (auto status = plan.graph->get_workspace_size(bytes); status.is_bad())
      return refused("its plan has no known workspace size: " + status.get_message());
  } catch (const std::exception& failure) {
    return refused(std::string("it cannot plan this shape: ") + failure.what());
  }
  const std::string needs = fmt::format("its plan needs {:.2f} GB of workspace", static_cast<double>(bytes) / 1e9);
  const size_t free = bytes_for_libraries();
  if (static_cast<size_t>(bytes) > free)
    return refused(fmt::format(
        "{}, but {:.2f} GB are free{}", needs, static_cast<double>(free) / 1e9,
        attention.pass == CudnnAttention::Pass::backward_in_order ? " (deterministic: false needs less)" : ""));
  if (bytes > 0 && driver::allocate(&plan.workspace, static_cast<size_t>(bytes)) != k_success) {
    driver::ignore(driver::last_error());  // is not said again
    return refused(needs + ", but the allocation failed");
  }
  return plan;
}

CudnnRefusal run(const CudnnAttention& attention, TensorAddresses addresses) {
  Cudnn& cudnn = of_device<Cudnn>();
  auto found = cudnn.plans.find(attention);
  if (found == cudnn.plans.end()) found = cudnn.plans.emplace(attention, make_plan(cudnn, attention)).first;
  const CudnnPlan& plan = found->second;
  if (plan.graph == nullptr) return &plan.refusal;
  auto status = plan.graph->execute(cudnn.handle, addresses, plan.workspace);
  if (status.is_bad()) throw_failure(status.get_message());
  return nullptr;
}

template <class T>
CudnnAttention::Strides strides_of(const HeadRows<T>& rows) {
  return {rows.row_stride, rows.sequence_stride};
}
template <class T>
void* address_of(const HeadRows<T>& rows) {
  return const_cast<std::remove_const_t<T>*>(rows.data);
}

// Keys up to the last query's position; what lies behind is seen by nobody.
int64_t seen_keys(const AttentionShape& shape) { return shape.first_query + shape.queries; }

// Null where it may.
template <class T>
CudnnRefusal why_not_take(const AttentionShape& shape, std::initializer_list<HeadRows<const T> > all) {
  static const std::string ends_early = "keys end before the last query";
  static const std::string odd = "row sizes are not multiples of 16 bytes";
  if (seen_keys(shape) > shape.keys) return &ends_early;
  if (!heads_fit_packs<T>(shape, all)) return &odd;
  return refusal_of_cudnn();
}

template <class T>
CudnnAttention describe(const AttentionShape& shape, CudnnAttention::Pass pass, const AttentionInputs<T>& in) {
  CudnnAttention a;
  a.pass = pass, a.is_bf16 = std::is_same_v<T, bf16>;
  a.batch = shape.batch, a.queries = shape.queries, a.keys = seen_keys(shape);
  a.heads = shape.heads, a.kv_heads = shape.kv_heads, a.head_dim = shape.head_dim, a.window = shape.window;
  a.query = strides_of(in.query), a.key = strides_of(in.key), a.value = strides_of(in.value);
  return a;
}

// Where dkey and dvalue of one call go before they are added to what is there.
template <class T>
HeadRows<T> gradient_buffer(const AttentionShape& shape, int which) {
  const int64_t row = shape.kv_heads * shape.head_dim, count = shape.batch * seen_keys(shape) * row;
  void*& buffer = of_device<Cudnn>().gradient_buffers[{count, which}];
  if (buffer == nullptr) check(driver::allocate(&buffer, static_cast<size_t>(count) * sizeof(T)));
  return {static_cast<T*>(buffer), row, seen_keys(shape) * row};
}

}  // namespace

CudnnRefusal refusal_of_cudnn() {
  const Cudnn& cudnn = of_device<Cudnn>();
  return cudnn.handle == nullptr ? &cudnn.refusal : nullptr;
}

bool is_cudnn_installed() { return why_not_open(attention_library()).empty(); }

template <class T>
CudnnRefusal cudnn_attention_forward(const AttentionShape& shape, const AttentionInputs<T>& in, const HeadRows<T>& y,
                                     float* logsumexp) {
  if (const CudnnRefusal refusal = why_not_take<T>(shape, {in.query, in.key, in.value, y.read_only()})) return refusal;
  CudnnAttention attention = describe(shape, CudnnAttention::Pass::forward, in);
  attention.y = strides_of(y);
  return run(attention, {{k_query, address_of(in.query)},
                         {k_key, address_of(in.key)},
                         {k_value, address_of(in.value)},
                         {k_y, address_of(y)},
                         {k_logsumexp, logsumexp}});
}

template <class T>
CudnnRefusal cudnn_attention_backward(const AttentionShape& shape, const AttentionGradient<T>& g, bool in_order) {
  const AttentionInputs<T>& in = g.inputs;
  if (const CudnnRefusal refusal = why_not_take<T>(shape, {in.query, in.key, in.value, g.y, g.dy, g.dquery.read_only(),
                                                           g.dkey.read_only(), g.dvalue.read_only()}))
    return refusal;
  const HeadRows<T> dkey = g.accumulate ? gradient_buffer<T>(shape, 0) : g.dkey;
  const HeadRows<T> dvalue = g.accumulate ? gradient_buffer<T>(shape, 1) : g.dvalue;
  using Pass = CudnnAttention::Pass;
  CudnnAttention attention = describe(shape, in_order ? Pass::backward_in_order : Pass::backward, in);
  attention.y = strides_of(g.y), attention.dy = strides_of(g.dy), attention.dquery = strides_of(g.dquery);
  attention.dkey = strides_of(dkey), attention.dvalue = strides_of(dvalue);
  if (const CudnnRefusal refusal = run(attention, {{k_query, address_of(in.query)},
                                                   {k_key, address_of(in.key)},
                                                   {k_value, address_of(in.value)},
                                                   {k_y, address_of(g.y)},
                                                   {k_dy, address_of(g.dy)},
                                                   {k_logsumexp, const_cast<float*>(g.logsumexp)},
                                                   {k_dquery, address_of(g.dquery)},
                                                   {k_dkey, address_of(dkey)},
                                                   {k_dvalue, address_of(dvalue)}}))
    return refusal;
  const HeadBlock block{shape.batch, seen_keys(shape), shape.kv_heads * shape.head_dim};
  if (g.accumulate) {
    add_heads(block, dkey.read_only(), g.dkey);
    add_heads(block, dvalue.read_only(), g.dvalue);
  } else if (seen_keys(shape) < shape.keys) {
    const HeadBlock unseen{shape.batch, shape.keys - seen_keys(shape), block.width};
    clear_heads(unseen, HeadRows<T>{g.dkey.data + seen_keys(shape) * g.dkey.row_stride, g.dkey.row_stride,
                                    g.dkey.sequence_stride});
    clear_heads(unseen, HeadRows<T>{g.dvalue.data + seen_keys(shape) * g.dvalue.row_stride, g.dvalue.row_stride,
                                    g.dvalue.sequence_stride});
  }
  return nullptr;
}
#endif

#define TPRIMAT_ATTENTION(T)                                                                                          \
  template CudnnRefusal cudnn_attention_forward(const AttentionShape&, const AttentionInputs<T>&, const HeadRows<T>&, \
                                                float*);                                                              \
  template CudnnRefusal cudnn_attention_backward(const AttentionShape&, const AttentionGradient<T>&, bool);
TPRIMAT_ATTENTION(bf16)
TPRIMAT_ATTENTION(f16)
#undef TPRIMAT_ATTENTION

}  // namespace tprimat::engine::gpu
