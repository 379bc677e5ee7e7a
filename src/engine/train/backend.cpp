#include "train/backend.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <map>
#include <utility>

#include "base/error.h"
#include "gpu_module/load_gpu_module.h"

namespace tprimat::engine {
namespace {

// Launchers may show each rank its own GPU alone.
int number_of_gpu(const GpuModule& module, const LauncherPlace& place) {
  const int devices = module.count_devices();
  if (devices == 1) return 0;
  if (place.local_size <= devices) return place.local_rank;
  throw Error(
      Problem{fmt::format("{} ranks of this machine share {} GPUs: each needs its own", place.local_size, devices),
              "--device",
              fmt::format("start {} ranks on each machine, or let each rank see one GPU of its own", devices)},
      ExitStatus::missing_component);
}

// What tells this machine from others: of containers the name alone differs, of machines that were copied as well.
std::string name_of_machine() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  return fmt::format("{} {}", name.data(), boot);
}

// A seat as it travels between ranks.
using SeatBytes = std::array<char, 512>;

void put_text(const std::string& text, char* to, size_t capacity) { text.copy(to, capacity - 1); }

std::vector<GpuSeat> gather_seats(Communicator& world, const GpuSeat& seat) {
  constexpr size_t half = std::tuple_size_v<SeatBytes> / 2;
  SeatBytes own{};
  put_text(seat.machine, own.data(), half);
  put_text(seat.gpu, own.data() + half, half);
  std::vector<SeatBytes> all(static_cast<size_t>(world.size()));
  world.all_gather(reinterpret_cast<const std::byte*>(own.data()), sizeof own,
                   reinterpret_cast<std::byte*>(all.data()));
  std::vector<GpuSeat> seats;
  for (const SeatBytes& each : all) seats.push_back({each.data(), each.data() + half});
  return seats;
}

}  // namespace

void refuse_shared_seats(const std::vector<GpuSeat>& seats) {
  std::map<std::pair<std::string, std::string>, std::vector<size_t>> ranks_of;
  for (size_t rank = 0; rank < seats.size(); ++rank) ranks_of[{seats[rank].machine, seats[rank].gpu}].push_back(rank);
  std::vector<Problem> problems;
  for (const auto& [seat, ranks] : ranks_of)
    if (ranks.size() > 1)
      problems.push_back({fmt::format("ranks {} of {} share the GPU {}: each needs its own", fmt::join(ranks, ", "),
                                      seat.first.substr(0, seat.first.find(' ')), seat.second),
                          "--device",
                          "start as many ranks on each machine as it has GPUs, and let each rank see all of them, or "
                          "one that no other rank sees (CUDA_VISIBLE_DEVICES, ROCR_VISIBLE_DEVICES)"});
  if (!problems.empty()) throw Error(std::move(problems), ExitStatus::missing_component);
}

Backend cpu_backend() {
  const auto not_owned = [](Device*) {};
  return {{&cpu_device(), not_owned}, nullptr, &cpu_ops<float>(), &cpu_ops<bf16>(), &cpu_ops<f16>(), nullptr};
}

Backend gpu_backend(const GpuModule& module, int index) {
  std::shared_ptr<Accelerator> device = module.make_device(index);
  return {device,         device.get(),   module.f32_ops,  module.bf16_ops,
          module.f16_ops, module.connect, module.products, module.report};
}

Backend backend_of(const GpuModule& module, Communicator& world, const LauncherPlace& place) {
  const int index = number_of_gpu(module, place);
  refuse_shared_seats(gather_seats(world, {name_of_machine(), module.device_address(index)}));
  return gpu_backend(module, index);
}

Backend backend_of(Platform platform, Communicator& world, const LauncherPlace& place) {
  if (platform == Platform::cpu) return cpu_backend();
  return backend_of(load_gpu_module(platform == Platform::nvd ? GpuVendor::nvd : GpuVendor::amd), world, place);
}

}  // namespace tprimat::engine
