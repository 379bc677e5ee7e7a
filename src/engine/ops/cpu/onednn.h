#pragma once

#include <oneapi/dnnl/dnnl_version.h>

#include <oneapi/dnnl/dnnl.hpp>

// oneDNN 2, which Debian 12 has, and oneDNN 3, which Debian 13 and our packages have, word a product differently.
namespace tprimat::engine {

inline dnnl::matmul::primitive_desc describe_product(const dnnl::engine& engine, const dnnl::memory::desc& a,
                                                     const dnnl::memory::desc& b, const dnnl::memory::desc& c,
                                                     const dnnl::primitive_attr& attributes) {
#if DNNL_VERSION_MAJOR >= 3
  return {engine, a, b, c, attributes};
#else
  return {dnnl::matmul::desc(a, b, c), attributes, engine};
#endif
}

}  // namespace tprimat::engine
