#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace tprimat {

// One variable of an environment, this process's or another; nothing when it is not set.
using EnvironmentReader = std::function<std::optional<std::string>(const std::string& name)>;

// Whether a variable of this name holds a secret: *TOKEN (HF_TOKEN, TOKEN_2; not TOKENIZER, NUM_TOKENS), *SECRET*,
// *PASSWORD*, *CREDENTIAL*, *API_KEY*, *ACCESS_KEY*, *PRIVATE_KEY*; none that names a place: *_FILE, *_PATH, *_DIR.
bool names_a_secret(std::string_view variable);

// Whether a variable of the environment holds a secret. Besides the names above, which also decide in logs and other
// texts: *_KEY, *_PAT, and *_TOKENS where the value is no count (HF_TOKENS=hf_abc; not MAX_TOKENS=4096).
bool holds_a_secret(std::string_view variable, std::string_view value);

std::optional<std::string> read_environment(const std::string& name);  // of this process

}  // namespace tprimat
