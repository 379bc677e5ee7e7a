#pragma once

#include <cstddef>

namespace tprimat::engine::gpu::host {

// The shim's device memory, closed to the host: between the calls of open_memory and close_memory alone may it be
// touched. Filled with 0xFF, which is NaN in every number format, and with closed memory behind it.
std::byte* take_memory(size_t bytes);  // nullptr where there is none
bool give_memory_back(void* memory);   // false where it was never taken
bool is_taken(const void* address);
size_t taken_bytes();

void open_memory();
void close_memory();

}  // namespace tprimat::engine::gpu::host
