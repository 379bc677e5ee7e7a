#pragma once

#include <cstddef>
#include <functional>

namespace tprimat {

// Calls work(0) ... work(count - 1), each once, on as many threads as the machine has, at most 16. Threads take them in
// any order, so each call must write to its own place. The first exception ends the loop and is rethrown.
void parallel_for(size_t count, const std::function<void(size_t)>& work);

}  // namespace tprimat
