#pragma once

#include <string_view>
#include <vector>

#include "trace/trace.h"

namespace tprimat::logs {

// A report of Nsight Systems as `nsys export --type sqlite` writes it: kernels, copies and fills, whole CUDA graphs,
// calls of CUDA, NVTX ranges, names of the GPUs. Tables and columns differ by version; missing ones are empty. The work
// of several processes is kept apart by their GPUs; steps are then those that the first process marked.
// Throws Error for a damaged database and for one that is no report.
Trace read_nsys_export(std::string_view bytes, std::string_view where, TraceContent content);

// One trace for each process that used a GPU, by the number of the process: ranks of one machine, with one clock.
std::vector<Trace> read_nsys_processes(std::string_view bytes, std::string_view where, TraceContent content);

}  // namespace tprimat::logs
