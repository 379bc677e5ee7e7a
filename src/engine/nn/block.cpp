#include "nn/block.h"

namespace tprimat::engine {

template <class T>
Block<T>::Block(const ModelSpec& model, const Plan& plan, const BlockBuffers& buffers, const std::string& name)
    : input_(buffers.input),
      first_(input_.count == 0),
      recompute_(plan.recompute == Recompute::full),
      rows_(plan.stream_tokens()),
      attention_norm_(model, plan, buffers.attention_norm, name + ".attention_norm"),
      attention_(model, plan, buffers.attention, name + ".attention"),
      mid_(buffers.mid),
      mlp_norm_(model, plan, buffers.mlp_norm, name + ".mlp_norm"),
      mlp_(model, plan, buffers.mlp, name + ".mlp") {}

template <class T>
Stream<T> Block<T>::forward(const Pass<T>& pass, const BlockShared<T>& shared, const Stream<T>& stream) const {
  const T* const normed = first_ ? attention_norm_.forward(pass, stream.sum)
                                 : attention_norm_.forward_sum(pass, stream.sum, stream.branch, pass.at(input_));
  return compute(pass, shared, normed, input(pass, stream.sum));
}

template <class T>
T* Block<T>::finish_branch(const Pass<T>& pass, const BlockShared<T>& shared, const Linear<T>& output,
                           Slot<Element> branch) const {
  T* const y = pass.at(branch);
  shared.region.leave(pass, y);
  output.add_bias_to(pass, rows_, y);
  return y;
}

template <class T>
Stream<T> Block<T>::compute(const Pass<T>& pass, const BlockShared<T>& shared, const T* normed, const T* x) const {
  T* const attended = shared.region.partial(pass, pass.at(shared.buffers.attention_branch));
  attention_.forward(pass, shared.attention, shared.region.enter(pass, normed), attended);
  const T* const branch = finish_branch(pass, shared, attention_.output(), shared.buffers.attention_branch);
  const T* const mid_normed = mlp_norm_.forward_sum(pass, x, branch, pass.at(mid_));
  T* const activated = shared.region.partial(pass, pass.at(shared.buffers.mlp_branch));
  mlp_.forward(pass, shared.region.enter(pass, mid_normed), activated);
  return {pass.at(mid_), finish_branch(pass, shared, mlp_.output(), shared.buffers.mlp_branch)};
}

template <class T>
void Block<T>::backward(const Pass<T>& pass, const BlockShared<T>& shared, const T* first_sum, T* dy) const {
  const T* const x = input(pass, first_sum);
  if (recompute_) compute(pass, shared, attention_norm_.forward(pass, x), x);
  const TensorRegion<T>& region = shared.region;
  T* const branch = pass.at(shared.buffers.mlp_branch);

  mlp_.output().add_bias_gradient(pass, rows_, dy);
  const T* inside = region.enter(pass, mlp_norm_.output_again(pass, pass.at(mid_)));
  mlp_.backward(pass, shared.buffers, inside, region.enter_gradient(pass, dy), region.partial(pass, branch));
  region.leave(pass, branch);
  mlp_norm_.backward(pass, pass.at(mid_), branch, dy);

  attention_.output().add_bias_gradient(pass, rows_, dy);
  inside = region.enter(pass, attention_norm_.output_again(pass, x));
  attention_.backward(pass, shared.attention, inside, region.enter_gradient(pass, dy), region.partial(pass, branch));
  region.leave(pass, branch);
  attention_norm_.backward(pass, x, branch, dy);
}

template class Block<float>;
template class Block<bf16>;
template class Block<f16>;
template class Block<double>;

}  // namespace tprimat::engine
