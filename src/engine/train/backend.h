#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/rank_groups.h"
#include "device/accelerator.h"
#include "ops/kernel_report.h"
#include "ops/op_table.h"
#include "ops/product_settings.h"
#include "spec/names.h"

namespace tprimat::engine {

struct GpuModule;

// What a training runs on: a device and its operations in every number format that it has.
struct Backend {
  std::shared_ptr<Device> device;
  Accelerator* accelerator = nullptr;  // the same device, where it is a GPU
  const OpTable<float>* f32_ops = nullptr;
  const OpTable<bf16>* bf16_ops = nullptr;
  const OpTable<f16>* f16_ops = nullptr;
  ConnectDevices connect =
      nullptr;  // how groups of ranks exchange what lies on such devices; nullptr: as the host does
  ProductSettings* products = nullptr;  // of a GPU
  KernelReport* report = nullptr;       // of a GPU
};

Backend cpu_backend();
// GPU number `index` of those that this process sees.
Backend gpu_backend(const GpuModule& module, int index);
// The device of this process: the processor, or a GPU that no other rank of its machine takes: the only one that this
// process sees, else the one whose number is that of the rank on its machine. Collective over `world` for GPUs. Throws
// Error (missing_component) where the program has no module for such GPUs, or ranks would share one.
Backend backend_of(Platform platform, Communicator& world, const LauncherPlace& place);
Backend backend_of(const GpuModule& module, Communicator& world, const LauncherPlace& place);

// Where the GPU of a rank is.
struct GpuSeat {
  std::string machine, gpu;
};
// Refuses seats, in the order of the ranks, of which one is taken twice.
void refuse_shared_seats(const std::vector<GpuSeat>& seats);

}  // namespace tprimat::engine
