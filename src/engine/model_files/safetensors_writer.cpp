#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "base/check.h"
#include "base/error.h"
#include "base/files.h"
#include "model_files/safetensors.h"
#include "text/json.h"

namespace tprimat::engine {
namespace {

namespace fs = std::filesystem;

using Values = std::function<std::vector<float>(const TensorShape&)>;

// The tensors [first, last) of the list make one file.
struct FileRange {
  size_t first = 0, last = 0;
};

std::string_view stored_name(NumberFormat format) {
  switch (format) {
    case NumberFormat::f32: return "F32";
    case NumberFormat::f64: return "F64";
    case NumberFormat::f16: return "F16";
    case NumberFormat::bf16: return "BF16";
  }
  return "?";
}

std::vector<FileRange> plan_files(const SafetensorsOutput& output, const std::vector<TensorShape>& tensors) {
  std::vector<FileRange> files = {{0, 0}};
  int64_t bytes = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const int64_t size = tensors[i].count() * bytes_per_number(output.format);
    if (bytes > 0 && bytes + size > output.max_file_bytes) {
      files.push_back({i, i});
      bytes = 0;
    }
    bytes += size;
    files.back().last = i + 1;
  }
  return files;
}

std::string file_name(size_t number, size_t files) {
  return files == 1 ? "model.safetensors" : fmt::format("model-{:05}-of-{:05}.safetensors", number + 1, files);
}

// The length is a multiple of 8, so that the data begins aligned.
std::string make_header(std::span<const TensorShape> tensors, NumberFormat format) {
  Json header{{"__metadata__", {{"format", "pt"}}}};
  int64_t offset = 0;
  for (const TensorShape& tensor : tensors) {
    const int64_t end = offset + tensor.count() * bytes_per_number(format);
    header[tensor.name] = {{"dtype", stored_name(format)}, {"shape", tensor.shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = print_json_line(header);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const uint64_t length = text.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + text;
}

void check_range(const TensorShape& tensor, std::span<const float> values, NumberFormat format, const fs::path& path) {
  if (format != NumberFormat::f16 && format != NumberFormat::bf16) return;
  const auto narrowed = [&](float v) {
    return format == NumberFormat::f16 ? half_to_float(float_to_half(v)) : bfloat16_to_float(float_to_bfloat16(v));
  };
  for (const float value : values)
    if (std::isfinite(value) && !std::isfinite(narrowed(value)))
      throw Error(
          Problem{fmt::format("tensor '{}' holds {}, which {} cannot hold", tensor.name, value, enum_name(format)),
                  path.string(), "write the model as bfloat16 or float32"});
}

void write_tensors(NewFile& file, const fs::path& path, std::span<const TensorShape> tensors,
                   const SafetensorsOutput& output, const Values& values) {
  constexpr size_t k_chunk = size_t{1} << 18;  // numbers converted at a time
  std::vector<std::byte> bytes;
  for (const TensorShape& tensor : tensors) {
    const std::vector<float> numbers = values(tensor);
    CHECK(static_cast<int64_t>(numbers.size()) == tensor.count());
    check_range(tensor, numbers, output.format, path);
    for (size_t at = 0; at < numbers.size(); at += k_chunk) {
      const auto chunk = std::span(numbers).subspan(at, std::min(k_chunk, numbers.size() - at));
      bytes.resize(chunk.size() * static_cast<size_t>(bytes_per_number(output.format)));
      encode_numbers(output.format, chunk, bytes);
      file.write({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    }
  }
}

void refuse_occupied(const fs::path& folder) {
  std::error_code ignored;  // what cannot be listed cannot be written either, which is said then
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(".safetensors") || name.ends_with(".safetensors.index.json"))
      throw Error(Problem{fmt::format("already holds the weights of a model ({})", name), folder.string(),
                          "choose another folder, or remove it"});
  }
}

std::string make_index(const std::vector<TensorShape>& tensors, const std::vector<FileRange>& files,
                       NumberFormat format) {
  int64_t numbers = 0;
  Json map = Json::object();
  for (size_t f = 0; f < files.size(); ++f)
    for (size_t i = files[f].first; i < files[f].last; ++i) {
      numbers += tensors[i].count();
      map[tensors[i].name] = file_name(f, files.size());
    }
  return print_json({{"metadata", {{"total_size", numbers * bytes_per_number(format)}}}, {"weight_map", map}});
}

// Files that vanish again unless all of them came into being.
struct WrittenFiles {
  std::vector<fs::path> paths;
  bool complete = false;
  ~WrittenFiles() {
    std::error_code ignored;
    if (!complete)
      for (const fs::path& path : paths) fs::remove(path, ignored);
  }
};

}  // namespace

int64_t TensorShape::count() const {
  int64_t numbers = 1;
  for (const int64_t dimension : shape) numbers *= dimension;
  return numbers;
}

void write_safetensors_folder(const SafetensorsOutput& output, const std::vector<TensorShape>& tensors,
                              const Values& values) {
  refuse_occupied(output.folder);
  const std::vector<FileRange> files = plan_files(output, tensors);
  WrittenFiles written;
  for (size_t f = 0; f < files.size(); ++f) {
    const auto group = std::span(tensors).subspan(files[f].first, files[f].last - files[f].first);
    const fs::path path = output.folder / file_name(f, files.size());
    NewFile file(path);
    file.write(make_header(group, output.format));
    write_tensors(file, path, group, output, values);
    file.finish();
    written.paths.push_back(path);
  }
  if (files.size() > 1)
    write_file_atomically(output.folder / "model.safetensors.index.json", make_index(tensors, files, output.format));
  written.complete = true;
}

}  // namespace tprimat::engine
