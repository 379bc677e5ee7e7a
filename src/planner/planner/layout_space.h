#pragma once

#include <functional>
#include <map>
#include <vector>

#include "planner/search.h"
#include "planner/stage_cuts.h"

namespace tprimat::planner {

// How a pipeline may cut the layers.
struct Cut {
  int64_t pipeline = 1;
  int64_t units = 0;  // that PP x VP divides: layers, and embedding and loss where they count as such
  bool ends_as_layers = false;
  std::map<int64_t, std::vector<int64_t>> listed = {};  // by VP, layers of each chunk; empty: the program's rule cuts
};

// Ranks that share and split a layer's routed experts.
struct ExpertSizes {
  int64_t ranks = 1, tensor = 1;
};

// The legal layouts of a request; see search_layouts().
class LayoutSpace {
 public:
  // `weights`: by which stages are balanced. The request must outlive the space.
  LayoutSpace(const PlanRequest& request, const PartWeights& weights);

  // Layers of each chunk, where they are listed; else nullptr. They live as long as the space.
  using Visit = std::function<void(const Layout&, const std::vector<int64_t>*)>;
  void visit(const Visit& visit) const;

 private:
  void visit_grid(int64_t tensor, int64_t context, const Cut& cut, const Visit& visit) const;
  void visit_chunks(Layout layout, const Cut& cut, const Visit& visit) const;
  void visit_experts(Layout layout, const std::vector<int64_t>* places, const Visit& visit) const;
  void visit_memory_savers(Layout layout, const std::vector<int64_t>* places, const Visit& visit) const;
  bool suits_torchtitan(const Layout& layout) const;
  bool takes_chunks(const Layout& layout, int64_t chunks) const;

  const PlanRequest& request_;
  std::vector<int64_t> tensors_, contexts_;
  std::vector<Cut> cuts_;
};

}  // namespace tprimat::planner
