#include "model_files/safetensors_folder.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "text/format.h"
#include "text/json.h"

namespace tprimat::engine {
namespace {

namespace fs = std::filesystem;

constexpr const char* k_single_file = "model.safetensors";
constexpr const char* k_index_file = "model.safetensors.index.json";

// A name that leads out of the folder would let an index open any file of the machine.
bool is_plain_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find_first_of(std::string("/\0", 2)) == std::string::npos;
}

std::map<std::string, std::string> read_index(const fs::path& path) {
  const auto bad = [&](const std::string& what) { return Error(Problem{what, path.string(), "copy the file again"}); };
  const Json json = parse_json(read_file(path), path.string(), SameKeys::refused);
  const Json* found = json.find("weight_map");
  if (found == nullptr || !found->is_object()) throw bad("has no weight_map");
  std::map<std::string, std::string> files;
  for (const auto& [tensor, file] : found->items()) {
    if (!file.is_string() || !is_plain_name(file.get<std::string>()))
      throw bad(fmt::format("the file of tensor '{}' is not a file name in this folder", printable(tensor)));
    files[tensor] = file.get<std::string>();
  }
  return files;
}

}  // namespace

SafetensorsFolder::SafetensorsFolder(const fs::path& folder) : path_(folder.string()) {
  std::error_code ignored;
  if (fs::exists(folder / k_single_file, ignored)) {
    open(k_single_file);
    return;
  }
  if (!fs::exists(folder / k_index_file, ignored))
    throw Error(Problem{fmt::format("holds neither {} nor {}", k_single_file, k_index_file), path_,
                        "name the folder of a model in Hugging Face's format"});
  const auto index = read_index(folder / k_index_file);
  for (const auto& [tensor, file] : index)
    if (files_.count(file) == 0) open(file);
  for (const auto& [tensor, file] : index)
    if (files_.at(file)->find(tensor) == nullptr)
      throw Error(Problem{fmt::format("holds no tensor '{}', although {} lists it", printable(tensor), k_index_file),
                          files_.at(file)->path(), "copy all files of the model again, from one source"});
}

void SafetensorsFolder::open(const std::string& file) {
  auto opened = std::make_unique<SafetensorsFile>(fs::path(path_) / file);
  for (const auto& [name, tensor] : opened->header().tensors)
    if (!holders_.emplace(name, opened.get()).second)
      throw Error(Problem{fmt::format("tensor '{}' is in {} too", printable(name), holders_.at(name)->path()),
                          opened->path(), "copy all files of the model again, from one source"});
  files_.emplace(file, std::move(opened));
}

const SafetensorsFile* SafetensorsFolder::holder(const std::string& name) const {
  const auto found = holders_.find(name);
  return found == holders_.end() ? nullptr : found->second;
}

std::vector<std::string> SafetensorsFolder::names() const {
  std::vector<std::string> names;
  for (const auto& [name, file] : holders_) names.push_back(name);
  return names;
}

const StoredTensor* SafetensorsFolder::find(const std::string& name) const {
  const SafetensorsFile* file = holder(name);
  return file == nullptr ? nullptr : file->find(name);
}

const std::string& SafetensorsFolder::file_of(const std::string& name) const {
  const SafetensorsFile* file = holder(name);
  return file == nullptr ? path_ : file->path();
}

std::vector<float> SafetensorsFolder::read(const std::string& name) const {
  const SafetensorsFile* file = holder(name);
  if (file == nullptr) throw Error(Problem{fmt::format("holds no tensor '{}'", name), path_, ""});
  return file->read(name);
}

}  // namespace tprimat::engine
