#include <string>

#include "extract/dialect.h"
#include "extract/scan_text.h"

namespace tprimat::logs {
namespace {

class LlmcMainReader : public LogReader {
 public:
  // "s:99 trl:7.1450 lr:0.000086 norm:1.05", "s:250 tel:6.3097", "s:250 eval:0.2912"
  bool read_line(const LogLine& line, LogBuilder& log) override {
    std::string_view text = line.text;
    if (text.substr(0, 2) != "s:") return false;
    text.remove_prefix(2);
    const auto step = parse_whole(text.substr(0, text.find(' ')));
    if (!step || *step < 0) return false;
    if (const Figure loss = number_after(text, " trl:")) {
      add_step(line, *step, log, loss);
    } else if (const Figure test_loss = number_after(text, " tel:")) {
      add_evaluation(line, *step, log, test_loss);
    } else if (number_after(text, " eval:")) {
      add_evaluation(line, *step, log, {});
    }
    return false;
  }

  void finish(LogBuilder& log) override {
    if (log.log().records + evaluations_ == 0) return;
    log.note("main.log of llm.c counts steps from 0 and holds no times");
    if (log.log().records == 0) log.note("the log holds evaluations only, no training step");
  }

  double confidence(const ExtractedLog& log) const override { return log.records + evaluations_ > 0 ? 0.92 : 0; }

 private:
  static void add_step(const LogLine& line, int64_t step, LogBuilder& log, Figure loss) {
    ExtractedStep record = LogBuilder::start_step(line, step);
    record.loss = loss;
    record.learning_rate = number_after(line.text, " lr:");
    record.grad_norm = number_after(line.text, " norm:");
    log.add(record);
  }

  void add_evaluation(const LogLine& line, int64_t step, LogBuilder& log, Figure loss) {
    ++evaluations_;
    log.add_event({EventKind::evaluation, line.number, line.rank, step, {}, loss, std::string(line.text)});
  }

  int64_t evaluations_ = 0;
};

}  // namespace

Dialect llmc_main_dialect() {
  return {.id = "llmc_main",
          .title = "llm.c, main.log",
          .versions = "2024 to 2025, C and Python trainer",
          .fields = {{"step", "s:, from 0"},
                     {"loss", "trl:"},
                     {"learning_rate", "lr: (absent in the Python trainer's)"},
                     {"grad_norm", "norm: (absent in the Python trainer's)"}},
          .counts_from = 0,
          .anchors = {" trl:", " tel:", " eval:"},
          .make_reader = []() -> std::unique_ptr<LogReader> { return std::make_unique<LlmcMainReader>(); }};
}

}  // namespace tprimat::logs
