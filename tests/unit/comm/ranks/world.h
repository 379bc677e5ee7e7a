#pragma once

#include "comm/communicator.h"

namespace tprimat {

// All ranks of this test program; the same tests run on each.
Communicator& world();

}  // namespace tprimat
