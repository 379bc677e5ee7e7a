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
  UsualSettings settings;
  settings.program = row.at("program"), settings.source = row.at("source");
  settings.since = row.at("since") == "-" ? "" : row.at("since");
  CHECK(settings.since.empty() || release_number(settings.since) > 0);
  settings.models = split_words(row.at("model"), '|');
  settings.gpus = split_words(row.at("gpus"), '|');
  if (row.at("routing") != "*") {
    settings.routing = parse_enum<Routing>(row.at("routing"));
    CHECK(settings.routing.has_value());
  }
  for (const std::string& word : split_words(row.at("facts"), ' ')) {
    const auto [name, value] = split_setting(word);
    std::string text(value);
    std::ranges::replace(text, '+', ' ');
    settings.facts[std::string(name)] = text;
  }
  return settings;
}

bool admits(const std::vector<std::string>& words, std::string_view word) {
  return words.front() == "*" || std::ranges::find(words, word) != words.end();
}

bool is_about(const UsualSettings& settings, const SettingsQuestion& question) {
  const std::string gpu = fold_name(question.gpu);
  const bool part = settings.gpus.front() == "*" ||
                    std::ranges::any_of(settings.gpus, [&](const std::string& each) { return gpu.starts_with(each); });
  const int64_t release = release_number(question.release);
  return part && admits(settings.models, question.model) &&
         lower_case(question.framework.substr(0, 200)).starts_with(settings.program) &&
         (!settings.routing || settings.routing == question.routing) &&
         (release == 0 || release_number(settings.since) <= release);
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

const UsualSettings* find_usual_settings(const SettingsQuestion& question) {
  const UsualSettings* best = nullptr;
  for (const UsualSettings& each : usual_settings())
    if (is_about(each, question) && (best == nullptr || release_number(best->since) <= release_number(each.since)))
      best = &each;
  return best;
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
