#pragma once

#include <filesystem>
#include <string>

#include "config/load.h"
#include "extract/stated_facts.h"
#include "result/run_result.h"

namespace tprimat::suite {

// What there is to tell which model of a configuration a log is of.
struct LogEvidence {
  const RunResult& result;          // of the log alone
  const logs::StatedFacts& stated;  // by the log
  std::filesystem::path path;       // the parts of it that may name a model
  std::string named;                // key that a person names for this log; empty: none
  std::string named_by;             // "LLAMA_LOG", "--model"
};

// The entry, and the reason; without an entry the reason why no model of the configuration is believed.
struct ModelBelief {
  const ModelEntry* entry = nullptr;
  std::string because;
  bool is_logged = false;        // the log itself states it
  bool is_contradicted = false;  // by the log: it is of another model
  std::string from = "the log";  // who states it
};

// The log's own sizes decide, then its own name of the model, then a person, then its path. A person or a path never
// outweighs what the log states. With the built-in configuration, whose models are tiny, the keys are families: `llama`
// is any Llama.
ModelBelief identify_model(const LoadedExperiment& configuration, const LogEvidence& evidence);

// The part of a file's name behind the key of the model, without dates: "bc" of "training_mega_llama_bc.log". Empty
// where the name has no such part.
std::string name_behind_model(const std::filesystem::path& file, const ModelEntry& entry);

bool is_built_in(const LoadedExperiment& configuration);

}  // namespace tprimat::suite
