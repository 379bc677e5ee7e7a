#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tprimat::results {

// Something in an archive that does not hold.
struct Broken {
  std::string file, what;       // what: "derived.mfu.value", "SHA-256", "step 12, loss"
  std::string stated, derived;  // empty where there is nothing to set against each other
  std::string witness = {};     // the file of `derived`; empty: it follows from `file` itself
};

// Whether a figure is one that a program derives from the series, as the mean step time: it cannot hold where these do
// not.
inline bool is_derived_figure(const Broken& broken) {
  for (const std::string_view section : {"performance_metrics", "memory_metrics", "statistics", "derived", "warmup."})
    if (broken.what.starts_with(section) && !broken.stated.empty()) return true;
  return false;
}

struct Verification {
  std::string manifest, manifest_sha256;
  std::optional<std::string> signature;  // of the manifest
  std::string signed_by;                 // the signer, where check_signature() found the signature valid
  std::string created, program;
  int64_t files = 0, results = 0, numbers = 0, facts = 0, steps = 0, logs = 0;  // checked
  std::vector<Broken> broken;                                                   // derived figures last
  std::vector<std::string> notes;                                               // what could not be checked
};

}  // namespace tprimat::results
