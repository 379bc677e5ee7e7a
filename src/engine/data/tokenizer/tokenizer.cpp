#include "data/tokenizer/tokenizer.h"

#include "base/error.h"
#include "base/files.h"

namespace tprimat::engine {

std::unique_ptr<Tokenizer> open_tokenizer(const std::filesystem::path& path) {
  if (std::filesystem::is_directory(path))
    throw Error(Problem{"is a folder", path.string(), "give the tokenizer.json or the .model file in it"});
  const std::string bytes = read_file(path);
  if (path.extension() == ".model") return read_sentencepiece_model(bytes, path.string());
  return read_tokenizer_json(bytes, path.string());
}

}  // namespace tprimat::engine
