#include "model_files/safetensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "text/format.h"
#include "text/json.h"

namespace tprimat::engine {
namespace {

constexpr size_t k_length_bytes = 8;
constexpr uint64_t k_longest_header = 100'000'000;  // the limit of Hugging Face's own reader
constexpr std::string_view k_metadata = "__metadata__";

// Every format of the specification whose numbers are whole bytes.
constexpr std::pair<std::string_view, int> k_format_bytes[] = {
    {"F64", 8},  {"F32", 4},     {"F16", 2},     {"BF16", 2},    {"I64", 8}, {"U64", 8},
    {"I32", 4},  {"U32", 4},     {"I16", 2},     {"U16", 2},     {"I8", 1},  {"U8", 1},
    {"BOOL", 1}, {"F8_E5M2", 1}, {"F8_E4M3", 1}, {"F8_E8M0", 1}, {"C64", 8}};

std::optional<int> format_bytes(std::string_view format) {
  for (const auto& [name, bytes] : k_format_bytes)
    if (name == format) return bytes;
  return std::nullopt;
}

std::optional<NumberFormat> readable_format(std::string_view format) {
  if (format == "F32") return NumberFormat::f32;
  if (format == "F64") return NumberFormat::f64;
  if (format == "F16") return NumberFormat::f16;
  if (format == "BF16") return NumberFormat::bf16;
  return std::nullopt;
}

class HeaderReader {
 public:
  HeaderReader(std::span<const std::byte> file, const std::string& where) : file_(file), where_(where) {}

  SafetensorsHeader read() {
    const Json json = parse_json(header_text(), where_ + ": header", SameKeys::refused);
    if (!json.is_object()) throw problem("its header is not an object of tensors");
    for (const auto& [name, entry] : json.items()) {
      if (name == k_metadata)
        read_metadata(entry);
      else
        header_.tensors.emplace(name, read_tensor(name, entry));
    }
    check_placement();
    return std::move(header_);
  }

 private:
  Error problem(const std::string& what) const {
    return Error(Problem{what, where_, "the file is damaged or not safetensors; copy it again from its source"});
  }
  Error tensor_problem(const std::string& name, const std::string& what) const {
    return problem(fmt::format("tensor '{}' {}", printable(name.substr(0, 200)), what));
  }

  std::string_view header_text() {
    if (file_.size() < k_length_bytes)
      throw problem(fmt::format("has {} bytes, too few for a safetensors file", file_.size()));
    uint64_t length = 0;
    std::memcpy(&length, file_.data(), sizeof length);
    if (length > k_longest_header || length > file_.size() - k_length_bytes)
      throw problem(fmt::format("claims a header of {} bytes, but the file has {}", length, file_.size()));
    header_.data_begin = static_cast<int64_t>(k_length_bytes + length);
    const std::string_view text{reinterpret_cast<const char*>(file_.data()) + k_length_bytes, length};
    if (!text.starts_with('{')) throw problem("its header does not begin with '{'");
    return text;
  }

  void read_metadata(const Json& entry) {
    if (!entry.is_object()) throw problem("__metadata__ is not an object");
    for (const auto& [key, value] : entry.items()) {
      if (!value.is_string()) throw problem("__metadata__ holds values other than strings");
      header_.metadata[key] = value.get<std::string>();
    }
  }

  StoredTensor read_tensor(const std::string& name, const Json& entry) const {
    const auto member = [&](const char* key) -> const Json& {
      if (const Json* found = entry.find(key)) return *found;
      throw tensor_problem(name, fmt::format("has no {}", key));
    };
    if (!entry.is_object()) throw tensor_problem(name, "is not described by an object");
    if (!member("dtype").is_string()) throw tensor_problem(name, "has a dtype that is not a string");
    StoredTensor tensor{member("dtype").get<std::string>(), whole_numbers(name, member("shape")), 0, 0};
    const std::vector<int64_t> offsets = whole_numbers(name, member("data_offsets"));
    if (offsets.size() != 2 || offsets[0] > offsets[1])
      throw tensor_problem(name, "has data_offsets that are not a begin and an end");
    tensor.begin = offsets[0];
    tensor.end = offsets[1];
    check_size(name, tensor);
    return tensor;
  }

