#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "ops/attention.h"

namespace tprimat::reference {

// One query row of one head: where its query, its keys and its values are.
template <class T>
struct HeadView {
  const AttentionShape& shape;
  const T* qkv;
  int64_t batch, head;

  int64_t kv_head() const { return head / (shape.heads / shape.kv_heads); }
  int64_t row(int64_t t) const { return (batch * shape.sequence + t) * shape.row_width(); }
  int64_t query(int64_t t) const { return row(t) + head * shape.head_dim; }
  int64_t key(int64_t t) const { return row(t) + (shape.heads + kv_head()) * shape.head_dim; }
  int64_t value(int64_t t) const { return key(t) + shape.kv_heads * shape.head_dim; }
  int64_t output(int64_t t) const { return ((batch * shape.sequence + t) * shape.heads + head) * shape.head_dim; }
  int64_t statistic(int64_t t) const { return (batch * shape.heads + head) * shape.sequence + t; }

  Accum<T> score(int64_t t, int64_t s) const {
    Accum<T> dot = 0;
    for (int64_t c = 0; c < shape.head_dim; ++c) dot += widen(qkv[query(t) + c]) * widen(qkv[key(s) + c]);
    return dot / std::sqrt(static_cast<Accum<T>>(shape.head_dim));
  }
};

template <class T>
void attend(const HeadView<T>& view, int64_t t, T* y, Accum<T>* logsumexp) {
  using A = Accum<T>;
  const int64_t first = view.shape.first_key(t);
  std::vector<A> weights;
  A largest = -std::numeric_limits<A>::infinity(), sum = 0;
  for (int64_t s = first; s <= t; ++s) weights.push_back(view.score(t, s)), largest = std::max(largest, weights.back());
  for (A& weight : weights) sum += weight = std::exp(weight - largest);
  logsumexp[view.statistic(t)] = largest + std::log(sum);
  for (int64_t c = 0; c < view.shape.head_dim; ++c) {
    A mean = 0;
    for (int64_t s = first; s <= t; ++s)
      mean += weights[static_cast<size_t>(s - first)] / sum * widen(view.qkv[view.value(s) + c]);
    y[view.output(t) + c] = narrow<T>(mean);
  }
}

template <class T>
void attention_forward(const AttentionShape& shape, const T* qkv, T* y, Accum<T>* logsumexp) {
  for (int64_t b = 0; b < shape.batch; ++b)
    for (int64_t h = 0; h < shape.heads; ++h)
      for (int64_t t = 0; t < shape.sequence; ++t) attend(HeadView<T>{shape, qkv, b, h}, t, y, logsumexp);
}

// With p = softmax: dv_s += p·dy;  ds = p·(dy·v_s − dy·y)/√d;  dq += ds·k_s;  dk_s += ds·q.
template <class T>
void attend_backward(const HeadView<T>& view, int64_t t, const AttentionGradient<T>& g, std::vector<Accum<T>>& dqkv) {
  using A = Accum<T>;
  const int64_t width = view.shape.head_dim, out = view.output(t);
  const A scale = A(1) / std::sqrt(static_cast<A>(width));
  A mean = 0;
  for (int64_t c = 0; c < width; ++c) mean += widen(g.dy[out + c]) * widen(g.y[out + c]);
  for (int64_t s = view.shape.first_key(t); s <= t; ++s) {
    const A p = std::exp(view.score(t, s) - g.logsumexp[view.statistic(t)]);
    A dp = 0;
    for (int64_t c = 0; c < width; ++c) dp += widen(g.dy[out + c]) * widen(g.qkv[view.value(s) + c]);
    const A ds = p * (dp - mean) * scale;
    for (int64_t c = 0; c < width; ++c) {
      dqkv[static_cast<size_t>(view.value(s) + c)] += p * widen(g.dy[out + c]);
      dqkv[static_cast<size_t>(view.query(t) + c)] += ds * widen(g.qkv[view.key(s) + c]);
      dqkv[static_cast<size_t>(view.key(s) + c)] += ds * widen(g.qkv[view.query(t) + c]);
    }
  }
}

template <class T>
void attention_backward(const AttentionShape& shape, const AttentionGradient<T>& g) {
  std::vector<Accum<T>> dqkv(static_cast<size_t>(shape.batch * shape.sequence * shape.row_width()), Accum<T>(0));
  for (int64_t b = 0; b < shape.batch; ++b)
    for (int64_t h = 0; h < shape.heads; ++h)
      for (int64_t t = 0; t < shape.sequence; ++t) attend_backward(HeadView<T>{shape, g.qkv, b, h}, t, g, dqkv);
  for (size_t i = 0; i < dqkv.size(); ++i) g.dqkv[i] = narrow<T>(dqkv[i]);
}

}  // namespace tprimat::reference
