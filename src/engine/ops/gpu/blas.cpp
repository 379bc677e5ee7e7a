#include "ops/gpu/blas.h"

#include "device/gpu/libraries.h"

namespace tprimat::engine::gpu::blas {
namespace {

#define TPRIMAT_BLAS(name) TPRIMAT_GPU_NAME("cublasLt" name, "hipblasLt" name)

template <class Function>
void bind(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(need_function(library, product_library(), name));
}

BlasCalls load() {
  void* const library = open_library(product_library());
  BlasCalls f{};
  bind(library, TPRIMAT_BLAS("Create"), f.create);
  bind(library, TPRIMAT_BLAS("Destroy"), f.destroy);
  bind(library, TPRIMAT_BLAS("MatmulDescCreate"), f.operation_create);
  bind(library, TPRIMAT_BLAS("MatmulDescDestroy"), f.operation_destroy);
  bind(library, TPRIMAT_BLAS("MatmulDescSetAttribute"), f.operation_set);
  bind(library, TPRIMAT_BLAS("MatrixLayoutCreate"), f.layout_create);
  bind(library, TPRIMAT_BLAS("MatrixLayoutDestroy"), f.layout_destroy);
  bind(library, TPRIMAT_BLAS("MatmulPreferenceCreate"), f.preference_create);
  bind(library, TPRIMAT_BLAS("MatmulPreferenceDestroy"), f.preference_destroy);
  bind(library, TPRIMAT_BLAS("MatmulPreferenceSetAttribute"), f.preference_set);
  bind(library, TPRIMAT_BLAS("MatmulAlgoGetHeuristic"), f.find_candidates);
  bind(library, TPRIMAT_BLAS("Matmul"), f.multiply);
  f.status_text = reinterpret_cast<decltype(f.status_text)>(find_function(library, TPRIMAT_BLAS("GetStatusString")));
  return f;
}

}  // namespace

const BlasCalls& functions() {
  static const BlasCalls loaded = load();
  return loaded;
}

}  // namespace tprimat::engine::gpu::blas
