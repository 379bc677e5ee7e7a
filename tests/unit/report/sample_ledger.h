#pragma once

#include "why/ledger.h"

namespace tprimat::results {

// The figures of two traces of one model on two GPUs, made up: eight causes, of which three are worth a line.
inline Ledger sample_ledger() {
  Ledger ledger;
  ledger.a = {.label = "h100.json.gz",
              .files = {"h100.json.gz"},
              .device = "NVIDIA H100 80GB HBM3",
              .ranks = 1,
              .steps = 4,
              .step_seconds = 0.047151,
              .low = 0.0468,
              .high = 0.0475,
              .busy_seconds = 0.0401,
              .idle_seconds = 0.0070};
  ledger.b = {.label = "mi300x.json.gz",
              .files = {"mi300x.json.gz"},
              .device = "AMD Instinct MI300X",
              .ranks = 1,
              .steps = 4,
              .step_seconds = 0.052739,
              .low = 0.0524,
              .high = 0.0531,
              .busy_seconds = 0.0441,
              .idle_seconds = 0.0086};
  ledger.gap_seconds = 0.005588, ledger.low = 0.0050, ledger.high = 0.0062;
  const auto add = [&](Cause cause, double seconds, double a, double b) -> LedgerTerm& {
    ledger.terms.push_back({.cause = cause, .seconds = seconds, .a_seconds = a, .b_seconds = b});
    return ledger.terms.back();
  };
  add(Cause::work, 0, 0, 0);
  LedgerTerm& products = add(Cause::products, 0.004094, 0.0121, 0.016194);
  products.low = 0.0039, products.high = 0.0043;
  products.sentence = "Matrix products take 4.094 ms more on B: aten::mm [2048,1024] [1024,2816] alone 3.1 ms.";
  products.remedy = "measure the same shapes alone with tprimat probe, and check the layout of the weights";
  products.details = {{"aten::mm [2048,1024] [1024,2816]", 0.0031, 0.0060, 0.0091, 48, 48},
                      {"aten::addmm [2048,1024] [1024,1024] <script>", 0.000994, 0.0061, 0.007094, 96, 96}};
  LedgerTerm& attention = add(Cause::attention, 0.00184, 0.0021, 0.00394);
  attention.low = 0.0017, attention.high = 0.0019;
  attention.sentence = "Attention takes 1.840 ms more on B.";
  LedgerTerm& memory = add(Cause::memory_bound, -0.001145, 0.0244, 0.023255);
  memory.low = -0.0012, memory.high = -0.0011;
  memory.sentence = "Memory-bound operations take 1.145 ms less on B.";
  add(Cause::launch, 0.000601, 0.0070, 0.0086);
  add(Cause::clocks, 0.00001, 0, 0);
  add(Cause::outliers, 0, 0, 0);
  add(Cause::unexplained, 0.000188, 0, 0);
  ledger.classes = {{logs::KernelClass::matmul, 0.0121, 0.016194, 144, 144},
                    {logs::KernelClass::attention, 0.0021, 0.00394, 24, 24}};
  ledger.notes = {"the device works on for 0.2 ms after the last mark of A"};
  return ledger;
}

}  // namespace tprimat::results
