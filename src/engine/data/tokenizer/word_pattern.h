#pragma once

#include <optional>
#include <string_view>

#include "text/enum_names.h"

namespace tprimat::engine {

// How text is cut into words before merging: the patterns of the tokenizers in use, each scanned by hand.
enum class WordPattern { gpt2, llama3, qwen2 };

// The regular expression as tokenizer.json writes it.
std::string_view expression_of(WordPattern pattern);
std::optional<WordPattern> find_word_pattern(std::string_view expression);

// The end of the word that begins at `at` < `end`. The text must be valid UTF-8. Every byte belongs to a word.
using NextWord = const char* (*)(const char* at, const char* end);
NextWord scanner_of(WordPattern pattern);

}  // namespace tprimat::engine
