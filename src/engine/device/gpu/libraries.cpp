#include "device/gpu/libraries.h"

#include <fmt/format.h>

#include "base/error.h"
#include "device/gpu/runtime.h"

namespace tprimat::engine::gpu {
namespace {

// The version that a library reports; empty where that is none of the library that we want. Null: it reports none.
using ReadVersion = std::string (*)(void* library);

// 90300 is 9.3.0 by steps of 10000 and 100.
std::string dotted(size_t number) {
  return fmt::format("{}.{}.{}", number / 10000, number % 10000 / 100, number % 100);
}

template <class Function>
Function function_of(void* library, const char* name) {
  return reinterpret_cast<Function>(find_function(library, name));
}

#if !defined(TPRIMAT_GPU_HIP)
// Of [first, end), as the function gives it.
std::string version_between(size_t first, size_t end, void* library, const char* function) {
  const auto ask = function_of<size_t (*)()>(library, function);
  const size_t version = ask != nullptr ? ask() : 0;
  return version >= first && version < end ? dotted(version) : "";
}
std::string version_of_products(void* library) {
  return version_between(120000, 1000000, library, "cublasLtGetVersion");
}
std::string version_of_attention(void* library) { return version_between(90000, 100000, library, "cudnnGetVersion"); }
std::string version_of_compiler(void* library) {
  const auto ask = function_of<int (*)(int*, int*)>(library, "nvrtcVersion");
  int major = 0, minor = 0;
  return ask != nullptr && ask(&major, &minor) == 0 && major == 13 ? fmt::format("{}.{}", major, minor) : "";
}
std::string version_of_runtime(void* library) {
  const auto ask = function_of<int (*)(int*)>(library, "cudaRuntimeGetVersion");
  int version = 0;
  const bool told = ask != nullptr && ask(&version) == 0 && version / 1000 == 13;
  return told ? fmt::format("{}.{}", version / 1000, version % 1000 / 10) : "";
}
#endif
std::string version_of_ranks(void* library) {
  const auto ask = function_of<int (*)(int*)>(library, "ncclGetVersion");
  int version = 0;
  const bool told = ask != nullptr && ask(&version) == 0 && version >= 20000 && version < 100000;
  return told ? dotted(static_cast<size_t>(version)) : "";
}

struct ListedLibrary {
  const WantedLibrary& (*wanted)();
  std::string_view serves;
  ReadVersion version;
  std::vector<std::string> loaded_later;  // beginnings of the names of libraries beside it
};
const std::vector<ListedLibrary>& listed_libraries() {
  static const std::vector<ListedLibrary> list = {
#if defined(TPRIMAT_GPU_HIP)
    {product_library, "matrix products", nullptr, {}},
#else
    {product_library, "matrix products", version_of_products, {}},
    {attention_library, "attention", version_of_attention, {"libcudnn_"}},
    {compiler_library, "cuDNN's attention kernels", version_of_compiler, {}},
    {runtime_library, "cuDNN's frontend", version_of_runtime, {}},
#endif
    {rank_library, "several ranks", version_of_ranks, {}},
  };
  return list;
}

#if defined(TPRIMAT_HAS_CUDNN) || defined(TPRIMAT_GPU_HOST)
constexpr bool k_uses_cudnn = true;
#else
constexpr bool k_uses_cudnn = false;
#endif

LibraryReport report(const ListedLibrary& listed) {
  const WantedLibrary& wanted = listed.wanted();
  LibraryReport report{wanted.title, std::string(listed.serves), &wanted != &product_library(), "", "", "", ""};
  if (&wanted == &attention_library() && !k_uses_cudnn) {
    report.refusal = "this program was built without cuDNN's headers";
    report.remedy = "build it with scripts/build_gpu.sh nvd (docs/gpu.md)";
    return report;
  }
  try {
    void* const library = open_library(wanted);
    report.file = library_file(library).string();
    open_beside(report.file, listed.loaded_later);
    if (listed.version != nullptr) report.version = listed.version(library);
    if (listed.version != nullptr && report.version.empty())
      throw Error(Problem{fmt::format("{} reports no version of {}", report.file, wanted.title), wanted.title,
                          fmt::format("{}; or name another file in {}", wanted.remedy, wanted.variable)},
                  ExitStatus::missing_component);
  } catch (const Error& error) {
    report.file.clear();
    report.refusal = error.problems().front().what;
    report.remedy = error.problems().front().hint;
  }
  return report;
}

}  // namespace

const WantedLibrary& product_library() {
  static const WantedLibrary library =
      TPRIMAT_GPU_NAME((WantedLibrary{"cuBLASLt",
                                      {"libcublasLt.so.13", "libcublasLt.so.12"},
                                      {"nvidia/cu13/lib", "nvidia/cublas/lib"},
                                      "TPRIMAT_CUBLASLT",
                                      "install it with the CUDA toolkit, or: pip install nvidia-cublas"}),
                       (WantedLibrary{"hipBLASLt",
                                      {"libhipblaslt.so.1", "libhipblaslt.so.0", "libhipblaslt.so"},
                                      {"torch/lib"},
                                      "TPRIMAT_HIPBLASLT",
                                      "sudo apt-get install hipblaslt"}));
  return library;
}

const WantedLibrary& rank_library() {
  static const WantedLibrary library = TPRIMAT_GPU_NAME(
      (WantedLibrary{"NCCL",
                     {"libnccl.so.2"},
                     {"nvidia/nccl/lib"},
                     "TPRIMAT_NCCL",
                     "sudo apt-get install libnccl2, or: pip install nvidia-nccl-cu13"}),
      (WantedLibrary{
          "RCCL", {"librccl.so.1", "librccl.so"}, {"torch/lib"}, "TPRIMAT_RCCL", "sudo apt-get install rccl"}));
  return library;
}

const WantedLibrary& attention_library() {
  static const WantedLibrary library{
      "cuDNN", {"libcudnn.so.9"}, {"nvidia/cudnn/lib"}, "TPRIMAT_CUDNN", "pip install nvidia-cudnn-cu13"};
  return library;
}

const WantedLibrary& compiler_library() {
  static const WantedLibrary library{"NVRTC",
                                     {"libnvrtc.so.13"},
                                     {"nvidia/cu13/lib"},
                                     "TPRIMAT_NVRTC",
                                     "install it with the CUDA toolkit, or: pip install nvidia-cuda-nvrtc",
                                     {"libnvrtc-builtins.so."}};
  return library;
}

const WantedLibrary& runtime_library() {
  static const WantedLibrary library{"CUDA's runtime",
                                     {"libcudart.so.13"},
                                     {"nvidia/cu13/lib"},
                                     "TPRIMAT_CUDART",
                                     "install it with the CUDA toolkit, or: pip install nvidia-cuda-runtime"};
  return library;
}

std::vector<LibraryReport> report_libraries() {
  std::vector<LibraryReport> reports;
  for (const ListedLibrary& listed : listed_libraries()) reports.push_back(report(listed));
  return reports;
}

}  // namespace tprimat::engine::gpu
