#pragma once

#include <filesystem>

#include "data/token_source.h"

namespace tprimat::engine {

// The first `count` samples of a source in NumPy's .npy format (numpy.lib.format, version 1.0): int32 [count, SL + 1].
// That is how other trainers get the tokens of the native one, in its order. Throws Error; the file appears whole.
void write_sample_file(const TokenSource& source, int64_t count, int64_t sequence_length,
                       const std::filesystem::path& path);

}  // namespace tprimat::engine
