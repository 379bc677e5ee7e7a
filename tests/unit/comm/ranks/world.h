#pragma once

#include "comm/communicator.h"

namespace tprimat::engine {

// All ranks of this test program; the same tests run on each.
Communicator& world();

}  // namespace tprimat::engine
