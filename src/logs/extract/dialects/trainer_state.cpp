#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/error.h"
#include "extract/dialect.h"
#include "extract/scan_text.h"
#include "text/json.h"

namespace tprimat::logs {
namespace {

bool is_trainer_state(std::string_view head) {
  const size_t start = head.find_first_not_of(" \t\r\n");
  return start != std::string_view::npos && head[start] == '{' && contains(head, "\"log_history\"");
}

Figure figure_of(const Json& record, std::string_view key) {
  const Json* found = record.find(key);
  if (found == nullptr) return {};
  if (found->is_number()) return found->get<double>();
  return found->is_string() ? parse_number(found->text()) : Figure();
}

std::optional<int64_t> whole_of(const Json& record, std::string_view key) {
  constexpr double k_max = 1e15;
  const Figure value = figure_of(record, key);
  if (!value.finite() || *value < 0 || *value > k_max) return std::nullopt;
  return static_cast<int64_t>(*value);
}

// The line of each record's "step", in the order of the document.
class LineFinder {
 public:
  explicit LineFinder(std::string_view text) : text_(text) {
    advance(std::min(text.find("\"log_history\""), text.size()));
  }
  int64_t next() {
    const size_t found = text_.find("\"step\"", at_);
    if (found != std::string_view::npos) advance(found + 1);
    return line_;
  }

 private:
  void advance(size_t to) {
    line_ += std::count(text_.begin() + static_cast<std::ptrdiff_t>(at_),
                        text_.begin() + static_cast<std::ptrdiff_t>(to), '\n');
    at_ = to;
  }
  std::string_view text_;
  size_t at_ = 0;
  int64_t line_ = 1;
};

class HistoryReader {
 public:
  HistoryReader(std::string_view text, LogBuilder& log) : lines_(text), log_(log) {}

  void read_record(const Json& record) {
    if (!record.is_object()) return;
    const auto step = whole_of(record, "step");
    LogLine line;
    line.number = record.contains("step") ? lines_.next() : 0;
    if (!step) return;
    if (record.contains("loss")) add_step(record, line, *step);
    if (record.contains("eval_loss") || record.contains("eval_runtime")) add_evaluation(record, line, *step);
    if (record.contains("train_runtime")) note_sum(record, *step);
  }

 private:
  void add_step(const Json& record, const LogLine& line, int64_t number) {
    ExtractedStep step = LogBuilder::start_step(line, number);
    step.loss = figure_of(record, "loss");
    step.grad_norm = figure_of(record, "grad_norm");
    step.learning_rate = figure_of(record, "learning_rate");
    step.tokens_seen = figure_of(record, "num_input_tokens_seen");
    if (!step.tokens_seen) step.tokens_seen = figure_of(record, "num_tokens");
    step.mean_of = static_cast<int32_t>(std::clamp<int64_t>(number - last_step_, 1, 1'000'000));
    last_step_ = number;
    log_.add(step);
  }

  void add_evaluation(const Json& record, const LogLine& line, int64_t step) {
    const Figure loss = figure_of(record, "eval_loss");
    log_.add_evaluation(line, step, loss, loss ? fmt::format("eval_loss {}", *loss) : "evaluation",
                        figure_of(record, "eval_runtime"));
  }

  void note_sum(const Json& record, int64_t steps) {
    const Figure seconds = figure_of(record, "train_runtime");
    if (!seconds.finite() || *seconds <= 0 || steps < 1) return;
    std::string text = fmt::format("the Trainer's own total: {} s for {} steps, {:.4g} s per step", *seconds, steps,
                                   *seconds / static_cast<double>(steps));
    if (const Figure rate = figure_of(record, "train_samples_per_second"); rate.finite())
      text += fmt::format(", {} samples/s", *rate);
    log_.note(text + ", start-up, evaluation and checkpoints included");
  }

  LineFinder lines_;
  LogBuilder& log_;
  int64_t last_step_ = 0;
};

void read_trainer_state(std::string_view whole, LogBuilder& log) {
  const auto quote = [](std::string_view word) { return fmt::format("\"{}\"", word); };
  const Json state = parse_json(replace_bare_words(whole, quote), "");
  const Json* history = state.find("log_history");
  if (history == nullptr || !history->is_array())
    throw Error(Problem{"is not a trainer state: it has no list \"log_history\"", "", ""});
  HistoryReader reader(whole, log);
  for (const Json& record : *history) reader.read_record(record);
  if (const auto steps = whole_of(state, "max_steps"); steps && *steps > 0) log.facts().max_steps = steps;
  for (const std::string_view key : {"logging_steps", "eval_steps", "save_steps", "num_train_epochs", "total_flos"})
    if (const Json* found = state.find(key); found != nullptr && !found->is_structured())
      log.set(std::string(key), print_json_line(*found));
  // Of one process, unlike DeepSpeed's setting of that name.
  if (const auto batch = whole_of(state, "train_batch_size"))
    log.set("train_batch_size_per_process", std::to_string(*batch));
  if (log.log().records > 0) log.note("a trainer state has no step times");
}

}  // namespace

Dialect trainer_state_dialect() {
  return {.id = "trainer_state",
          .title = "Hugging Face trainer_state.json",
          .versions = "Transformers 4 and 5",
          .framework = Framework::tran,
          .fields = {{"step", "step"},
                     {"loss", "loss, a mean since the record before"},
                     {"learning_rate", "learning_rate"},
                     {"grad_norm", "grad_norm"},
                     {"tokens_seen", "num_input_tokens_seen, num_tokens"},
                     {"mean_of", "derived: steps since the record before"}},
          .is_document = is_trainer_state,
          .read_document = read_trainer_state};
}

}  // namespace tprimat::logs
