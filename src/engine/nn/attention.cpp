#include "nn/attention.h"

#include <cmath>

#include "base/check.h"

namespace tprimat::engine {
namespace {

// Query, key and value rows of the whole weight stand one after the other.
LinearShape qkv_shape(const ModelSpec& model, const LocalHeads& heads) {
  const int64_t width = model.head_dim;
  const int64_t keys = model.num_attention_heads * width, values = keys + model.num_key_value_heads * width;
  const int64_t kv_first = heads.key_value.first * width, kv_count = heads.key_value_width();
  LinearShape shape;
  shape.weight = output_shard(
      {{heads.query.first * width, heads.query_width()}, {keys + kv_first, kv_count}, {values + kv_first, kv_count}},
      values + model.num_key_value_heads * width, model.hidden_size);
  shape.init_stddev = k_init_stddev;
  shape.shared_outputs = heads.shared_key_value ? 2 * kv_count : 0;
  return shape;
}

LinearShape output_shape(const ModelSpec& model, const LocalHeads& heads) {
  const int64_t width = model.head_dim;
  return {input_shard(model.hidden_size, {heads.query.first * width, heads.query_width()},
                      model.num_attention_heads * width),
          residual_init_stddev(model), true, 0};
}

// One weight for all heads: each tensor-parallel rank has the part of its gradient that comes from its own heads.
std::optional<int64_t> add_head_norm(const Plan& plan, const std::optional<ElementRange>& planned,
                                     const std::string& name) {
  if (!planned) return std::nullopt;
  Parameter parameter{name, Shard::whole(planned->size(), 1), 1.0};
  parameter.counts_in_norm = plan.sharing.tensor_rank == 0;
  parameter.partial_gradient = plan.sharing.tensor_size > 1;
  return plan.parameters.add(parameter, *planned);
}

}  // namespace

double residual_init_stddev(const ModelSpec& model) {
  return k_init_stddev / std::sqrt(2.0 * static_cast<double>(model.num_layers));
}

template <class T>
AttentionShared<T>::AttentionShared(const ModelSpec& model, const Plan& plan, const SharedBuffers& buffers)
    : frequencies{model.head_dim, model.rope_theta, model.rope_scaling},
      positions(local_positions(plan.batch.sequence_length, plan.sharing.context_rank, plan.sharing.context_size)),
      cosine(buffers.cosine),
      sine(buffers.sine),
      dqkv(buffers.dqkv),
      dcontext(buffers.dcontext),
      exchange(plan, buffers.context, 2 * LocalHeads(model, plan.sharing).key_value_width()) {}

template <class T>
void AttentionShared<T>::prepare(const Pass<T>& pass) const {
  if (cosine.count == 0) return;
  std::vector<Accum<T>> cosines(static_cast<size_t>(cosine.count)), sines(cosines.size());
  fill_rope_table<Accum<T>>(frequencies, positions.data(), static_cast<int64_t>(positions.size()),
                            {cosines.data(), sines.data()});
  const RopeTable<Accum<T>> table = rope(pass);
  pass.device.upload(table.cosine, cosines.data(), cosines.size() * sizeof(Accum<T>));
  pass.device.upload(table.sine, sines.data(), sines.size() * sizeof(Accum<T>));
}

template <class T>
Attention<T>::Attention(const ModelSpec& model, const Plan& plan, const AttentionBuffers& buffers,
                        const std::string& name)
    : heads_(model, plan.sharing),
      batch_(plan.batch),
      window_(model.sliding_window.value_or(0)),
      norm_eps_(model.norm_eps),
      rotary_(model.position == PositionKind::rope),
      pieces_(context_pieces(plan.batch.sequence_length, plan.sharing.context_rank, plan.sharing.context_size)),
      context_size_(plan.sharing.context_size),
      qkv_(plan, buffers.qkv, name + ".qkv", qkv_shape(model, heads_)),
      query_norm_(add_head_norm(plan, buffers.query_norm, name + ".query_norm.weight")),
      key_norm_(add_head_norm(plan, buffers.key_norm, name + ".key_norm.weight")),
      out_(plan, buffers.out, name + ".out", output_shape(model, heads_)),
      buffers_(buffers) {
  CHECK(buffers.qkv_values.count == plan.tokens() * qkv_.outputs());
  CHECK(buffers.context.count == plan.tokens() * out_.inputs());
  CHECK(buffers.logsumexp.count == plan.tokens() * heads_.query.count);
}

template <class T>
RopeShape Attention<T>::rope_shape() const {
  return {batch_.sequences, batch_.local_length, heads_.query.count + heads_.key_value.count, heads_.head_dim,
          heads_.row_width()};
}

template <class T>
HeadNormShape Attention<T>::norm_shape(int64_t heads) const {
  return {batch_.tokens(), heads, heads_.head_dim, heads_.row_width(), heads_.row_width(), norm_eps_};
}

template <class T>
AttentionShape Attention<T>::shape_of(const ContextPiece& piece) const {
  const int64_t keys = context_size_ > 1 ? batch_.sequence_length : batch_.local_length;
  return {batch_.sequences,       piece.length,    keys,   piece.first_position, heads_.query.count,
          heads_.key_value.count, heads_.head_dim, window_};
}

// Each product of a query and a key, or of a weight and a value, counts where the query sees the key.
template <class T>
OpWork Attention<T>::work(double products, double passes) const {
  const auto pairs_before = [&](int64_t position) {
    const int64_t full = window_ > 0 ? std::min(window_, position) : position;
    return full * (full + 1) / 2 + (position - full) * full;
  };
  int64_t pairs = 0;
  for (const ContextPiece& piece : pieces_)
    pairs += pairs_before(piece.first_position + piece.length) - pairs_before(piece.first_position);
  const int64_t keys = shape_of(pieces_.front()).keys, heads = heads_.query.count;
  OpWork work = memory_work<T>(batch_.tokens(), heads_.row_width() + heads_.query_width(), passes);
  work.flops = 2 * products * static_cast<double>(batch_.sequences * heads * heads_.head_dim * pairs);
  work.inputs = {OpDims{batch_.sequences, heads, batch_.local_length, heads_.head_dim},
                 OpDims{batch_.sequences, heads_.key_value.count, keys, heads_.head_dim}};
  return work;
}

template <class T>
HeadRows<T> Attention<T>::context_rows(T* data, const ContextPiece& piece) const {
  const int64_t width = heads_.query_width();
  return {data + piece.first_local * width, width, batch_.local_length * width};
}

template <class T>
typename Attention<T>::Rows Attention<T>::rows_of(const MatrixView<T>& local, T* everywhere,
                                                  const ContextPiece& piece) const {
  const int64_t row = heads_.row_width(), keys = heads_.key_value_width();
  const HeadRows<T> query{local.data + piece.first_local * row, row, batch_.local_length * row, local.in_blocks};
  if (everywhere != nullptr) {
    const HeadRows<T> key{everywhere, 2 * keys, batch_.sequence_length * 2 * keys};
    return {query, key, {key.data + keys, key.row_stride, key.sequence_stride}};
  }
  HeadRows<T> key = query, value = query;
  key.data = query.head(heads_.query.count, heads_.head_dim);
  value.data = key.head(heads_.key_value.count, heads_.head_dim);
  return {query, key, value};
}

template <class T>
void Attention<T>::norm_heads(const Pass<T>& pass) const {
  const OpTimer timer(pass.clock, "attention.head norm forward",
                      memory_work<T>(batch_.tokens(), heads_.row_width(), 2));
  const T* const from = pass.at(buffers_.qkv_values);
  T* const to = pass.at(buffers_.normed);
  const int64_t keys = heads_.query_width(), values = keys + heads_.key_value_width(), row = heads_.row_width();
  pass.ops.head_norm_forward(norm_shape(heads_.query.count), from, pass.weight(*query_norm_), to,
                             pass.at(buffers_.query_rstd));
  pass.ops.head_norm_forward(norm_shape(heads_.key_value.count), from + keys, pass.weight(*key_norm_), to + keys,
                             pass.at(buffers_.key_rstd));
  pass.copy_rows(batch_.tokens(), heads_.key_value_width(), {from + values, row}, {to + values, row});
}

template <class T>
void Attention<T>::norm_heads_backward(const Pass<T>& pass, T* dqkv) const {
  const OpTimer timer(pass.clock, "attention.head norm backward",
                      memory_work<T>(batch_.tokens(), heads_.row_width(), 3));
  const T* const x = pass.at(buffers_.qkv_values);
  const int64_t keys = heads_.query_width();
  pass.ops.head_norm_backward(
      norm_shape(heads_.query.count),
      {x, pass.weight(*query_norm_), pass.at(buffers_.query_rstd), dqkv, dqkv, pass.gradient(*query_norm_)});
  pass.ops.head_norm_backward(norm_shape(heads_.key_value.count),
                              {x + keys, pass.weight(*key_norm_), pass.at(buffers_.key_rstd), dqkv + keys, dqkv + keys,
                               pass.gradient(*key_norm_)});
}

template <class T>
void Attention<T>::attend(const Pass<T>& pass, const AttentionShared<T>& shared) const {
  const MatrixView<T> local = heads_of(pass);
  T* const everywhere =
      context_size_ > 1 ? shared.exchange.gather(pass, local.data + heads_.query_width(), local.cols) : nullptr;
  const OpTimer timer(pass.clock, "attention forward", work(2, 1));
  for (const ContextPiece& piece : pieces_) {
    const Rows rows = rows_of(local, everywhere, piece);
    pass.ops.attention_forward(shape_of(piece), {rows.query.read_only(), rows.key.read_only(), rows.value.read_only()},
                               context_rows(pass.at(buffers_.context), piece),
                               pass.at(buffers_.logsumexp) + piece.first_local * batch_.sequences * heads_.query.count);
  }
}

// Whether gradients of a sequence are made at once, by an operation that can rotate them back and place them.
template <class T>
bool Attention<T>::finishes_gradients(const Pass<T>& pass) const {
  return context_size_ == 1 && pass.ops.finishes_gradients;
}

// In blocks (MatrixView) where these can be written, and products alone read them.
template <class T>
MatrixView<T> Attention<T>::gradient_of_heads(const Pass<T>& pass, const AttentionShared<T>& shared) const {
  MatrixView<T> gradient = matrix(pass.at(shared.dqkv), batch_.tokens(), heads_.row_width());
  const bool are_whole = batch_.local_length % k_block_side == 0 && heads_.head_dim % k_block_side == 0;
  gradient.in_blocks = finishes_gradients(pass) && pass.ops.has_blocks && are_whole && !query_norm_ &&
                       qkv_.bias(pass) == nullptr && !qkv_.rounds_to_fp8();
  return gradient;
}

template <class T>
void Attention<T>::attend_backward(const Pass<T>& pass, const AttentionShared<T>& shared,
                                   const MatrixView<T>& dqkv) const {
  const MatrixView<T> local = heads_of(pass);
  const bool split = context_size_ > 1;
  T* const everywhere = split ? shared.exchange.gather(pass, local.data + heads_.query_width(), local.cols) : nullptr;
  T* const deverywhere = split ? shared.exchange.gradient(pass) : nullptr;
  {
    const OpTimer timer(pass.clock, "attention backward", work(5, 2));
    RopeTable<const Accum<T>> back{};
    if (rotary_ && finishes_gradients(pass)) back = {pass.at(shared.cosine), pass.at(shared.sine)};
    for (const ContextPiece& piece : pieces_) {
      const Rows from = rows_of(local, everywhere, piece), to = rows_of(dqkv, deverywhere, piece);
      pass.ops.attention_backward(
          shape_of(piece), {{from.query.read_only(), from.key.read_only(), from.value.read_only()},
                            context_rows(pass.at(buffers_.context), piece).read_only(),
                            pass.at(buffers_.logsumexp) + piece.first_local * batch_.sequences * heads_.query.count,
                            context_rows(pass.at(shared.dcontext), piece).read_only(),
                            to.query,
                            to.key,
                            to.value,
                            split,
                            back});
    }
  }
  if (split) shared.exchange.scatter_gradient(pass, dqkv.data + heads_.query_width(), dqkv.cols);
  if (rotary_ && !finishes_gradients(pass)) rotate(pass, shared, -1, dqkv.data);
}

template <class T>
void Attention<T>::rotate(const Pass<T>& pass, const AttentionShared<T>& shared, int direction, T* heads) const {
  const OpTimer timer(pass.clock, "rotary positions", rotary_work());
  pass.ops.rope_in_place(rope_shape(), shared.rope(pass), direction, heads);
}

template <class T>
void Attention<T>::forward(const Pass<T>& pass, const AttentionShared<T>& shared, const T* x, T* y) const {
  T* const qkv = pass.at(buffers_.qkv_values);
  qkv_.forward_with_bias(pass, matrix(x, batch_.tokens(), qkv_.inputs()), qkv);
  if (query_norm_) norm_heads(pass);
  if (rotary_) rotate(pass, shared, +1, heads_of(pass).data);
  attend(pass, shared);
  out_.forward(pass, matrix<const T>(pass.at(buffers_.context), batch_.tokens(), out_.inputs()), y);
}

template <class T>
void Attention<T>::backward(const Pass<T>& pass, const AttentionShared<T>& shared, const T* x, const T* dy,
                            T* dx) const {
  const int64_t tokens = batch_.tokens();
  const MatrixView<T> dqkv = gradient_of_heads(pass, shared);
  out_.backward(pass, matrix<const T>(pass.at(buffers_.context), tokens, out_.inputs()),
                matrix(dy, tokens, out_.outputs()), pass.at(shared.dcontext));
  attend_backward(pass, shared, dqkv);
  if (query_norm_) norm_heads_backward(pass, dqkv.data);
  qkv_.backward_with_bias(pass, matrix(x, tokens, qkv_.inputs()), read_only(dqkv), dx);
}

template struct AttentionShared<float>;
template struct AttentionShared<bf16>;
template struct AttentionShared<f16>;
template struct AttentionShared<double>;
template class Attention<float>;
template class Attention<bf16>;
template class Attention<f16>;
template class Attention<double>;

}  // namespace tprimat::engine
