#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace tprimat {

// Something in an archive that does not hold.
struct Broken {
  std::string file, what;       // what: "derived.mfu.value", "SHA-256", "step 12"
  std::string stated, derived;  // empty where there is nothing to set against each other
};

struct Verification {
  std::string manifest_sha256;
  std::string created, program;
  int64_t files = 0, results = 0, numbers = 0, steps = 0;  // checked
  std::vector<Broken> broken;
  std::vector<std::string> notes;  // what could not be checked
};

// Reads an archive of seal_files() and checks that every file is the one that was sealed, and that every figure of
// every result follows from its raw samples: performance_metrics, memory_metrics, statistics and derived are made again
// from the series in the result, the series are held against the step records beside it. Figures agree within 1e-6.
// Throws Error for what is no such archive.
Verification verify_archive(const std::filesystem::path& archive);

}  // namespace tprimat
