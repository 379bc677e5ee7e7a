#include "run/model_identity.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "extract/logged_model.h"
#include "result/printed_settings.h"
#include "spec/model_catalogue.h"
#include "text/format.h"
#include "text/words.h"

namespace tprimat::suite {
namespace {

namespace fs = std::filesystem;

// "Llama 3.1 8B" -> "llama318b"
std::string squeeze(std::string_view text) {
  std::string letters = lower_case(text);
  std::erase_if(letters, [](char c) { return !is_alphanumeric(c); });
  return letters;
}

bool have_same_sizes(const ModelSpec& a, const ModelSpec& b) {
  return a.num_layers == b.num_layers && a.hidden_size == b.hidden_size && a.ffn_hidden_size == b.ffn_hidden_size &&
         a.num_attention_heads == b.num_attention_heads;
}

// "70b" of "-70b_bc": a size in a name, as a number of parameters.
std::optional<double> find_size(std::string_view text) {
  for (size_t begin = 0; begin < text.size(); ++begin) {
    if (!is_digit(text[begin]) || (begin > 0 && (is_alphanumeric(text[begin - 1]) || text[begin - 1] == '.'))) continue;
    size_t end = begin;
    while (end < text.size() && (is_digit(text[end]) || text[end] == '.')) ++end;
    const bool ends_word = end + 1 == text.size() || (end + 1 < text.size() && !is_alphanumeric(text[end + 1]));
    if (end == text.size() || !ends_word || (text[end] != 'b' && text[end] != 'm')) continue;
    if (const auto number = tprimat::parse_number<double>(text.substr(begin, end - begin)))
      return *number * (text[end] == 'b' ? 1e9 : 1e6);
  }
  return std::nullopt;
}

// Where the key stands in the text as a whole word; npos: nowhere.
size_t find_word(std::string_view text, std::string_view word) {
  for (size_t at = text.find(word); at != std::string_view::npos && !word.empty(); at = text.find(word, at + 1)) {
    const size_t end = at + word.size();
    if ((at == 0 || !is_alphanumeric(text[at - 1])) && (end == text.size() || !is_alphanumeric(text[end]))) return at;
  }
  return std::string_view::npos;
}

// What stands before a model's key in names of logs: words of these, a platform, a framework, a date.
bool is_usual_before_model(std::string_view word) {
  constexpr std::string_view k_usual[] = {"log",         "logs",  "mp",       "slurm",   "torchrun", "pretrain",
                                          "pretraining", "train", "training", "trainer", "finetune", "finetuning",
                                          "sft",         "run",   "job",      "exp",     "test",     "bench",
                                          "benchmark",   "meta",  "out",      "output",  "result",   "results"};
  return is_all_digits(word) || parse_enum<Framework>(word) || parse_enum<Platform>(word) ||
         std::ranges::find(k_usual, word) != std::end(k_usual);
}

// "tiny" of "tiny_llama" makes another model of it.
bool is_part_of_name(std::string_view before) {
  while (!before.empty() && !is_alphanumeric(before.back())) before.remove_suffix(1);
  size_t begin = before.size();
  while (begin > 0 && is_alphanumeric(before[begin - 1])) --begin;
  const std::string_view word = before.substr(begin);
  return !word.empty() && !is_usual_before_model(word);
}

// "3.1" of "Llama 3.1 8B", and of "_3.1_8b" behind a key; a date is none. Empty: there is no version.
std::string_view version_in(std::string_view text, bool at_begin) {
  constexpr size_t k_max_digits = 2;
  for (size_t begin = 0; begin < text.size(); ++begin) {
    if (!is_alphanumeric(text[begin])) continue;
    size_t end = begin;
    while (end < text.size() && (is_alphanumeric(text[end]) || (text[end] == '.' && end + 1 < text.size() &&
                                                                is_digit(text[end - 1]) && is_digit(text[end + 1]))))
      ++end;
    const std::string_view word = text.substr(begin, end - begin);
    const bool is_version = tprimat::parse_number<double>(word).has_value() && word.find('.') <= k_max_digits;
    const bool is_short = is_all_digits(word) && word.size() <= k_max_digits;
    if (is_version || is_short) return word;
    if (at_begin) return "";
    begin = end;
  }
  return "";
}

class ModelSearch {
 public:
  ModelSearch(const LoadedExperiment& configuration, const LogEvidence& evidence)
      : configuration_(configuration),
        evidence_(evidence),
        is_family_(is_built_in(configuration)),
        shape_(logs::read_logged_shape(evidence.stated.settings)) {
    for (const ModelEntry& entry : configuration.experiment.models)
      (is_family_ || contradictions(entry).empty() ? possible_ : excluded_).push_back(&entry);
  }

