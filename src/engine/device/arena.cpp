#include "device/arena.h"

namespace tprimat::engine {

Arena::Arena(const ArenaPlan& plan, Device& device)
    : device_(device), bytes_(plan.allocated_bytes()), base_(device.allocate(bytes_)) {}

Arena::~Arena() { device_.release(base_, bytes_); }

}  // namespace tprimat::engine
