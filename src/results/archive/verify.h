#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "archive/archive_format.h"

namespace tprimat::results {

// A failed check of an archive.
struct Broken {
  std::string file, what;       // what: "derived.mfu.value", "SHA-256", "step 12, loss"
  std::string stated, derived;  // empty if there is nothing to compare
  std::string witness = {};     // the file of `derived`; empty: it follows from `file` itself
};

// Whether a figure is derived from the series, as the mean step time: it fails if these do.
inline bool is_derived_figure(const Broken& broken) {
  for (const std::string_view section : {"performance_metrics", "memory_metrics", "statistics", "derived", "warmup.",
                                         "experts.load", "experts.dropped_share", "experts.aux_loss", "experts.z_loss"})
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
  std::vector<std::string> notes;                                               // facts that could not be checked
};

// Reads an archive of seal_files() and checks that every file is unchanged, and that every figure of every result
// follows from its raw samples: the figures are derived again from the series in the result, and the series are
// compared with the step records beside it, or with the log it was extracted from, which is read again. Figures agree
// within 1e-6. Throws Error if it is not such an archive.
//
// Settings, model shape and layout are compared with the specification beside the result, step times with the time
// stamps of the records, and a run of the suite also with its log. list_facts() names the witnesses of each fact.
Verification verify_archive(const std::filesystem::path& archive, const ArchiveLimits& limits = {});

// Verifies files from any source, such as memory. The source is called more than once; `where` names it in errors.
using FileVisitor = std::function<void(const std::string& name, std::string content)>;
using FileSource = std::function<void(const FileVisitor& visit)>;
Verification verify_files(const FileSource& archive, const std::string& where, const ArchiveLimits& limits = {});

// A fact stated by a file of an archive, and the witnesses that verify_archive() compares it with.
struct Fact {
  std::string document;   // "result of a run", "steps.jsonl"
  std::string name;       // as in its file: "training_config.seed", "telemetry[].samples"
  std::string witnesses;  // "train_spec.json, log"; empty: no witness but its own file
};

// Every field of every kind of file, from the field lists.
std::vector<Fact> list_facts();

// The list as text: for each kind of file, its facts by witness, and last those with a single witness.
std::string render_facts(const std::vector<Fact>& facts);

}  // namespace tprimat::results