  ModelBelief find() {
    ModelBelief belief = by_log();
    if (evidence_.named.empty()) return belief.entry != nullptr || belief.is_contradicted ? belief : by_path();
    return by_person(belief);
  }

 private:
  std::string sizes() const {
    return fmt::format("its sizes ({} layers, hidden size {})", *shape_.num_layers, *shape_.hidden_size);
  }
  std::string place() const {
    return is_family_ ? "the built-in configuration (there is no config.yaml)" : configuration_.origin.place;
  }

  std::vector<std::string> contradictions(const ModelEntry& entry) const {
    std::vector<std::string> list = logs::list_contradictions(evidence_.result, entry.spec, evidence_.stated);
    const auto parameters = static_cast<double>(count_parameters(entry.spec).total());
    if (const auto trained = trained_parameters(); trained && list.empty() && is_other_count(*trained, parameters))
      list.push_back(fmt::format("{} trainable parameters, not {}", format_count(*trained), format_count(parameters)));
    return list;
  }

  // Of the whole model, where the log names nothing that freezes or splits it.
  std::optional<double> trained_parameters() const {
    const logs::LoggedFacts& facts = evidence_.stated.facts;
    const bool is_part = facts.frozen_parameters.value_or(0) > 0 || facts.tensor_parallel.value_or(1) > 1 ||
                         facts.pipeline_parallel.value_or(1) > 1 || find_adapters(evidence_.stated.settings);
    if (is_part || !facts.trainable_parameters || (shape_.num_layers && shape_.hidden_size)) return std::nullopt;
    return static_cast<double>(*facts.trainable_parameters);
  }

  // Half or less may be adapters, or the shard of a rank.
  static bool is_other_count(double trained, double parameters) {
    constexpr double k_half = 0.51, k_same = 0.99, k_padded = 1.05;
    return (trained > k_half * parameters && trained < k_same * parameters) || trained > k_padded * parameters;
  }

  ModelBelief refuse(const std::string& claim, const ModelEntry& entry) const {
    return {nullptr, fmt::format("{}, but the log states {}", claim, join(contradictions(entry), "; ")), true, true};
  }

  ModelBelief by_log() {
    if (shape_.num_layers && shape_.hidden_size) {
      if (ModelBelief belief = by_sizes(); belief.entry != nullptr || belief.is_contradicted) return belief;
    }
    return by_stated_name();
  }

  // The models of the configuration that the log's sizes fit: one is the answer, of several its name decides.
  ModelBelief by_sizes() {
    std::vector<const ModelEntry*> fitting;
    std::string known;  // to the catalogue
    for (const KnownModel& model : model_catalogue())
      if (fits(model.spec)) known = model.spec.name;
    for (const ModelEntry* entry : possible_)
      if (is_family_ ? known.starts_with(lower_case(entry->spec.name)) : fits(entry->spec)) fitting.push_back(entry);
    if (fitting.size() == 1) return {fitting.front(), sizes(), true};
    if (fitting.empty() && is_family_ && known.empty()) return {};
    if (fitting.empty())
      return {nullptr,
              fmt::format("{} match {}no model of {}", sizes(), known.empty() ? "" : known + ", but ", place()), true,
              true};
    possible_ = fitting;
    return {};
  }

