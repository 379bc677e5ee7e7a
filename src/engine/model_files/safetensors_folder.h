#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "hugging_face/number_format.h"
#include "model_files/safetensors.h"

namespace tprimat::engine {

// The tensors of a model's folder: those of model.safetensors, or of the files that model.safetensors.index.json names.
class SafetensorsFolder {
 public:
  // Throws Error: neither is there, or the index and the files do not agree.
  explicit SafetensorsFolder(const std::filesystem::path& folder);

  const std::string& path() const { return path_; }
  std::vector<std::string> names() const;
  const StoredTensor* find(const std::string& name) const;    // null where there is none
  std::vector<float> read(const std::string& name) const;     // as SafetensorsFile::read
  const std::string& file_of(const std::string& name) const;  // the path of the file that holds it, for messages

 private:
  void open(const std::string& file);
  const SafetensorsFile* holder(const std::string& name) const;

  std::string path_;
  std::map<std::string, std::unique_ptr<SafetensorsFile>> files_;
  std::map<std::string, const SafetensorsFile*> holders_;
};

struct TensorShape {
  std::string name;
  std::vector<int64_t> shape;
  int64_t count() const;
};

struct SafetensorsOutput {
  std::filesystem::path folder;
  NumberFormat format = NumberFormat::f32;
  int64_t max_file_bytes = 5'000'000'000;  // of tensors; one that is larger has a file of its own
};

// Writes the tensors in this order, as model.safetensors where they fit, else as model-00001-of-0000N.safetensors and
// so on with the index last; each file whole or not at all, with metadata {"format": "pt"}. `values` is asked for one
// tensor after the other, so that one of them is held at a time. Throws Error: the folder holds a model already, the
// disk is full, or a finite value is beyond the format's range; the files written until then are removed.
void write_safetensors_folder(const SafetensorsOutput& output, const std::vector<TensorShape>& tensors,
                              const std::function<std::vector<float>(const TensorShape&)>& values);

}  // namespace tprimat::engine
