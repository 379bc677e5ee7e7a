#include "device/gpu/device.h"

#include <cstdlib>
#include <numeric>

#include "base/error.h"
#include "device/gpu/context.h"
#include "unit/gpu/device_vector.h"

namespace tprimat::engine::gpu {
namespace {

TEST(GpuDevice, MemoryIsZeroedAndKeepsWhatIsUploaded) {
  Device& device = test_device();
  EXPECT_FALSE(device.name().empty());
  EXPECT_FALSE(device.is_host());
  const std::vector<double> zeros(1000);
  auto* const memory = device.allocate(zeros.size() * sizeof(double));
  std::vector<double> values(zeros.size(), 1.0);
  device.download(values.data(), memory, values.size() * sizeof(double));
  EXPECT_EQ(values, zeros);
  device.release(memory, zeros.size() * sizeof(double));
}

// More than what the pinned buffers hold together, and no whole number of them.
TEST(GpuDevice, LongTransfersArriveWhole) {
  std::vector<int32_t> values((size_t{9} << 20) + 12345);
  std::iota(values.begin(), values.end(), 7);
  const DeviceVector<int32_t> there(values);
  EXPECT_EQ(there.download(), values);
}

TEST(GpuDevice, WhatWasUploadedMayChangeAtOnce) {
  std::vector<int32_t> values(100, 1);
  DeviceVector<int32_t> first(values), second(values);
  for (int i = 0; i < 50; ++i) {
    std::fill(values.begin(), values.end(), i);
    test_device().upload((i % 2 == 0 ? first : second).data(), values.data(), values.size() * sizeof(int32_t));
  }
  EXPECT_EQ(first.download(), std::vector<int32_t>(100, 48));
  EXPECT_EQ(second.download(), std::vector<int32_t>(100, 49));
}

TEST(GpuDevice, TooMuchMemoryIsRefusedWithBothFigures) {
  try {
    test_device().allocate(size_t{1} << 50);
    FAIL();
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("1125899.91 GB"), std::string::npos) << text;
    EXPECT_NE(text.find("GB are free"), std::string::npos) << text;
  }
  EXPECT_NO_THROW(test_device().finish());  // the refusal is not said again
}

TEST(GpuDevice, SomeMemoryIsLeftToLibraries) {
  const double promised = test_device().free_bytes().value();
  size_t free = 0, total = 0;
  check(driver::memory(&free, &total));
  EXPECT_GT(promised, 0.0);
  EXPECT_LE(promised, static_cast<double>(free) - 1e9);
}

TEST(GpuDevice, StreamsGetQueuesOfTheirOwnUnlessTheEnvironmentSaysHowMany) {
  constexpr const char* k_variable = TPRIMAT_GPU_NAME("CUDA_DEVICE_MAX_CONNECTIONS", "GPU_MAX_HW_QUEUES");
  ::unsetenv(k_variable);
  count_devices();
  EXPECT_STREQ(std::getenv(k_variable), TPRIMAT_GPU_NAME("32", "16"));
  ::setenv(k_variable, "1", 1);
  count_devices();
  EXPECT_STREQ(std::getenv(k_variable), "1");
  ::unsetenv(k_variable);
}

TEST(GpuDevice, AGpuThatIsNotThereIsNamed) {
  try {
    make_device(count_devices());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), ExitStatus::missing_component);
    EXPECT_NE(std::string(error.what()).find("there is no GPU"), std::string::npos) << error.what();
  }
}

// "sees no GPU" would send people to look for the wrong thing.
#if defined(TPRIMAT_GPU_HOST)
TEST(GpuDevice, ADriverThatIsTooOldIsNamedWithTheOneThatIsNeeded) {
  host::install_driver(12040);
  try {
    count_devices();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), ExitStatus::missing_component);
    const std::string text = error.what();
    EXPECT_NE(text.find("supports CUDA up to 12.4, and this program needs 13.0"), text.npos) << text;
    EXPECT_NE(text.find("580"), text.npos) << text;
  }
  host::install_driver(0);  // none: the runtime gives the same error
  EXPECT_EQ(count_devices(), 0);
  host::install_driver(13000);
  EXPECT_EQ(count_devices(), 1);
}
#endif

