#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "base/error.h"
#include "compare/gates.h"
#include "text/format.h"
#include "text/words.h"

namespace tprimat::results {
namespace {

// Walks over one gate from left to right.
class GateReader {
 public:
  explicit GateReader(const std::string& text) : text_(text) {}

  Gate read() {
    Gate gate{.text = text_};
    gate.metric = read_metric();
    gate.compare = read_operator();
    gate.threshold = read_number();
    skip_blanks();
    if (at_ < text_.size() && text_[at_] == '%') {
      ++at_;
      gate.relative = true;
      gate.threshold /= 100;
    }
    skip_blanks();
    if (at_ < text_.size()) fail(fmt::format("unexpected \"{}\"", rest()), "end after the number or its %");
    return gate;
  }

 private:
  [[noreturn]] void fail(const std::string& what, const std::string& hint) const {
    throw Error(Problem{what, fmt::format("--fail-if \"{}\", column {}", printable(text_), at_ + 1), hint});
  }
  std::string rest() const { return printable(text_.substr(at_, 40)); }
  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }

  const Metric* read_metric() {
    skip_blanks();
    size_t end = at_;
    while (end < text_.size() && (is_letter(text_[end]) || is_digit(text_[end]) || text_[end] == '_')) ++end;
    const std::string key = text_.substr(at_, end - at_);
    if (key.empty()) fail("a metric is missing", "write METRIC < -3%, e.g. tokens_per_second < -3%");
    const Metric* metric = find_metric(key);
    if (metric == nullptr) fail(fmt::format("unknown metric \"{}\"", key), suggest_metric(key));
    at_ = end;
    return metric;
  }

  GateOperator read_operator() {
    skip_blanks();
    for (const std::string_view name : {"<=", ">=", "<", ">"}) {
      if (text_.compare(at_, name.size(), name) != 0) continue;
      at_ += name.size();
      return *parse_enum<GateOperator>(name);
    }
    fail(at_ < text_.size() ? fmt::format("\"{}\" is not an operator", rest()) : "an operator is missing",
         "write one of <, <=, >, >=");
  }

  double read_number() {
    skip_blanks();
    const size_t sign = at_ < text_.size() && text_[at_] == '+' ? 1 : 0;  // which from_chars does not know
    double value = 0;
    const auto [end, error] = std::from_chars(text_.data() + at_ + sign, text_.data() + text_.size(), value);
    if (error != std::errc() || !std::isfinite(value))
      fail(at_ < text_.size() ? fmt::format("\"{}\" is not a number", rest()) : "a number is missing",
           "write the change that fails, e.g. -3% or 0.5");
    at_ = static_cast<size_t>(end - text_.data());
    return value;
  }

  const std::string& text_;
  size_t at_ = 0;
};

}  // namespace

Gate parse_gate(const std::string& text) { return GateReader(text).read(); }

std::vector<Gate> parse_gates(const std::vector<std::string>& texts) {
  std::vector<Gate> gates;
  std::vector<Problem> problems;
  for (const std::string& text : texts) {
    try {
      gates.push_back(parse_gate(text));
    } catch (const Error& error) {
      problems.insert(problems.end(), error.problems().begin(), error.problems().end());
    }
  }
  throw_if_any(std::move(problems));
  return gates;
}

}  // namespace tprimat::results
