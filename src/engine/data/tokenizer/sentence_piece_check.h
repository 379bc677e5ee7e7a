#pragma once

#include <string>
#include <string_view>

namespace tprimat::engine {

// SentencePiece trusts a model's tables: a wrong offset in one makes it read outside of its memory while it loads or
// encodes (google/sentencepiece issues 1263 and 1269). Returns what is wrong with the bytes of a .model, and nothing
// where the library can be given them. It does not say that they are a model: the library does.
std::string find_unsafe_table(std::string_view model);

}  // namespace tprimat::engine
