#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "hugging_face/number_format.h"

namespace tprimat::engine {

// One tensor of a file.
struct StoredTensor {
  std::string format;          // as the file says it: "F32", "BF16", "I64" ...
  std::vector<int64_t> shape;  // outermost dimension first; empty for a single number
  int64_t begin = 0, end = 0;  // bytes of the data part

  int64_t count() const;  // numbers
};

// The header of a safetensors file: u64 length of what follows, then JSON {name: {dtype, shape, data_offsets}} with
// offsets into the bytes after it; "__metadata__" is an object of texts.
struct SafetensorsHeader {
  std::map<std::string, StoredTensor> tensors;
  std::map<std::string, std::string> metadata;
  int64_t data_begin = 0;  // byte of the file at which the data part begins
};

// Checks all that the format promises: sizes fit shapes, and the tensors fill the data part without a gap or an
// overlap. `where` names the file in problems. Throws Error.
SafetensorsHeader parse_safetensors_header(std::span<const std::byte> file, const std::string& where);

// A mapped safetensors file.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::filesystem::path& path);  // throws Error

  const std::string& path() const { return path_; }
  const SafetensorsHeader& header() const { return header_; }
  const StoredTensor* find(const std::string& name) const;  // null where there is none

  // The numbers of a tensor, row by row. Reads F32, F64 (rounded to float), F16 and BF16; throws Error that names the
  // tensor for any other format, and for a name that is not there.
  std::vector<float> read(const std::string& name) const;

 private:
  std::string path_;
  MappedFile file_;
  SafetensorsHeader header_;
};

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
