#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"

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

}  // namespace tprimat::engine
