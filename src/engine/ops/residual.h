#pragma once

namespace tprimat::engine {

// A branch joins the residual stream: sum = a + b, rounded to T. All rows×cols; sum may be a or b.
template <class T>
struct ResidualSum {
  const T* a;
  const T* b;
  T* sum;
};

}  // namespace tprimat::engine
