// Shows the data module's view of a .bin/.idx pair to tests/parity/megatron_data.py.
//   dump_data order PREFIX SL SEED WEIGHTS SPLIT SAMPLES   the three indices and all samples, as JSON; SAMPLES 0: one
//   epoch dump_data copy FROM TO                                 reads a pair token by token and writes it again
#include <cstdio>
#include <string>
#include <vector>

#include "base/error.h"
#include "data/dataset_writer.h"
#include "data/megatron_dataset.h"
#include "text/json.h"

namespace tprimat {
namespace {

constexpr int64_t k_vocabulary = 1 << 20;

void print_order(const std::vector<std::string>& arguments) {
  engine::TokenRequest request{k_vocabulary, std::stoll(arguments[3]), std::stoll(arguments[4])};
  request.split = *parse_enum<engine::DataSplit>(arguments[6]);
  if (const int64_t samples = std::stoll(arguments[7]); samples > 0) request.samples = samples;
  const engine::MegatronDataset data(arguments[2], request, arguments[5]);
  Json json{{"document_index", data.order().sequences},
            {"sample_index", Json::array()},
            {"shuffle_index", data.order().shuffle},
            {"samples", Json::array()}};
  for (const engine::SampleStart& start : data.order().starts)
    json["sample_index"].push_back({start.position, start.offset});
  std::vector<int32_t> sample(static_cast<size_t>(request.sequence_length) + 1);
  for (int64_t i = 0; i < data.order().samples(); ++i) {
    data.read_sample(i, sample);
    json["samples"].push_back(sample);
  }
  std::puts(print_json_line(json).c_str());
}

void copy_pair(const std::string& from, const std::string& to) {
  const engine::TokenStream stream(from);
  const engine::MegatronIndex& index = stream.index();
  engine::DatasetWriter writer(to, index.type);
  std::vector<int32_t> tokens;
  for (size_t document = 0; document + 1 < index.documents.size(); ++document) {
    for (auto i = static_cast<size_t>(index.documents[document]);
         i < static_cast<size_t>(index.documents[document + 1]); ++i) {
      tokens.resize(static_cast<size_t>(index.sizes[i]));
      stream.read({i, 0}, tokens, k_vocabulary);
      writer.append_sequence(tokens);
    }
    writer.end_document();
  }
  writer.finish();
}

}  // namespace
}  // namespace tprimat

int main(int count, char** words) {
  const std::vector<std::string> arguments(words, words + count);
  try {
    if (count == 8 && arguments[1] == "order") return tprimat::print_order(arguments), 0;
    if (count == 4 && arguments[1] == "copy") return tprimat::copy_pair(arguments[2], arguments[3]), 0;
  } catch (const tprimat::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 2;
}
