#pragma once

#include <dlfcn.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "telemetry/gpu_library.h"

// Common code of the readers of NVML, AMD SMI and ROCm SMI. In all three, status zero means success.
namespace tprimat {

// dlopen, closed at the end.
class SharedLibrary {
 public:
  // Converts to a pointer to the function declared for it; null when the library has no such symbol.
  struct Symbol {
    void* address;
    template <class Function>
    operator Function*() const {
      return reinterpret_cast<Function*>(address);
    }
  };

  // The first library that exists.
  static std::optional<SharedLibrary> open(const std::vector<const char*>& names) {
    for (const char* name : names)
      if (void* handle = ::dlopen(name, RTLD_NOW | RTLD_LOCAL)) return SharedLibrary(handle);
    return std::nullopt;
  }

  Symbol find(const char* symbol) const { return {::dlsym(handle_.get(), symbol)}; }
  Symbol find(const char* symbol, const char* other) const {
    const Symbol found = find(symbol);
    return found.address != nullptr ? found : find(other);
  }

 private:
  explicit SharedLibrary(void* handle) : handle_(handle, ::dlclose) {}
  std::unique_ptr<void, int (*)(void*)> handle_;
};

// Calls functions of a library and records their failures.
struct LibraryCaller {
  std::string_view (*describe)(int status);
  FaultLog* faults = nullptr;  // null: failures are not recorded

  void record(std::string_view figure, std::string_view reason) const {
    if (faults != nullptr) faults->record(figure, reason);
  }

  // The value that `call(value)` wrote; nothing if the library lacks the function or the call failed.
  template <class Value, class Call>
  std::optional<Value> value_by(std::string_view figure, bool has_function, Call call) const {
    Value value{};
    const int status = has_function ? call(value) : 0;
    if (has_function && status == 0) return value;
    record(figure, has_function ? describe(status) : "this version of the library does not report it");
    return std::nullopt;
  }

  // The value that `function(arguments..., &value)` wrote.
  template <class... Parameters, class... Arguments>
  auto value(std::string_view figure, int (*function)(Parameters...), Arguments... arguments) const {
    using Value = std::remove_pointer_t<std::tuple_element_t<sizeof...(Arguments), std::tuple<Parameters...>>>;
    return value_by<Value>(figure, function != nullptr, [&](Value& value) { return function(arguments..., &value); });
  }

  template <class Function, class... Arguments>
  std::optional<double> scaled(std::string_view figure, double unit, Function function, Arguments... arguments) const {
    const auto found = this->value(figure, function, arguments...);
    return found ? std::optional(static_cast<double>(*found) * unit) : std::nullopt;
  }
};

// AMD's counters of energy: how many units of how many microjoules.
struct EnergyCount {
  uint64_t counter = 0, timestamp = 0;
  float microjoules = 0.0F;
};
template <class Device>
std::optional<EnergyCount> read_energy(const LibraryCaller& ask, int (*function)(Device, uint64_t*, float*, uint64_t*),
                                       Device device) {
  return ask.value_by<EnergyCount>("energy counter", function != nullptr, [&](EnergyCount& count) {
    return function(device, &count.counter, &count.microjoules, &count.timestamp);
  });
}

// A library with its `Functions`, which resolve their own symbols.
template <class Functions, std::string_view (*describe_status)(int)>
class VendorLibrary : public GpuLibrary {
 public:
  explicit VendorLibrary(SharedLibrary library) : library_(std::move(library)) {}
  ~VendorLibrary() override {
    if (is_started_ && call_.shutdown != nullptr) call_.shutdown();
  }

 protected:
  static LibraryCaller caller(FaultLog* faults = nullptr) { return {describe_status, faults}; }

  // Why it does not start; empty where it does.
  template <class... Arguments>
  std::string start_library(Arguments... arguments) {
    const int status = call_.init(arguments...);
    is_started_ = status == 0;
    return is_started_ ? "" : "does not start: " + std::string(describe_status(status));
  }

  SharedLibrary library_;
  Functions call_{library_};

 private:
  bool is_started_ = false;
};

// The library, started. `title` is its name in sentences.
template <class Library>
OpenedLibrary start_vendor_library(std::optional<SharedLibrary> opened, const std::string& title) {
  if (!opened) return {};
  auto library = std::make_unique<Library>(std::move(*opened));
  std::string refusal = library->start();
  if (refusal.empty() && library->devices().empty()) refusal = "sees no GPU";
  if (!refusal.empty()) return {nullptr, title + " " + refusal};
  return {std::move(library), ""};
}

}  // namespace tprimat
