#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "device/accelerator.h"
#include "device/gpu/libraries.h"
#include "ops/kernel_report.h"
#include "ops/op_table.h"
#include "ops/product_settings.h"

namespace tprimat::engine {

class Communicator;

// What the program knows of the modules libtprimat_nvd.so and libtprimat_amd.so: one C function that gives this table.
// Errors are thrown through it.
struct GpuModule {
  size_t bytes = sizeof(GpuModule);          // of this table, which a program of other sources takes for another one
  std::string_view version, revision;        // those of the program that it belongs to
  int (*count_devices)();                    // that this process sees; 0 without a driver
  std::string (*device_address)(int index);  // the same in every process of this machine that sees the GPU
  // The GPU of this process; one at a time. Throws Error where there is none of this number.
  std::unique_ptr<Accelerator> (*make_device)(int index);
  const OpTable<float>* f32_ops;
  const OpTable<bf16>* bf16_ops;
  const OpTable<f16>* f16_ops;
  // ConnectDevices of comm/rank_groups.h.
  std::unique_ptr<Communicator> (*connect)(std::unique_ptr<Communicator> host);
  ProductSettings* products;                  // in force from one call to the next
  KernelReport* report;                       // so far
  std::vector<LibraryReport> (*libraries)();  // that a training loads; needs no GPU
};

template <class T>
const OpTable<T>& ops_of(const GpuModule& module);
template <>
inline const OpTable<float>& ops_of<float>(const GpuModule& module) {
  return *module.f32_ops;
}
template <>
inline const OpTable<bf16>& ops_of<bf16>(const GpuModule& module) {
  return *module.bf16_ops;
}
template <>
inline const OpTable<f16>& ops_of<f16>(const GpuModule& module) {
  return *module.f16_ops;
}

using GiveGpuModule = const GpuModule* (*)();
constexpr const char* k_give_gpu_module = "tprimat_gpu_module";

}  // namespace tprimat::engine