  bool fits(const ModelSpec& model) const {
    const auto agrees = [](const std::optional<int64_t>& stated, int64_t size) { return !stated || *stated == size; };
    return *shape_.num_layers == model.num_layers && *shape_.hidden_size == model.hidden_size &&
           agrees(shape_.ffn_hidden_size, model.ffn_hidden_size) &&
           agrees(shape_.num_attention_heads, model.num_attention_heads);
  }

  ModelBelief by_stated_name() {
    const std::string name = evidence_.stated.facts.model.value_or("");
    if (name.empty()) return {};
    const auto catalogued = find_model(name);
    std::vector<const ModelEntry*> named;
    for (const ModelEntry* entry : possible_)
      if (names(name, catalogued, *entry)) named.push_back(entry);
    if (named.size() == 1) return {named.front(), fmt::format("the log names {}", name), true};
    if (named.size() > 1) possible_ = named;  // the path may decide
    if (named.size() > 1) return {};
    for (const ModelEntry* entry : excluded_)
      if (names(name, catalogued, *entry))
        return refuse(fmt::format("the log names {}, as {}", name, entry->spec.name), *entry);
    if (!catalogued) return {};
    return {nullptr, fmt::format("the log names {}, which is no model of {}", name, place()), true, true};
  }

  bool names(const std::string& name, const std::optional<ModelSpec>& catalogued, const ModelEntry& entry) const {
    const std::string word = squeeze(name);
    if (is_family_) return word.starts_with(squeeze(entry.spec.name));
    if (catalogued && have_same_sizes(*catalogued, entry.spec)) return true;
    return word == squeeze(entry.spec.name) || word == squeeze(entry.given_name) ||
           word == squeeze(entry.spec.full_name);
  }

  ModelBelief by_person(const ModelBelief& logged) const {
    const ModelEntry* entry = configuration_.experiment.find_model_entry(evidence_.named);
    if (entry == nullptr) return {};
    if (logged.entry == entry) return logged;
    const std::string claim = fmt::format("{} names it for {}", evidence_.named_by, evidence_.named);
    if (logged.is_contradicted) return {nullptr, fmt::format("{}, but {}", claim, logged.because), true, true};
    if (logged.entry != nullptr && logged.is_logged)
      return {nullptr, fmt::format("{}, but it is of {}: {}", claim, logged.entry->spec.name, logged.because), true,
              true};
    if (std::ranges::find(excluded_, entry) != excluded_.end()) return refuse(claim, *entry);
    return {entry, claim, false, false, evidence_.named_by};
  }

  // The file's own name first, then the folders that hold it.
  ModelBelief by_path() const {
    std::vector<std::string> parts;
    for (const fs::path& part : evidence_.path) parts.push_back(part.string());
    std::ranges::reverse(parts);
    for (const std::string& part : parts) {
      if (const ModelEntry* entry = named_by(part, possible_))
        return {entry, fmt::format("its path names it: {}", part), false, false, "the log's path"};
      if (const ModelEntry* entry = named_by(part, excluded_))
        return refuse(fmt::format("its path names {}", entry->spec.name), *entry);
    }
    return {nullptr, "neither the log nor its path states its model"};
  }

  // The entry that the text names; of several the one whose name holds those of the others, else none.
  const ModelEntry* named_by(const std::string& text, const std::vector<const ModelEntry*>& entries) const {
    const ModelEntry* best = nullptr;
    std::vector<std::string> names;
    std::string longest;
    for (const ModelEntry* entry : entries) {
      const std::string name = name_in(text, *entry);
      if (name.empty()) continue;
      if (name.size() > longest.size()) longest = name, best = entry;
      names.push_back(name);
    }
    const bool is_held =
        std::ranges::all_of(names, [&](const std::string& name) { return longest.find(name) != std::string::npos; });
    return is_held && std::ranges::count(names, longest) == 1 && !names_another(text, longest) ? best : nullptr;
  }

