#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tprimat {

// Something in an archive that does not hold.
struct Broken {
  std::string file, what;       // what: "derived.mfu.value", "SHA-256", "step 12, loss"
  std::string stated, derived;  // empty where there is nothing to set against each other
};

struct Verification {
  std::string manifest_sha256;
  std::string created, program;
  int64_t files = 0, results = 0, numbers = 0, steps = 0, logs = 0;  // checked
  std::vector<Broken> broken;
  std::vector<std::string> notes;  // what could not be checked
};

}  // namespace tprimat
