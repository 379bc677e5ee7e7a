#include "why/make_ledger.h"

#include "base/error.h"

namespace tprimat::results {

Ledger make_ledger(const SideInput& a, const SideInput& b) {
  for (const SideInput* side : {&a, &b})
    if (side->ranks.empty())
      throw Error({"no trace is recorded", side->label, "record one with tprimat run --profile-steps 3"});
  throw Error({"the ledger of traces is not made yet", a.label, ""});
}

}  // namespace tprimat::results
