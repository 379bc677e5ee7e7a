#pragma once

#include <string>
#include <vector>

namespace tprimat::results {

// A fact stated by a file of an archive, and the witnesses that verify_archive() compares it with.
struct Fact {
  std::string document;   // "result of a run", "steps.jsonl"
  std::string name;       // as in its file: "training_config.seed", "telemetry[].samples"
  std::string witnesses;  // "train_spec.json, log"; empty: the fact has no witness but its own file
};

// Every field of every kind of file, from the field lists.
std::vector<Fact> list_facts();

// The list as text: for each kind of file, its facts by witness, and last those with a single witness.
std::string render_facts(const std::vector<Fact>& facts);

}  // namespace tprimat::results
