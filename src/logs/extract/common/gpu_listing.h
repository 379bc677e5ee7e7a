#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "extract/figure.h"

namespace tprimat::logs {

// The GPUs of one machine in the listing of a vendor's tool.
struct GpuListing {
  std::string name;  // of the first; "" when the tool shows none
  int64_t count = 0;
  Figure memory_gb;           // of one, GB = 1e9 bytes
  std::string stack_version;  // of CUDA, as the driver serves it; "" where it is not shown
};

// Follows the table of nvidia-smi or of rocm-smi, line by line.
class GpuTable {
 public:
  static bool is_title(std::string_view text);
  void open(std::string_view title);
  bool is_open() const { return open_; }
  static bool may_hold(std::string_view text);  // by how the line begins
  void read(std::string_view text);
  const GpuListing& listing() const { return listing_; }

 private:
  void read_nvidia(std::string_view text);
  void read_amd(std::string_view text);

  bool open_ = false, is_amd_ = false;
  int lines_ = 0, strange_lines_ = 0;
  GpuListing listing_;
};

// A GPU named in a line: "CUDA capacity: NVIDIA B200 with 178.35GiB memory", "GPU 0: NVIDIA H100 80GB HBM3 (UUID:
// ...)", "GPU[0] : Card series: AMD Instinct MI300X".
struct NamedGpu {
  std::string name;
  std::optional<int64_t> index;  // on its machine
  Figure memory_gb;
};
std::optional<NamedGpu> find_named_gpu(std::string_view text);

}  // namespace tprimat::logs
