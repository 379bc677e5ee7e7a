// Moves models between Hugging Face's files and flat ones, for a comparison by another program.
//   model_files_tool read FOLDER OUT      reads a model: OUT/spec.json, OUT/weights.json (names and shapes, in order)
//   and
//                                         OUT/weights.f32, all weights one after the other, row by row
//   model_files_tool write IN FOLDER FORMAT MAX_FILE_BYTES
//                                         the reverse, from what `read` left in IN
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

#include "base/error.h"
#include "base/files.h"
#include "model_files/hugging_face.h"
#include "text/json.h"
#include "text/json_fields.h"

namespace tprimat {
namespace {

namespace fs = std::filesystem;

void read_model(const fs::path& folder, const fs::path& out) {
  const HuggingFaceModel model = read_hugging_face_config(folder);
  const engine::HuggingFaceWeights weights(folder, model.spec);
  std::string bytes;
  Json shapes = Json::array();
  for (const engine::NamedShape& shape : engine::whole_weights(model.spec)) {
    const std::vector<float> values = weights.read_whole(shape.name);
    bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
    shapes.push_back({{"name", shape.name}, {"rows", shape.rows}, {"cols", shape.cols}});
  }
  write_file_atomically(out / "spec.json", print_json(to_json(model.spec)));
  write_file_atomically(out / "weights.json", print_json(shapes));
  write_file_atomically(out / "weights.f32", bytes);
}

void write_model(const fs::path& in, const engine::SafetensorsOutput& output) {
  const auto model = from_json<ModelSpec>(parse_json(read_file(in / "spec.json"), "spec.json"), "spec.json");
  const std::string bytes = read_file(in / "weights.f32");
  const auto read = [&](const std::string& name) {
    size_t at = 0;
    for (const engine::NamedShape& shape : engine::whole_weights(model)) {
      const auto size = static_cast<size_t>(shape.count()) * sizeof(float);
      if (shape.name == name) {
        std::vector<float> values(static_cast<size_t>(shape.count()));
        std::memcpy(values.data(), bytes.data() + at, size);
        return values;
      }
      at += size;
    }
    return std::vector<float>();
  };
  engine::write_hugging_face(output, model, read);
}

int run(int argc, char** argv) {
  const std::string verb = argc > 1 ? argv[1] : "";
  if (verb == "read" && argc == 4) {
    read_model(argv[2], argv[3]);
  } else if (verb == "write" && argc == 6 && parse_enum<NumberFormat>(argv[4])) {
    write_model(argv[2], {argv[3], *parse_enum<NumberFormat>(argv[4]), std::atoll(argv[5])});
  } else {
    std::fprintf(stderr, "usage: model_files_tool read FOLDER OUT | write IN FOLDER FORMAT MAX_FILE_BYTES\n");
    return 2;
  }
  return 0;
}

}  // namespace
}  // namespace tprimat

int main(int argc, char** argv) {
  try {
    return tprimat::run(argc, argv);
  } catch (const tprimat::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return static_cast<int>(error.status());
  }
}
