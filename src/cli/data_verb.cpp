#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/verbs.h"
#include "data/dataset_summary.h"
#include "data/dataset_writer.h"
#include "text/format.h"
#include "text/json_fields.h"

namespace tprimat {
namespace {

constexpr const char* k_examples =
    "  tprimat data make --prefix corpus/synthetic --tokens 1000000 --vocab 50257\n"
    "  tprimat data info corpus/synthetic --json\n";

std::string render_summary(const DatasetSummary& summary) {
  TextTable table{{"fact", "value", "meaning"}, {}, {1}};
  const Json json = to_json(summary);
  for_each_field<DatasetSummary>([&](const auto& each) {
    const auto found = json.find(std::string(each.key));
    if (found == json.end()) return;
    table.rows.push_back({std::string(each.key),
                          found->is_string() ? found->template get<std::string>() : found->dump(),
                          std::string(each.doc)});
  });
  return render_text(table);
}

ExitStatus print_info(const Session& session, const std::string& prefix) {
  const DatasetSummary summary = summarise_dataset(prefix);
  print_result(session.json ? print_json(to_json(summary)) : render_summary(summary));
  return ExitStatus::done;
}

ExitStatus make_dataset(const Session& session, const SyntheticDatasetSpec& spec) {
  write_synthetic_dataset(spec);
  return print_info(session, spec.prefix);
}

void add_make(CLI::App& verb, Session& session) {
  CLI::App* make = verb.add_subcommand("make", "Write the synthetic corpus as a Megatron .bin/.idx pair");
  auto spec = std::make_shared<SyntheticDatasetSpec>();
  make->add_option("--prefix", spec->prefix, "Path of the pair, without .bin and .idx")
      ->required()
      ->type_name("PREFIX");
  make->add_option("--tokens", spec->tokens, "Tokens in all")->required();
  make->add_option("--vocab", spec->vocab_size, "Size of the vocabulary")->required();
  make->add_option("--document-length", spec->document_length, "Tokens of one document")->capture_default_str();
  make->add_option("--seed", spec->seed, "Which samples of the corpus")->capture_default_str();
  add_json_option(*make, session);
  make->fallthrough();  // --quiet and its kin belong to `data`
  make->callback([&session, spec] { session.action = [&session, spec] { return make_dataset(session, *spec); }; });
}

void add_info(CLI::App& verb, Session& session) {
  CLI::App* info = verb.add_subcommand("info", "Check a pair from end to end and say what it holds");
  auto prefix = std::make_shared<std::string>();
  info->add_option("PREFIX", *prefix, "Path of the pair, without .bin and .idx")->required();
  add_json_option(*info, session);
  info->fallthrough();
  info->callback([&session, prefix] { session.action = [&session, prefix] { return print_info(session, *prefix); }; });
}

}  // namespace

void add_data_verb(CLI::App& program, Session& session) {
  CLI::App* verb = add_verb(program, session, "data", "Token data sets (Megatron .bin/.idx)", k_examples);
  verb->require_subcommand(1);
  add_make(*verb, session);
  add_info(*verb, session);
}

}  // namespace tprimat
