#include "extract/common/layer_pattern.h"

#include "extract/common/nested_settings.h"
#include "extract/scan_text.h"
#include "text/words.h"

namespace tprimat::logs {
namespace {

constexpr size_t k_max_layers = 4096;
constexpr int k_max_depth = 8;

using Pattern = std::vector<bool>;

// sum = product, "+" sum; product = operand, "*" number; operand = "(" sum ")" or "[" digits "]".
class PatternParser {
 public:
  explicit PatternParser(std::string_view text) : rest_(text) {}

  std::optional<Pattern> parse() {
    auto pattern = parse_sum(0);
    skip_blanks();
    return pattern && rest_.empty() && !pattern->empty() ? pattern : std::nullopt;
  }

 private:
  void skip_blanks() {
    while (!rest_.empty() && (rest_.front() == ' ' || rest_.front() == '\t')) rest_.remove_prefix(1);
  }
  bool take(char wanted) {
    skip_blanks();
    return take_char(rest_, wanted);
  }

  std::optional<Pattern> parse_sum(int depth) {
    auto sum = parse_product(depth);
    while (sum && take('+')) {
      const auto next = parse_product(depth);
      if (!next || sum->size() + next->size() > k_max_layers) return std::nullopt;
      sum->insert(sum->end(), next->begin(), next->end());
    }
    return sum;
  }

  std::optional<Pattern> parse_product(int depth) {
    auto pattern = parse_operand(depth);
    if (!pattern || !take('*')) return pattern;
    skip_blanks();
    const auto times = take_whole(rest_, 4);
    if (!times || static_cast<size_t>(*times) * pattern->size() > k_max_layers) return std::nullopt;
    Pattern product;
    for (int64_t i = 0; i < *times; ++i) product.insert(product.end(), pattern->begin(), pattern->end());
    return product;
  }

  std::optional<Pattern> parse_operand(int depth) {
    if (depth > k_max_depth) return std::nullopt;
    if (take('(')) {
      auto inner = parse_sum(depth + 1);
      return take(')') ? inner : std::nullopt;
    }
    return take('[') ? parse_digits() : std::nullopt;
  }

  std::optional<Pattern> parse_digits() {
    Pattern pattern;
    while (!take(']')) {
      if (!pattern.empty() && !take(',')) return std::nullopt;
      skip_blanks();
      const auto value = take_whole(rest_, 1);
      if (!value || *value > 1 || pattern.size() == k_max_layers) return std::nullopt;
      pattern.push_back(*value == 1);
    }
    return pattern;
  }

  std::string_view rest_;
};

}  // namespace

std::optional<std::vector<bool>> parse_layer_pattern(std::string_view text) {
  return PatternParser(without_quotes(text)).parse();
}

std::optional<std::vector<std::string_view>> parse_word_list(std::string_view text) {
  text = without_quotes(text);
  if (!text.starts_with('[') || !text.ends_with(']')) return std::nullopt;
  std::vector<std::string_view> words;
  for (const std::string_view part : split(text.substr(1, text.size() - 2), ','))
    if (const std::string_view word = without_quotes(part); !word.empty()) words.push_back(word);
  return words;
}

}  // namespace tprimat::logs
