#include "program/data_samples.h"

#include <fmt/format.h>

#include <memory>

#include "base/files.h"
#include "data/sample_file.h"
#include "data/token_source.h"
#include "spec/train_spec.h"
#include "text/json.h"

namespace tprimat::engine {
namespace {

constexpr const char* k_samples_examples =
    "Examples\n"
    "  tprimat data samples --spec train_spec.json --output samples.npy\n"
    "  python3 -c 'import numpy; print(numpy.load(\"samples.npy\", mmap_mode=\"r\")[0])'\n";

struct SamplesOptions {
  std::string spec_path, output;
};

ExitStatus write_samples(const SamplesOptions& options) {
  const Json json = parse_json(read_file(options.spec_path), options.spec_path);
  const TrainSpec spec = train_spec_from_json(json, options.spec_path);
  throw_if_any(find_unknown_train_spec_keys(json, options.spec_path));
  throw_if_any(check_train_spec(spec, options.spec_path));
  const int64_t count = spec.steps * spec.global_batch_size;
  const auto source =
      open_token_source(spec.data, {spec.model.vocab_size, spec.sequence_length, spec.seed, DataSplit::train, count});
  write_sample_file(*source, count, spec.sequence_length, options.output);
  return ExitStatus::done;
}

}  // namespace

void add_data_samples(CommandLine& verb, Session& session) {
  CommandLine* samples = verb.add_subcommand(
      "samples", "Write a training's samples, in order, to a NumPy file: int32 [steps * GBS, SL + 1]");
  auto options = std::make_shared<SamplesOptions>();
  samples->add_option("--spec", options->spec_path, "Specification of the training: train_spec.json")
      ->required()
      ->type_name("FILE");
  samples->add_option("--output", options->output, "The .npy file to write")->required()->type_name("FILE");
  samples->footer(k_samples_examples);
  samples->fallthrough();
  samples->callback([&session, options] { session.action = [options] { return write_samples(*options); }; });
}

}  // namespace tprimat::engine
