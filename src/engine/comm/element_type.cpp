#include "base/check.h"
#include "comm/communicator.h"

namespace tprimat::engine {

int64_t element_bytes(ElementType type) {
  switch (type) {
    case ElementType::float32: return 4;
    case ElementType::float64: return 8;
    case ElementType::bfloat16: return 2;
    case ElementType::float16: return 2;
    case ElementType::int32: return 4;
    case ElementType::int64: return 8;
    case ElementType::bytes: return 1;
  }
  CHECK(!"an element type");
}

}  // namespace tprimat::engine
