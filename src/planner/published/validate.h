#pragma once

#include <optional>
#include <string>
#include <vector>

#include "published/table.h"
#include "text/enum_names.h"
#include "text/fields.h"

namespace tprimat::planner {

// What our arithmetic says about a printed figure.
//   reproduced   follows from the row's own inputs by a named convention, within what the printed digits leave open
//   explained    follows as well, once up to three named deviations are granted
//   unexplained  does not
//   lacking      cannot be computed: the row prints too little
enum class Standing { reproduced, explained, unexplained, lacking };

struct FigureCheck {
  std::string figure;  // column: tflops_per_gpu, mfu_pct, hfu_pct
  std::string printed;
  Standing verdict = Standing::lacking;
  std::optional<double> computed;         // in the figure's unit
  std::optional<double> low, high;        // between which the row's digits leave it
  std::optional<std::string> convention;  // by which FLOPs were counted
  std::optional<std::string> from;        // input that gave the rate
  std::optional<std::string> peak;        // of MFU and HFU
  std::vector<std::string> deviations;
  std::optional<std::string> lacks;

  static constexpr auto fields() {
    using F = FigureCheck;
    return field_list(field("figure", &F::figure, "column of the table"),
                      field("printed", &F::printed, "as the table prints it"),
                      field("verdict", &F::verdict, "reproduced, explained, unexplained or lacking"),
                      field("computed", &F::computed, "our figure, in the column's unit"),
                      field("low", &F::low, "lower bound from the row's rounding"),
                      field("high", &F::high, "upper bound from the row's rounding"),
                      field("convention", &F::convention, "FLOP counting convention"),
                      field("from", &F::from, "input that gives the rate"),
                      field("peak", &F::peak, "peak behind the utilization, TFLOP/s"),
                      field("deviations", &F::deviations, "named deviations accepted"),
                      field("lacks", &F::lacks, "inputs missing from the row"));
  }
};

struct RowCheck {
  int64_t line = 0;
  std::string model;
  std::vector<FigureCheck> figures;

  static constexpr auto fields() {
    using R = RowCheck;
    return field_list(field("line", &R::line, "of the file, from 1"), field("model", &R::model, "as printed"),
                      field("figures", &R::figures, "the printed figures"));
  }
};

struct TableCheck {
  std::string table;
  int64_t reproduced = 0, explained = 0, unexplained = 0, lacking = 0;  // figures
  int64_t rows_without_figures = 0;
  std::vector<RowCheck> rows;  // those that print a figure

  static constexpr auto fields() {
    using T = TableCheck;
    return field_list(field("table", &T::table, "file name without extension"),
                      field("reproduced", &T::reproduced, "figures"), field("explained", &T::explained, "figures"),
                      field("unexplained", &T::unexplained, "figures"),
                      field("lacking", &T::lacking, "figures whose row prints too little to compute them"),
                      field("rows_without_figures", &T::rows_without_figures, "rows without TFLOP/s, MFU and HFU"),
                      field("rows", &T::rows, "rows that print a figure"));
  }
};

RowCheck validate_row(const PublishedRow& row);
TableCheck validate_table(const PublishedTable& table);

// For a terminal: every figure with its verdict and how it came about, the deviations that were granted, and counts per
// table.
std::string render_validation(const std::vector<TableCheck>& tables);

}  // namespace tprimat::planner
