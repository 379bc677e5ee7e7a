#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "planner/published_entry.h"
#include "text/enum_names.h"

namespace tprimat::planner {

enum class PublishedKind { dense, sparse, hybrid };
constexpr auto enum_table(PublishedKind) {
  return std::to_array<std::pair<PublishedKind, std::string_view>>(
      {{PublishedKind::dense, "dense"}, {PublishedKind::sparse, "sparse"}, {PublishedKind::hybrid, "hybrid"}});
}

// Figures from the largest, names from A; `table`: as the tables stand. By a figure of speed, rows of fewer layers than
// their model come after all others, by anything else after their equals.
enum class PublishedOrder { table, tokens, mfu, tflops, gpus, model, id };
constexpr auto enum_table(PublishedOrder) {
  return std::to_array<std::pair<PublishedOrder, std::string_view>>({{PublishedOrder::table, "table"},
                                                                     {PublishedOrder::tokens, "tokens"},
                                                                     {PublishedOrder::mfu, "mfu"},
                                                                     {PublishedOrder::tflops, "tflops"},
                                                                     {PublishedOrder::gpus, "gpus"},
                                                                     {PublishedOrder::model, "model"},
                                                                     {PublishedOrder::id, "id"}});
}

// Empty: all of them. Case and punctuation do not matter.
struct PublishedFilter {
  std::string model;      // a name of the model catalogue, or a part of the printed name
  std::string gpu;        // "H100", "MI300X", "A100-SXM-40GB"
  std::string precision;  // "fp8" holds MXFP8 and float8 too
  std::string framework;  // a name that `tprimat plan --framework` knows, or a part of the printed name
  std::string kind;       // of PublishedKind
  PublishedOrder order = PublishedOrder::table;
};

// Throws Error, with the nearest value, for a filter that no row passes by itself. Filters that no row passes together
// give an empty list.
std::vector<PublishedEntry> list_published(const PublishedFilter& filter);

}  // namespace tprimat::planner
