#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "base/check.h"
#include "ops/attention.h"

namespace tprimat::engine::reference {

template <class T>
T* head_row(const HeadRows<T>& rows, int64_t batch, int64_t t, int64_t head_offset) {
  return rows.data + batch * rows.sequence_stride + t * rows.row_stride + head_offset;
}

// One query of one head and the keys that it sees: [first, last).
template <class T>
struct QueryView {
  QueryView(const AttentionShape& s, const AttentionInputs<T>& in, int64_t b, int64_t h, int64_t t)
      : shape(s), inputs(in), batch(b), query_offset(h * s.head_dim) {
    kv_offset = h / (s.heads / s.kv_heads) * s.head_dim;
    query = head_row(in.query, b, t, query_offset);
    first = s.first_key(s.first_query + t);
    last = std::max(first, std::min(s.keys, s.first_query + t + 1));
    statistic = (b * s.heads + h) * s.queries + t;
  }

  const AttentionShape& shape;
  const AttentionInputs<T>& inputs;
  int64_t batch, query_offset, kv_offset = 0, first = 0, last = 0, statistic = 0;
  const T* query = nullptr;

  const T* key(int64_t s) const { return head_row(inputs.key, batch, s, kv_offset); }
  const T* value(int64_t s) const { return head_row(inputs.value, batch, s, kv_offset); }
  Accum<T> score(int64_t s) const {
    Accum<T> dot = 0;
    for (int64_t c = 0; c < shape.head_dim; ++c) dot += widen(query[c]) * widen(key(s)[c]);
    return dot / std::sqrt(static_cast<Accum<T>>(shape.head_dim));
  }
};

template <class Visit>
void for_each_query(const AttentionShape& shape, const Visit& visit) {
  for (int64_t b = 0; b < shape.batch; ++b)
    for (int64_t h = 0; h < shape.heads; ++h)
      for (int64_t t = 0; t < shape.queries; ++t) visit(b, h, t);
}

template <class T>
void attend(const QueryView<T>& view, T* y, Accum<T>* logsumexp) {
  using A = Accum<T>;
  std::vector<A> weights;
  A largest = -std::numeric_limits<A>::infinity(), sum = 0;
  for (int64_t s = view.first; s < view.last; ++s) {
    weights.push_back(view.score(s));
    largest = std::max(largest, weights.back());
  }
  for (A& weight : weights) sum += weight = std::exp(weight - largest);
  logsumexp[view.statistic] = largest + std::log(sum);
  for (int64_t c = 0; c < view.shape.head_dim; ++c) {
    A mean = 0;
    for (int64_t s = view.first; s < view.last; ++s)
      mean += weights[static_cast<size_t>(s - view.first)] / sum * widen(view.value(s)[c]);
    y[c] = narrow<T>(mean);
  }
}

template <class T>
void attention_forward(const AttentionShape& shape, const AttentionInputs<T>& inputs, const HeadRows<T>& y,
                       Accum<T>* logsumexp) {
  for_each_query(shape, [&](int64_t b, int64_t h, int64_t t) {
    attend(QueryView<T>(shape, inputs, b, h, t), head_row(y, b, t, h * shape.head_dim), logsumexp);
  });
}

// The sums that make one head's dkey or dvalue: keys×head_dim.
template <class T>
struct KeySums {
  std::vector<Accum<T>> dkey, dvalue;
};

// With p = softmax: dv_s += p·dy;  ds = p·(dy·v_s − dy·y)/√d;  dq += ds·k_s;  dk_s += ds·q.
template <class T>
void attend_backward(const QueryView<T>& view, const AttentionGradient<T>& g, int64_t t, KeySums<T>& sums) {
  using A = Accum<T>;
  const int64_t width = view.shape.head_dim;
  const T* y = head_row(g.y, view.batch, t, view.query_offset);
  const T* dy = head_row(g.dy, view.batch, t, view.query_offset);
  std::vector<A> dquery(static_cast<size_t>(width), A(0));
  A mean = 0;
  for (int64_t c = 0; c < width; ++c) mean += widen(dy[c]) * widen(y[c]);
  for (int64_t s = view.first; s < view.last; ++s) {
    const A p = std::exp(view.score(s) - g.logsumexp[view.statistic]);
    A dp = 0;
    for (int64_t c = 0; c < width; ++c) dp += widen(dy[c]) * widen(view.value(s)[c]);
    const A ds = p * (dp - mean) / std::sqrt(static_cast<A>(width));
    for (int64_t c = 0; c < width; ++c) {
      dquery[static_cast<size_t>(c)] += ds * widen(view.key(s)[c]);
      sums.dkey[static_cast<size_t>(s * width + c)] += ds * widen(view.query[c]);
      sums.dvalue[static_cast<size_t>(s * width + c)] += p * widen(dy[c]);
    }
  }
  T* to = head_row(g.dquery, view.batch, t, view.query_offset);
  for (int64_t c = 0; c < width; ++c) to[c] = narrow<T>(dquery[static_cast<size_t>(c)]);
}

struct HeadPlace {
  int64_t batch = 0, offset = 0;  // of the head's first column in its rows
};

template <class T>
void store_sums(const AttentionShape& shape, const std::vector<Accum<T>>& sums, bool accumulate, const HeadRows<T>& to,
                const HeadPlace& place) {
  for (int64_t s = 0; s < shape.keys; ++s) {
    T* row = head_row(to, place.batch, s, place.offset);
    for (int64_t c = 0; c < shape.head_dim; ++c) {
      const Accum<T> before = accumulate ? widen(row[c]) : Accum<T>(0);
      row[c] = narrow<T>(before + sums[static_cast<size_t>(s * shape.head_dim + c)]);
    }
  }
}

template <class T>
void attention_backward(const AttentionShape& shape, const AttentionGradient<T>& g) {
  CHECK(!g.is_finished());
  const int64_t group = shape.heads / shape.kv_heads;
  for (int64_t b = 0; b < shape.batch; ++b) {
    for (int64_t kv = 0; kv < shape.kv_heads; ++kv) {
      KeySums<T> sums;
      sums.dkey.assign(static_cast<size_t>(shape.keys * shape.head_dim), Accum<T>(0));
      sums.dvalue = sums.dkey;
      for (int64_t h = kv * group; h < (kv + 1) * group; ++h)
        for (int64_t t = 0; t < shape.queries; ++t) attend_backward(QueryView<T>(shape, g.inputs, b, h, t), g, t, sums);
      store_sums(shape, sums.dkey, g.accumulate, g.dkey, {b, kv * shape.head_dim});
      store_sums(shape, sums.dvalue, g.accumulate, g.dvalue, {b, kv * shape.head_dim});
    }
  }
}

}  // namespace tprimat::engine::reference
