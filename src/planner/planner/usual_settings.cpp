#include "planner/usual_settings.h"

#include <algorithm>

#include "base/check.h"
#include "spec/tsv_rows.h"
#include "text/enum_names.h"
#include "text/words.h"

namespace tprimat::planner {
namespace embedded {
extern const std::string_view usual_settings_tsv;
}

namespace {

UsualSettings parse_settings(const TsvRow& row) {
  UsualSettings recipe;
  recipe.program = row.at("program"), recipe.source = row.at("source");
  recipe.since = row.at("since") == "-" ? "" : row.at("since");
  CHECK(recipe.since.empty() || release_number(recipe.since) > 0);
  recipe.models = split_words(row.at("model"), '|');
  recipe.gpus = split_words(row.at("gpus"), '|');
  recipe.precisions = split_words(row.at("precisions"), '|');
  if (row.at("routing") != "*") {
    recipe.routing = parse_enum<Routing>(row.at("routing"));
    CHECK(recipe.routing.has_value());
  }
  for (const std::string& word : split_words(row.at("facts"), ' ')) {
    const auto [name, value] = split_setting(word);
    std::string text(value);
    std::ranges::replace(text, '+', ' ');
    recipe.facts[std::string(name)] = text;
  }
  return recipe;
}

bool admits(const std::vector<std::string>& words, std::string_view word) {
  return words.front() == "*" || std::ranges::find(words, word) != words.end();
}

bool is_about(const UsualSettings& recipe, const SettingsQuestion& question) {
  const std::string gpu = fold_name(question.gpu);
  const bool part = recipe.gpus.front() == "*" ||
                    std::ranges::any_of(recipe.gpus, [&](const std::string& each) { return gpu.starts_with(each); });
  const int64_t release = release_number(question.release);
  return part && admits(recipe.models, question.model) &&
         lower_case(question.framework.substr(0, 200)).starts_with(recipe.program) &&
         (!recipe.routing || recipe.routing == question.routing) &&
         (release == 0 || release_number(recipe.since) <= release);
}

}  // namespace

std::string_view UsualSettings::fact(std::string_view name) const {
  const auto found = facts.find(name);
  return found == facts.end() ? std::string_view() : std::string_view(found->second);
}

std::optional<int64_t> UsualSettings::count(std::string_view name) const {
  const std::string_view text = fact(name);
  return text.empty() ? std::nullopt : std::optional<int64_t>(static_cast<int64_t>(parse_figure(text)));
}

const std::vector<UsualSettings>& usual_settings() {
  static const std::vector<UsualSettings> loaded = [] {
    std::vector<UsualSettings> all;
    for (const TsvRow& row : parse_tsv_rows(embedded::usual_settings_tsv)) all.push_back(parse_settings(row));
    return all;
  }();
  return loaded;
}

// "MXFP8" of a table may be what a recipe calls FP8, and a table may print no precision: then the newest recipe of
// another one.
const UsualSettings* find_usual_settings(const SettingsQuestion& question) {
  const UsualSettings *exact = nullptr, *close = nullptr;
  const auto take = [](const UsualSettings*& best, const UsualSettings& each) {
    if (best == nullptr || release_number(best->since) <= release_number(each.since)) best = &each;
  };
  for (const UsualSettings& each : usual_settings()) {
    if (!is_about(each, question)) continue;
    take(close, each);
    if (admits(each.precisions, question.precision)) take(exact, each);
  }
  return exact != nullptr ? exact : close;
}

int64_t release_number(std::string_view release) {
  int64_t number = 0;
  constexpr size_t k_parts = 3;
  const auto parts = split_words(release.substr(0, 20), '.');
  if (parts.size() < 2 || parts.size() > k_parts) return 0;
  for (size_t i = 0; i < k_parts; ++i) {
    const auto part = i < parts.size() ? parse_number<int64_t>(parts[i]) : std::optional<int64_t>(0);
    if (!part || *part < 0 || *part > 99) return 0;
    number = 100 * number + *part;
  }
  return number;
}

}  // namespace tprimat::planner
