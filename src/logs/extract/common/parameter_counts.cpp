#include "extract/common/parameter_counts.h"

#include <cmath>

#include "extract/dialects/log_facts.h"
#include "extract/scan_text.h"
#include "text/words.h"

namespace tprimat::logs {
namespace {

constexpr double k_max_parameters = 1e15;

// "6.8 M", "8.0 B", "27,262,976"; a count with a letter is rounded.
Figure take_scaled_count(std::string_view& text, bool& rounded) {
  const Figure value = take_count(text);
  text = trim(text);
  rounded = false;
  const bool is_letter_alone = !text.empty() && (text.size() == 1 || !is_letter(text[1]));
  const size_t power = is_letter_alone ? std::string_view("KMBT").find(text.front()) : std::string_view::npos;
  if (power == std::string_view::npos || !value) return value;
  text.remove_prefix(1);
  rounded = true;
  return *value * std::pow(1000.0, static_cast<double>(power + 1));
}

}  // namespace

// The count behind the label ("trainable params: 6,815,744", "trainable parameters = 5"), or before it in a table
// ("6.8 M Trainable params").
std::optional<ParameterCounts::Count> ParameterCounts::count_at(std::string_view text, size_t label) {
  std::string_view after = text.substr(label);
  while (!after.empty() && (is_letter(after.front()) || after.front() == ' ' || after.front() == '-'))
    after.remove_prefix(1);
  Count count;
  Figure value;
  if (take_char(after, ':') || take_char(after, '=')) {
    value = take_scaled_count(after, count.rounded);
  } else if (after.empty()) {
    std::string_view before = trim(text.substr(0, label));
    value = take_scaled_count(before, count.rounded);
    count.in_table = true;
    if (!before.empty()) return std::nullopt;
  }
  if (!value.finite() || *value < 0 || *value > k_max_parameters) return std::nullopt;
  count.value = std::llround(*value);
  return count;
}

void ParameterCounts::read(std::string_view text) {
  for (const std::string_view label : {"on-trainable param", "rainable param"}) {
    const size_t at = text.find(label);
    if (at == std::string_view::npos || at == 0) continue;
    const size_t begin = text.rfind(' ', at);
    keep_first(label.front() == 'o' ? frozen_ : trainable_,
               count_at(text, begin == std::string_view::npos ? 0 : begin + 1));
    if (label.front() == 'o') return;
  }
  for (const std::string_view label : {"all params", "Total params", "Total parameters"})
    if (const size_t at = text.find(label); at != std::string_view::npos) keep_first(all_, count_at(text, at));
  if (contains(text, "rainable parameters = "))
    if (const auto all = text_between(text, " of ", " ("))
      keep_first(all_, count_at(std::string(": ") + std::string(*all), 0));
}

void ParameterCounts::finish(LogBuilder& log) const {
  LoggedFacts& facts = log.facts();
  if (!facts.parameters && all_ && all_->value > 0 && !all_->in_table) facts.parameters = all_->value;
  if (!trainable_ || trainable_->value == 0) return;
  if (!facts.parameters && frozen_ && !trainable_->in_table) facts.parameters = trainable_->value + frozen_->value;
  facts.trainable_parameters = trainable_->value;
  if (frozen_) facts.frozen_parameters = frozen_->value;
  if (!frozen_ && all_ && all_->value >= trainable_->value) facts.frozen_parameters = all_->value - trainable_->value;
  if (trainable_->rounded && facts.frozen_parameters.value_or(0) > 0)
    log.note("the count of trainable parameters is rounded in the log");
}

}  // namespace tprimat::logs
