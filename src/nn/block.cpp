#include "nn/block.h"

#include "ops/elementwise.h"

namespace tprimat {

template <class T>
BlockShared<T>::BlockShared(const ModelSpec& model, const Plan& plan)
    : attention(model, plan),
      mlp(model, plan),
      branch(plan.arena.reserve<T>("workspace", plan.batch.tokens() * model.hidden_size)) {}

template <class T>
Block<T>::Block(const ModelSpec& model, const Plan& plan, const std::string& name)
    : elements_(plan.batch.tokens() * model.hidden_size),
      attention_norm_(plan, name + ".attention_norm", model.hidden_size, model.norm_eps),
      attention_(model, plan, name + ".attention"),
      mlp_norm_(plan, name + ".mlp_norm", model.hidden_size, model.norm_eps),
      mlp_(model, plan, name + ".mlp"),
      mid_(plan.arena.reserve<T>("activations", elements_)),
      output_(plan.arena.reserve<T>("activations", elements_)) {}

template <class T>
const T* Block<T>::forward(const Pass<T>& pass, const BlockShared<T>& shared, const T* x) const {
  T* const branch = pass.arena.at(shared.branch);
  T* const mid = pass.arena.at(mid_);
  T* const output = pass.arena.at(output_);
  attention_.forward(pass, shared.attention, attention_norm_.forward(pass, x), branch);
  add<T>(elements_, x, branch, mid);
  mlp_.forward(pass, mlp_norm_.forward(pass, mid), branch);
  add<T>(elements_, mid, branch, output);
  return output;
}

template <class T>
void Block<T>::backward(const Pass<T>& pass, const BlockShared<T>& shared, const T* x, T* dy) const {
  T* const branch = pass.arena.at(shared.branch);
  mlp_.backward(pass, shared.mlp, mlp_norm_.output(pass), dy, branch);
  mlp_norm_.backward(pass, pass.arena.at(mid_), branch, dy);
  attention_.backward(pass, shared.attention, attention_norm_.output(pass), dy, branch);
  attention_norm_.backward(pass, x, branch, dy);
}

template struct BlockShared<float>;
template struct BlockShared<bf16>;
template struct BlockShared<double>;
template class Block<float>;
template class Block<bf16>;
template class Block<double>;

}  // namespace tprimat
