#include "planner/published_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>
#include <tuple>

#include "base/error.h"
#include "planner/families.h"
#include "planner/machine.h"
#include "published/built_in_tables.h"
#include "spec/hardware_catalogue.h"
#include "spec/tsv_rows.h"
#include "text/choice.h"

namespace tprimat::planner {
namespace {

bool holds(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

using Passes = std::function<bool(const PublishedEntry&)>;

// A model that the catalogue knows stands for itself: "llama3_8b" is not "llama3.1_8b", however rows spell it.
Passes by_model(const std::string& wanted) {
  const std::string folded = fold_name(wanted);
  const auto known = find_counted_model(wanted);
  return [=](const PublishedEntry& entry) {
    if (holds(fold_name(entry.model), folded)) return true;
    const auto printed = find_counted_model(entry.model);
    if (!printed) return false;
    return known ? printed->spec.name == known->spec.name : holds(fold_name(printed->spec.name), folded);
  };
}

// "GB200", not "B200", of "DGX-GB200": the longest name of a part, without its variant, that occurs. Empty: none does.
std::string part_in(std::string_view folded) {
  std::string longest;
  for (const HardwareSpec& part : hardware_catalogue()) {
    const std::string name = fold_name(part.id.substr(0, part.id.find('-')));
    if (name.size() > longest.size() && holds(folded, name)) longest = name;
  }
  return longest;
}

Passes by_gpu(const std::string& wanted) {
  const std::string folded = fold_name(wanted), part = part_in(folded);
  std::vector<std::string> words;  // of the variant: "sxm", "80gb"
  for (const std::string& word : split_words(wanted, '-'))
    if (fold_name(word) != part) words.push_back(fold_name(word));
  return [=](const PublishedEntry& entry) {
    const std::string printed = fold_name(entry.gpu);
    if (part.empty()) return holds(printed, folded) && part_in(printed).empty();
    if (part_in(printed) != part) return false;
    const Machine* machine = find_printed_machine(entry.gpu);
    const std::string names = printed + ' ' + (machine != nullptr ? fold_name(machine->id) : "");
    return holds(printed, folded) || std::ranges::all_of(words, [&](const auto& word) { return holds(names, word); });
  };
}

std::string fold_precision(std::string_view text) {
  std::string folded = fold_name(text);
  for (const auto& [word, ours] : {std::pair{"bfloat", "bf"}, {"float", "fp"}})
    if (const size_t at = folded.find(word); at != std::string::npos)
      folded.replace(at, std::string_view(word).size(), ours);
  return folded;
}

Passes by_precision(const std::string& wanted) {
  return [folded = fold_precision(wanted)](const PublishedEntry& entry) {
    return holds(fold_precision(entry.precision), folded);
  };
}

Passes by_framework(const std::string& wanted) {
  return [folded = fold_name(wanted), family = find_family(wanted)](const PublishedEntry& entry) {
    return holds(fold_name(entry.framework), folded) ||
           (family != nullptr && find_printed_family(entry.framework) == family);
  };
}

Passes by_kind(const std::string& wanted) {
  return [name = enum_name(parse_choice<PublishedKind>(wanted, "--kind"))](const PublishedEntry& entry) {
    return entry.kind == name;
  };
}

struct Filter {
  const char* option;
  std::string PublishedFilter::*value;
  std::string PublishedEntry::*printed;
  Passes (*make)(const std::string& wanted);
};
constexpr Filter k_filters[] = {{"--model", &PublishedFilter::model, &PublishedEntry::model, by_model},
                                {"--gpu", &PublishedFilter::gpu, &PublishedEntry::gpu, by_gpu},
                                {"--precision", &PublishedFilter::precision, &PublishedEntry::precision, by_precision},
                                {"--framework", &PublishedFilter::framework, &PublishedEntry::framework, by_framework},
                                {"--kind", &PublishedFilter::kind, &PublishedEntry::kind, by_kind}};

[[noreturn]] void refuse_filter(const Filter& filter, const std::string& wanted,
                                const std::vector<PublishedEntry>& entries) {
  std::set<std::string> values;
  for (const PublishedEntry& entry : entries)
    if (!(entry.*filter.printed).empty()) values.insert(entry.*filter.printed);
  throw Error(Problem{fmt::format("no published result matches '{}'", printable(wanted.substr(0, 64))), filter.option,
                      suggest_word_or(wanted, {values.begin(), values.end()}, "see tprimat published list")});
}

void keep_matching(std::vector<PublishedEntry>& kept, const Filter& filter, const std::string& wanted,
                   const std::vector<PublishedEntry>& all) {
  const Passes passes = filter.make(wanted);
  if (fold_name(wanted).empty() || std::ranges::none_of(all, passes)) refuse_filter(filter, wanted, all);
  std::erase_if(kept, [&](const PublishedEntry& entry) { return !passes(entry); });
}

// Rows without the figure come last; before them those of proxies, whose speed is not that of their model.
void sort_by_figure(std::vector<PublishedEntry>& entries, std::optional<double> PublishedEntry::*figure) {
  std::ranges::stable_sort(entries, {}, [&](const PublishedEntry& entry) {
    const std::optional<double>& value = entry.*figure;
    return std::tuple(!value.has_value(), entry.proxy, -value.value_or(0));
  });
}

void sort_entries(std::vector<PublishedEntry>& entries, PublishedOrder order) {
  switch (order) {
    case PublishedOrder::table: return;
    case PublishedOrder::tokens: return sort_by_figure(entries, &PublishedEntry::tokens_per_second_per_gpu);
    case PublishedOrder::mfu: return sort_by_figure(entries, &PublishedEntry::mfu);
    case PublishedOrder::tflops: return sort_by_figure(entries, &PublishedEntry::tflops_per_gpu);
    case PublishedOrder::gpus:
      std::ranges::stable_sort(entries, {},
                               [](const PublishedEntry& e) { return std::pair(-e.gpus.value_or(0), e.proxy); });
      return;
    case PublishedOrder::model:
      std::ranges::stable_sort(entries, {},
                               [](const PublishedEntry& e) { return std::pair(fold_name(e.model), e.proxy); });
      return;
    case PublishedOrder::id: std::ranges::stable_sort(entries, {}, &PublishedEntry::id); return;
  }
}

}  // namespace

std::vector<PublishedEntry> list_published(const PublishedFilter& filter) {
  std::vector<PublishedEntry> all;
  for (const PublishedTable& table : built_in_tables())
    for (const PublishedRow& row : table.rows) all.push_back(read_published_entry(row, table.name));
  std::vector<PublishedEntry> kept = all;
  for (const Filter& each : k_filters)
    if (const std::string& wanted = filter.*each.value; !wanted.empty()) keep_matching(kept, each, wanted, all);
  sort_entries(kept, filter.order);
  return kept;
}

}  // namespace tprimat::planner
