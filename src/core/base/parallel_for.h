#pragma once

#include <cstddef>
#include <functional>

namespace tprimat {

// Calls work(0) ... work(count - 1), each once, on as many threads as the machine has, at most 16. Which thread takes
// which is left open, so results belong into places of their own. The first exception thrown ends the loop and is
// rethrown.
void parallel_for(size_t count, const std::function<void(size_t)>& work);

}  // namespace tprimat
