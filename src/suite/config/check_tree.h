#pragma once

#include "config/diagnosis.h"
#include "config/schema.h"
#include "text/yaml.h"

namespace tprimat::suite {

// Renames every key of one layer to its canonical spelling (TP -> tensor_model_parallel_size, nvidia -> nvd). Two
// spellings of one key that disagree are an error.
void canonicalize_keys(const KeySchema& schema, YamlNode& tree, Diagnosis& diagnosis);

// Unknown keys (with "did you mean"), wrong types, values out of range.
void check_values(const KeySchema& schema, const YamlNode& tree, Diagnosis& diagnosis);

// "did you mean 'seq_length'?", or the choices if none is near and they are few, or "".
std::string suggest_key(const std::string& word, const KeySchema& schema);

}  // namespace tprimat::suite