// What a plan of cuDNN may take, whatever the size of the GPU.
TEST(GpuDevice, LibrariesMayTakeWhatIsFreeButForALittle) {
  test_device();
  size_t free = 0, total = 0;
  check(driver::memory(&free, &total));
  EXPECT_GT(bytes_for_libraries(), size_t{2} << 30);
  EXPECT_LT(bytes_for_libraries(), free);
}

TEST(GpuDevice, AFailedCallIsNamedWithItsPlace) {
  test_device();
  try {
    check(driver::release(reinterpret_cast<void*>(0x1234)));
    FAIL();
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("device_test.cpp:"), std::string::npos) << text;
    EXPECT_NE(text.find("invalid argument"), std::string::npos) << text;
  }
  driver::ignore(driver::last_error());
}

__global__ void add_one(float* values) { values[threadIdx.x] += 1.0f; }

void add_one_to(const DeviceVector<float>& values) {
  launch({dim3(1), dim3(4), 0, context().stream}, add_one, values.data());
}

TEST(GpuDevice, RecordedWorkIsDoneWhenItIsReplayed) {
  DeviceVector<float> values(std::vector<float>{0, 10, 20, 30});
  const auto work = test_device().record([&] {
    add_one_to(values);
    add_one_to(values);
  });
  EXPECT_EQ(values.download(), (std::vector<float>{0, 10, 20, 30}));
  work->replay();
  values.upload({1, 2, 3, 4});
  work->replay();
  work->replay();
  EXPECT_EQ(values.download(), (std::vector<float>{5, 6, 7, 8}));
}

TEST(GpuDevice, AFailureWhileRecordingLeavesTheDeviceUsable) {
  const DeviceVector<float> values(std::vector<float>{0, 0, 0, 0});
  EXPECT_THROW(test_device().record([&] {
    add_one_to(values);
    throw Error(Problem{"no", "", ""});
  }),
               Error);
  add_one_to(values);
  EXPECT_EQ(values.download(), (std::vector<float>{1, 1, 1, 1}));
}

#if defined(TPRIMAT_GPU_HOST)
// Once a kernel has failed every call does, and the first failure is the one to be told.
TEST(GpuDevice, MemoryOfABrokenDeviceIsReleasedWithoutAnotherError) {
  const auto release = [] {
    std::byte* const memory = test_device().allocate(64);
    host::break_device(true);
    test_device().release(memory, 64);
    host::break_device(false);
  };
  EXPECT_NO_THROW(release());
  host::break_device(true);
  EXPECT_THROW(test_device().finish(), Error);
  host::break_device(false);
}

// Watches over work that waits for others, of which one is lost.
class LostPeer : public PeerWatch {
 public:
  void look() override { throw Error(Problem{"a rank is lost", "", ""}); }
  void abandon() override { host::go_on(); }
};

TEST(GpuDevice, WaitingForALostPeerEndsWithItsSentence) {
  const DeviceVector<float> values(std::vector<float>{0, 0, 0, 0});
  LostPeer peer;
  context().peers = &peer;
  host::hang();
  const auto event = test_device().make_event();
  EXPECT_THROW(test_device().finish(), Error);
  EXPECT_THROW(values.download(), Error);
  test_device().abandon();
  add_one_to(values);
  EXPECT_EQ(values.download(), (std::vector<float>{1, 1, 1, 1}));
  context().peers = nullptr;
}

TEST(GpuDeviceDeathTest, AHostThatWaitsForWorkThatNeverEndsIsFound) {
  test_device();
  const auto wait = [] {
    host::hang();
    test_device().finish();
  };
  EXPECT_DEATH(wait(), "never ends");
}
#endif

TEST(GpuDevice, EventsMeasureTheWorkBetweenThem) {
  const auto before = test_device().make_event(), after = test_device().make_event();
  const DeviceVector<float> values(std::vector<float>{0, 0, 0, 0});
  before->record();
  for (int i = 0; i < 20; ++i) add_one_to(values);
  after->record();
  EXPECT_GT(after->seconds_since(*before), 0.0);
  EXPECT_LT(after->seconds_since(*before), 60.0);
}

}  // namespace
}  // namespace tprimat::engine::gpu