  std::vector<int64_t> whole_numbers(const std::string& name, const Json& list) const {
    constexpr uint64_t k_largest = uint64_t{1} << 62;
    constexpr size_t k_max_dimensions = 16;
    if (!list.is_array() || list.size() > k_max_dimensions)
      throw tensor_problem(name, "has a shape that is not a list");
    std::vector<int64_t> numbers;
    for (const Json& item : list) {
      if (!item.is_number_unsigned() || item.get<uint64_t>() > k_largest)
        throw tensor_problem(name, "has a shape or an offset that is not a size");
      numbers.push_back(item.get<int64_t>());
    }
    return numbers;
  }

  void check_size(const std::string& name, const StoredTensor& tensor) const {
    const auto each = format_bytes(tensor.format);
    if (!each)
      throw tensor_problem(name,
                           fmt::format("has the unknown number format {}", printable(tensor.format.substr(0, 40))));
    int64_t bytes = *each;
    for (const int64_t dimension : tensor.shape)
      if (__builtin_mul_overflow(bytes, dimension, &bytes)) throw tensor_problem(name, "has an impossible shape");
    if (bytes != tensor.end - tensor.begin)
      throw tensor_problem(name,
                           fmt::format("has {} bytes, but its shape [{}] of {} needs {}", tensor.end - tensor.begin,
                                       fmt::join(tensor.shape, ", "), tensor.format, bytes));
  }

  void check_placement() const {
    struct Placed {
      const StoredTensor* tensor;
      const std::string* name;
    };
    std::vector<Placed> order;
    for (const auto& [name, tensor] : header_.tensors) order.push_back({&tensor, &name});
    std::sort(order.begin(), order.end(), [](const Placed& a, const Placed& b) {
      return std::tie(a.tensor->begin, a.tensor->end) < std::tie(b.tensor->begin, b.tensor->end);
    });
    int64_t next = 0;
    for (const auto& [tensor, name] : order) {
      if (tensor->begin != next)
        throw tensor_problem(*name, fmt::format("begins at byte {} of the data, but the tensor before it ends at {}",
                                                tensor->begin, next));
      next = tensor->end;
    }
    const int64_t present = static_cast<int64_t>(file_.size()) - header_.data_begin;
    if (next != present) throw problem(fmt::format("has {} bytes of data, but its tensors need {}", present, next));
  }

  std::span<const std::byte> file_;
  const std::string& where_;
  SafetensorsHeader header_;
};

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

int64_t StoredTensor::count() const {
  int64_t numbers = 1;
  for (const int64_t dimension : shape) numbers *= dimension;
  return numbers;
}

SafetensorsHeader parse_safetensors_header(std::span<const std::byte> file, const std::string& where) {
  return HeaderReader(file, where).read();
}

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path)
    : path_(path.string()), file_(path), header_(parse_safetensors_header(file_.bytes(), path_)) {}

const StoredTensor* SafetensorsFile::find(const std::string& name) const {
  const auto found = header_.tensors.find(name);
  return found == header_.tensors.end() ? nullptr : &found->second;
}

std::vector<float> SafetensorsFile::read(const std::string& name) const {
  const StoredTensor* tensor = find(name);
  if (tensor == nullptr) throw Error(Problem{fmt::format("holds no tensor '{}'", name), path_, ""});
  const auto format = readable_format(tensor->format);
  if (!format)
    throw Error(
        Problem{fmt::format("tensor '{}' has the number format {}, which is not a weight format", name, tensor->format),
                path_, "store it as F32, F64, F16 or BF16"});
  std::vector<float> values(static_cast<size_t>(tensor->count()));
  const auto bytes = file_.bytes().subspan(static_cast<size_t>(header_.data_begin + tensor->begin),
                                           static_cast<size_t>(tensor->end - tensor->begin));
  decode_numbers(*format, bytes, values);
  return values;
}

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