  // Whether the key of a model stands in the text outside the name that counts: qwen_llama.log.
  bool names_another(const std::string& text, const std::string& counted) const {
    return std::ranges::any_of(configuration_.experiment.models, [&](const ModelEntry& each) {
      return find_word(lower_case(text), lower_case(each.spec.name)) != std::string::npos &&
             counted.find(squeeze(each.spec.name)) == std::string::npos;
    });
  }

  // Which of the entry's names stands in the text, squeezed; empty: none.
  std::string name_in(const std::string& text, const ModelEntry& entry) const {
    constexpr size_t k_min_letters = 4;
    const std::string letters = squeeze(text);
    if (!is_family_)
      for (const std::string& name : {squeeze(entry.given_name), squeeze(entry.spec.full_name)})
        if (name.size() >= k_min_letters && name != squeeze(entry.spec.name) && letters.find(name) != std::string::npos)
          return name;
    const std::string lower = lower_case(text), key = lower_case(entry.spec.name);
    const size_t at = find_word(lower, key);
    if (at == std::string::npos) return "";
    const std::string_view before = std::string_view(lower).substr(0, at);
    return is_family_ || may_be_of(entry, before, std::string_view(lower).substr(at + key.size())) ? squeeze(key) : "";
  }

  // Whether what stands around the key leaves it the name of this model: no word before it, no other version or size.
  static bool may_be_of(const ModelEntry& entry, std::string_view before, std::string_view behind) {
    constexpr double k_rounding = 1.25;  // an "8B" may have 7.6 to 8.5 billion
    if (is_part_of_name(before)) return false;
    const std::string_view version = version_in(behind, true), own = version_in(entry.spec.full_name, false);
    if (!version.empty() && !own.empty() && version != own) return false;
    const auto size = find_size(behind);
    const double ratio = size ? *size / static_cast<double>(count_parameters(entry.spec).total()) : 1;
    return ratio < k_rounding && ratio > 1 / k_rounding;
  }

  const LoadedExperiment& configuration_;
  const LogEvidence& evidence_;
  bool is_family_;
  logs::LoggedShape shape_;
  std::vector<const ModelEntry*> possible_, excluded_;  // excluded: the log's sizes contradict them
};

// Letters and digits that are no part of a date, a time or an attempt.
bool is_telling(std::string_view word) {
  constexpr std::string_view k_usual[] = {"log", "pretrain", "train", "training"};
  return !word.empty() && !is_all_digits(word) && !word.starts_with("attempt") && !parse_enum<Framework>(word) &&
         !parse_enum<Platform>(word) && std::ranges::find(k_usual, word) == std::end(k_usual);
}

}  // namespace

bool is_built_in(const LoadedExperiment& configuration) {
  return configuration.origin.provenance == Provenance::built_in;
}

ModelBelief identify_model(const LoadedExperiment& configuration, const LogEvidence& evidence) {
  return ModelSearch(configuration, evidence).find();
}

std::string name_behind_model(const fs::path& file, const ModelEntry& entry) {
  std::string name = lower_case(file.filename().string());
  for (const std::string_view ending : {".gz", ".zst", ".log", ".txt", ".out"})
    if (name.ends_with(ending)) name.erase(name.size() - ending.size());
  const size_t at = find_word(name, lower_case(entry.spec.name));
  if (at == std::string::npos) return "";
  std::string behind = name.substr(at + entry.spec.name.size()), words;
  std::ranges::replace_if(
      behind, [](char c) { return !is_alphanumeric(c); }, '_');
  for (const std::string_view word : split(behind, '_'))
    if (is_telling(word)) words += (words.empty() ? "" : "_") + std::string(word);
  return words;
}

}  // namespace tprimat::suite
