#include <gtest/gtest.h>

#include <span>
#include <tuple>

#include "unit/archive/mutations.h"

namespace tprimat::results {
namespace {

// Where the figures of a log's lines stand, by their facts.
struct PrintedFigure {
  const char *fact, *label;
};
constexpr PrintedFigure k_own_log[] = {{"step", "iteration   "},
                                       {"max_steps (first line)", "/     "},
                                       {"max_steps (other lines)", "/     "},
                                       {"samples_seen", "samples: "},
                                       {"time_seconds", "(ms): "},
                                       {"tokens_per_second", "second: "},
                                       {"learning_rate", "rate: "},
                                       {"global_batch_size", "size: "},
                                       {"loss", "lm loss: "},
                                       {"loss_scale", "scale: "},
                                       {"grad_norm", "norm: "},
                                       {"parameters", "parameters "},
                                       {"threads", "threads "},
                                       {"allocated", "allocated "},
                                       {"validation_loss", "loss value: "},
                                       {"validation_perplexity", "loss PPL: "}};
constexpr PrintedFigure k_megatron_log[] = {{"step", "iteration   "},
                                            {"samples_seen", "samples: "},
                                            {"time_seconds", "(ms): "},
                                            {"tflops_per_gpu", "GPU): "},
                                            {"learning_rate", "rate: "},
                                            {"loss", "lm loss: "},
                                            {"loss_scale", "scale: "},
                                            {"grad_norm", "norm: "},
                                            {"settings", "seq_length ...................................... "}};

// The k-th figure behind the label, doubled.
std::string double_figure(std::string log, const std::string& label, int k) {
  size_t at = 0;
  for (int i = 0; i <= k && at != std::string::npos; ++i) at = log.find(label, at + 1);
  if (at == std::string::npos) at = log.find(label);  // it comes once
  const size_t begin = log.find_first_not_of(' ', at + label.size());
  const size_t end = log.find_first_not_of("0123456789.E+-", begin);
  const std::string figure = log.substr(begin, end - begin);
  const bool is_whole = figure.find('.') == std::string::npos;
  const double doubled = 2 * std::stod(figure);
  return log.replace(begin, end - begin, is_whole ? fmt::format("{:.0f}", doubled) : fmt::format("{:.6E}", doubled));
}

void change_log(const Files& files, const char* name, std::span<const PrintedFigure> figures, Census& census) {
  for (const PrintedFigure& figure : figures)
    for (const int k : {0, 1, 6, 11, 20}) {
      const std::string fact = figure.fact;
      if ((fact.ends_with("(first line)") && k > 0) || (fact.ends_with("(other lines)") && k == 0)) continue;
      Files changed = files;
      changed[name] = double_figure(files.at(name), figure.label, k);
      ASSERT_NE(changed[name], files.at(name)) << figure.label;
      census.count({fact, fact, fmt::format("figure {}", k), "", {}}, is_caught(seal_in_memory(changed)));
    }
}

TEST(Mutations, OfALogOfOurTrainer) {
  Census census("log of our trainer");
  change_log(sealed_run(), k_run_log, k_own_log, census);
  for (const auto& [fact, from, to] :
       {std::tuple{"precision", "precision fp16", "precision bf16"}, {"model", "model tiny", "model tinier"}}) {
    Files changed = sealed_run();
    changed[k_run_log].replace(changed[k_run_log].find(from), std::string(from).size(), to);
    census.count({fact, fact, to, "", {}}, is_caught(seal_in_memory(changed)));
  }
}

TEST(Mutations, OfALogThatWasExtracted) {
  Census census("log of another framework");
  change_log(sealed_extraction(), k_other_log, k_megatron_log, census);
}

}  // namespace
}  // namespace tprimat::results
