#include <fmt/format.h>
#include <sys/mman.h>

#include <cstring>

#include "base/error.h"
#include "device/device.h"

namespace tprimat::engine {
namespace {

class CpuDevice final : public Device {
 public:
  std::string name() const override { return "cpu"; }
  bool is_host() const override { return true; }
  std::optional<double> free_bytes() const override { return std::nullopt; }

  // On huge pages where the system offers them: page faults and TLB misses are dear on virtual machines.
  std::byte* allocate(size_t bytes) override {
    void* const memory =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
      throw Error(
          Problem{fmt::format("cannot allocate {:.2f} GB of memory for the training", static_cast<double>(bytes) / 1e9),
                  "", "use a smaller micro batch, sequence length or model"},
          ExitStatus::work_failed);
    // Wishes: without them the training is only slower, or its first step is.
    ::madvise(memory, bytes, MADV_HUGEPAGE);
#ifdef MADV_POPULATE_WRITE
    ::madvise(memory, bytes, MADV_POPULATE_WRITE);
#endif
    return static_cast<std::byte*>(memory);
  }
  void release(std::byte* memory, size_t bytes) override { ::munmap(memory, bytes); }

  void upload(void* to, const void* from, size_t bytes) override {
    if (bytes > 0) std::memcpy(to, from, bytes);  // neither may be null
  }
  void download(void* to, const void* from, size_t bytes) override { upload(to, from, bytes); }
  void finish() override {}
};

}  // namespace

Device& cpu_device() {
  static CpuDevice device;
  return device;
}

}  // namespace tprimat::engine
