#include <fmt/format.h>

#include <memory>
#include <optional>
#include <vector>

#include "base/files.h"
#include "command_line/field_table.h"
#include "command_line/output_target.h"
#include "command_line/value_checks.h"
#include "data/dataset_writer.h"
#include "data/megatron_dataset.h"
#include "data/token_source.h"
#include "program/verbs.h"
#include "spec/train_spec.h"
#include "text/json_fields.h"

namespace tprimat::engine {
namespace {

constexpr const char* k_data_examples =
    "  tprimat data encode corpus.jsonl --tokenizer tokenizer.json --output corpus/text --append-eod\n"
    "  tprimat data info corpus/text --split 949,50,1 --seq-length 1024\n"
    "  tprimat data make --prefix corpus/synthetic --tokens 1000000 --vocab 50257\n";

struct InfoOptions {
  std::string prefix, split;
  int64_t sequence_length = 0;
  std::optional<int64_t> samples;
};

std::string render_splits(const std::vector<SplitSummary>& splits) {
  TextTable table{{"split", "sequences", "from", "to", "tokens", "samples", "epochs"}, {}, {1, 2, 3, 4, 5, 6}};
  const auto cell = [](const auto& value) { return value ? fmt::format("{}", *value) : std::string("-"); };
  for (const SplitSummary& each : splits)
    table.rows.push_back({std::string(enum_name(each.split)), fmt::format("{}", each.sequences),
                          fmt::format("{}", each.first_sequence), fmt::format("{}", each.end_sequence),
                          fmt::format("{}", each.tokens), cell(each.samples), cell(each.epochs)});
  return render_text(table);
}

ExitStatus print_info(const Session& session, const InfoOptions& options) {
  std::vector<SplitSummary> splits;
  if (!options.split.empty())
    splits = summarise_splits(options.prefix, {options.split, options.sequence_length, options.samples});
  const DatasetSummary summary = summarise_dataset(options.prefix);
  if (session.json) {
    print_result(
        print_json(to_json(DatasetReport{summary, splits.empty() ? std::nullopt : std::optional(std::move(splits))})));
  } else {
    print_result(render_text(field_table(summary)));
    if (!splits.empty()) print_result("\n" + render_splits(splits));
  }
  return ExitStatus::done;
}

ExitStatus make_dataset(const Session& session, const SyntheticDatasetSpec& spec) {
  write_synthetic_dataset(spec);
  return print_info(session, {spec.prefix, "", 0, std::nullopt});
}

void add_make(CommandLine& verb, Session& session) {
  CommandLine* make = verb.add_subcommand("make", "Write the synthetic corpus as a Megatron .bin/.idx pair");
  auto spec = std::make_shared<SyntheticDatasetSpec>();
  make->add_option("--prefix", spec->prefix, "Path of the pair, without .bin and .idx")
      ->required()
      ->check(folder_output("a pair of files"))
      ->type_name("PREFIX");
  make->add_option("--tokens", spec->tokens, "Total tokens")
      ->required()
      ->check(number_from(int64_t{1}, int64_t{1} << 50));
  make->add_option("--vocab", spec->vocab_size, "Vocabulary size")->required();
  make->add_option("--document-length", spec->document_length, "Tokens per document")->capture_default_str();
  make->add_option("--seed", spec->seed, "Seed of the corpus")->capture_default_str();
  add_json_option(*make, session);
  make->fallthrough();  // --quiet and its kin belong to `data`
  make->callback([&session, spec] { session.action = [&session, spec] { return make_dataset(session, *spec); }; });
}

void add_info(CommandLine& verb, Session& session) {
  CommandLine* info = verb.add_subcommand("info", "Check a whole pair and summarise it");
  auto options = std::make_shared<InfoOptions>();
  info->add_option("PREFIX", options->prefix, "Path of the pair, without .bin and .idx")
      ->required()
      ->type_name("PREFIX");
  Option* split =
      info->add_option("--split", options->split, "Show the shares of training, validation and test, e.g. 949,50,1");
  Option* length = info->add_option("--seq-length", options->sequence_length,
                                    "... and the number of samples of this length in tokens")
                       ->needs(split)
                       ->check(number_from(int64_t{1}, int64_t{1} << 29));
  info->add_option("--samples", options->samples, "... and the epochs for this many samples")
      ->needs(length)
      ->check(number_from(int64_t{1}, int64_t{1} << 31));
  add_json_option(*info, session);
  info->fallthrough();
  info->callback(
      [&session, options] { session.action = [&session, options] { return print_info(session, *options); }; });
}

constexpr const char* k_samples_examples =
    "Examples\n"
    "  tprimat data samples --spec train_spec.json --output samples.npy\n"
    "  python3 -c 'import numpy; print(numpy.load(\"samples.npy\", mmap_mode=\"r\")[0])'\n";

struct SamplesOptions {
  std::string spec_path, output;
};

ExitStatus write_samples(const SamplesOptions& options) {
  require_no_input(options.output, {options.spec_path}, "--output");
  refuse_binary_on_terminal(options.output, "--output", "a NumPy file");
  const Json json = parse_json(read_file(options.spec_path), options.spec_path);
  const TrainSpec spec = train_spec_from_json(json, options.spec_path);
  throw_if_any(find_unknown_train_spec_keys(json, options.spec_path));
  throw_if_any(check_train_spec(spec, options.spec_path));
  const int64_t count = spec.steps * spec.global_batch_size;
  const auto source =
      open_token_source(spec.data, {spec.model.vocab_size, spec.sequence_length, spec.seed, DataSplit::train, count});
  if (!names_stdout(options.output)) {
    write_sample_file(*source, count, spec.sequence_length, options.output);
    return ExitStatus::done;
  }
  const ScratchFolder scratch;
  const std::string file = scratch.path() / "samples.npy";
  write_sample_file(*source, count, spec.sequence_length, file);
  copy_to_stdout(file);
  return ExitStatus::done;
}

void add_samples(CommandLine& verb, Session& session) {
  CommandLine* samples = verb.add_subcommand(
      "samples", "Write a training's samples, in order, to a NumPy file: int32 [steps * GBS, SL + 1]");
  auto options = std::make_shared<SamplesOptions>();
  samples->add_option("--spec", options->spec_path, "Specification of the training: train_spec.json")
      ->required()
      ->type_name("FILE");
  samples->add_option("--output", options->output, "The .npy file to write; -: stdout")->required()->type_name("FILE");
  samples->footer(k_samples_examples);
  samples->fallthrough();
  samples->callback([&session, options] { session.action = [options] { return write_samples(*options); }; });
}

}  // namespace

void add_data_verb(CommandLine& program, Session& session) {
  CommandLine* verb = add_verb(program, session, "data", "Token data sets (Megatron .bin/.idx)", k_data_examples);
  verb->require_subcommand(1);
  add_data_encode(*verb, session);
  add_make(*verb, session);
  add_info(*verb, session);
  add_samples(*verb, session);
}

}  // namespace tprimat::engine
