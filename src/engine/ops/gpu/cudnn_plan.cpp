#if defined(TPRIMAT_HAS_CUDNN)
#include "ops/gpu/cudnn_plan.h"

#include <cmath>

namespace tprimat::engine::gpu {
namespace {

namespace fe = cudnn_frontend;
using FeTensor = std::shared_ptr<fe::graph::Tensor_attributes>;
using Strides = CudnnAttention::Strides;

// Of a tensor batch × heads × rows × head_dim.
struct TensorPlace {
  std::vector<int64_t> sizes, strides;
};
TensorPlace query_place(const CudnnAttention& a, const Strides& strides) {
  return {{a.batch, a.heads, a.queries, a.head_dim}, {strides.sequence, a.head_dim, strides.row, 1}};
}
TensorPlace key_place(const CudnnAttention& a, const Strides& strides) {
  return {{a.batch, a.kv_heads, a.keys, a.head_dim}, {strides.sequence, a.head_dim, strides.row, 1}};
}
TensorPlace logsumexp_place(const CudnnAttention& a) {
  return {{a.batch, a.heads, a.queries, 1}, {a.heads * a.queries, a.queries, 1, 1}};
}

FeTensor add_input(fe::graph::Graph& graph, CudnnTensor name, const TensorPlace& place) {
  return graph.tensor(fe::graph::Tensor_attributes()
                          .set_uid(name)
                          .set_dim(place.sizes)
                          .set_stride(place.strides)
                          .set_data_type(name == k_logsumexp ? fe::DataType_t::FLOAT : fe::DataType_t::NOT_SET));
}
void add_output(const FeTensor& tensor, CudnnTensor name, const TensorPlace& place) {
  tensor->set_output(true).set_uid(name).set_dim(place.sizes).set_stride(place.strides);
  if (name == k_logsumexp) tensor->set_data_type(fe::DataType_t::FLOAT);
}

// What both passes state: the scale, and which keys a query sees. The last query sees the last key.
template <class Attributes>
void describe(Attributes& attributes, const CudnnAttention& a) {
  attributes.set_name("attention").set_attn_scale(1.0f / std::sqrt(static_cast<float>(a.head_dim)));
  attributes.set_diagonal_alignment(a.queries == a.keys ? fe::DiagonalAlignment_t::TOP_LEFT
                                                        : fe::DiagonalAlignment_t::BOTTOM_RIGHT);
  attributes.set_diagonal_band_right_bound(0);
  if (a.window > 0 && a.window < a.keys) attributes.set_diagonal_band_left_bound(static_cast<int>(a.window));
}

void add_forward(fe::graph::Graph& graph, const CudnnAttention& a) {
  auto attributes = fe::graph::SDPA_attributes().set_generate_stats(true);
  describe(attributes, a);
  const auto [y, logsumexp] =
      graph.sdpa(add_input(graph, k_query, query_place(a, a.query)), add_input(graph, k_key, key_place(a, a.key)),
                 add_input(graph, k_value, key_place(a, a.value)), attributes);
  add_output(y, k_y, query_place(a, a.y));
  add_output(logsumexp, k_logsumexp, logsumexp_place(a));
}

void add_backward(fe::graph::Graph& graph, const CudnnAttention& a) {
  auto attributes = fe::graph::SDPA_backward_attributes();
  describe(attributes, a);
  attributes.set_deterministic_algorithm(a.pass == CudnnAttention::Pass::backward_in_order);
  const auto [dquery, dkey, dvalue] = graph.sdpa_backward(
      add_input(graph, k_query, query_place(a, a.query)), add_input(graph, k_key, key_place(a, a.key)),
      add_input(graph, k_value, key_place(a, a.value)), add_input(graph, k_y, query_place(a, a.y)),
      add_input(graph, k_dy, query_place(a, a.dy)), add_input(graph, k_logsumexp, logsumexp_place(a)), attributes);
  add_output(dquery, k_dquery, query_place(a, a.dquery));
  add_output(dkey, k_dkey, key_place(a, a.dkey));
  add_output(dvalue, k_dvalue, key_place(a, a.dvalue));
}

}  // namespace

std::shared_ptr<fe::graph::Graph> attention_graph(const CudnnAttention& a) {
  auto graph = std::make_shared<fe::graph::Graph>();
  graph->set_io_data_type(a.is_bf16 ? fe::DataType_t::BFLOAT16 : fe::DataType_t::HALF)
      .set_intermediate_data_type(fe::DataType_t::FLOAT)
      .set_compute_data_type(fe::DataType_t::FLOAT);
  graph->set_cuda_graph_retention(fe::CudaGraphRetention_t::NONE);  // recorded work ends before the plans do
  a.pass == CudnnAttention::Pass::forward ? add_forward(*graph, a) : add_backward(*graph, a);
  return graph;
}

}  // namespace tprimat::engine::gpu
#endif
