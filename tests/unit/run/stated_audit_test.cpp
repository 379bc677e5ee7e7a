// What a framework made of the settings that its plan states, by a log as Primus' back end megatron_bridge writes it.
#include "run/stated_audit.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "extract/read_log.h"

namespace tprimat::suite {
namespace {

std::string primus_line(const std::string& text) {
  return "[20260822 10:00:00][rank-0/8][INFO]     [----module_utils.py:227] : " + text + "\n";
}

const std::string k_rule(80, '-');

// The table of what Primus passes on, before Megatron-Bridge's own last changes.
std::string passed_table(const std::string& recompute, const std::string& beta2) {
  std::string text = primus_line(k_rule) + primus_line("ConfigContainer: (8 parameters)");
  for (const std::string& row :
       {std::string("model.activation_func       : <function silu at 0x7f00> (function)"),
        std::string("model.attention_backend     : AttnBackend.auto (AttnBackend)"),
        std::string("model.bf16                  : False (bool)"), "model.recompute_granularity : " + recompute,
        std::string("model.window_size           : [511, 0] (list)"), "optimizer.adam_beta2         : " + beta2,
        std::string("optimizer.lr                : 0.0003 (float)"),
        std::string("train.train_iters           : 50 (int)")})
    text += primus_line("  " + row);
  return text + primus_line(k_rule);
}

// A message of several lines, of which only the first has a prefix.
std::string task_configuration(const std::string& steps) {
  return primus_line("------- Task Configuration -------") + primus_line("model:") +
         "  activation_func:\n    _call_: false\n    _target_: torch.nn.functional.silu\n"
         "  attention_backend:\n    _args_:\n    - 5\n    _call_: true\n    _target_: megatron.core.AttnBackend\n"
         "  bf16: true\ntrain:\n  train_iters: " +
         steps + "\n\n" + primus_line("----------------------------------");
}

const std::vector<StatedSetting> k_stated = {
    {"model.activation_func", "model.activation_func", "silu"},
    {"model.attention_backend", "model.attention_backend", "auto"},
    {"model.recompute_granularity", "recompute", "full"},
    {"model.window_size", "model.window_size", "[511,0]"},
    {"model.num_moe_experts", "model.num_moe_experts", "null"},
    {"optimizer.adam_beta2", "beta2", "0.95"},
    {"optimizer.lr", "learning_rate", "0.0003"},
    {"train.train_iters", "steps", "50"},
};

StatedAudit audit(const std::string& text) { return audit_stated(k_stated, logs::read_log_text(text, {}).log); }

std::string show(const StatedAudit& audit) {
  std::string text;
  for (const AuditEntry& each : audit.differences)
    text += each.key + ": " + *each.asked + " -> " + each.effective + "\n";
  for (const std::string& each : audit.warnings) text += each + "\n";
  return text;
}

TEST(StatedAudit, WhatIsAsStatedIsNoDifference) {
  const StatedAudit found = audit(passed_table("full (str)", "0.95 (float)") + task_configuration("50"));
  EXPECT_EQ(show(found), "");
}

TEST(StatedAudit, ADroppedAndAMistypedSettingAreFound) {
  const StatedAudit found = audit(
      primus_line("⚠️  Retry 1: Removing invalid parameter 'recompute_granularity' (63 params remaining) "
                  "error_msg: got an unexpected keyword argument") +
      primus_line("  ⚠️  Skipping config_container.model: type mismatch (target=LlamaModelProvider, source=str)") +
      primus_line("  ⚠️  Skipping config_container.optimizer.adam_beta2: type mismatch (target=float, source=str)") +
      passed_table("None (NoneType)", "0.999 (float)") + task_configuration("50"));
  EXPECT_EQ(show(found),
            "recompute: full -> none\nbeta2: 0.95 -> 0.999\n"
            "the framework left out the setting model.recompute_granularity: its recipe does not take it\n"
            "the framework left out the setting optimizer.adam_beta2: it has the type float, and the value str\n");
}

TEST(StatedAudit, WhatMegatronBridgeChangesLastCounts) {
  const StatedAudit found = audit(passed_table("full (str)", "0.95 (float)") + task_configuration("40"));
  EXPECT_EQ(show(found), "steps: 50 -> 40\n");
}

TEST(StatedAudit, ASettingThatTheConfigurationLacksIsADifference) {
  EXPECT_EQ(show(audit(passed_table("full (str)", "0.95 (float)"))), "");
  const StatedAudit found = audit(task_configuration("50"));
  EXPECT_EQ(found.differences.size(), 5u) << show(found);
  for (const AuditEntry& each : found.differences) EXPECT_EQ(each.effective, "not in its configuration") << each.key;
}

TEST(StatedAudit, ALogWithoutAConfigurationIsSaidToBeOne) {
  EXPECT_EQ(show(audit(primus_line("Training failed"))),
            "the log shows no configuration, so the settings in effect are not known\n");
  EXPECT_EQ(show(audit_stated({}, {})), "");
  const StatedAudit dropped = audit(primus_line("Removing invalid parameter 'lr' (1 params remaining)"));
  EXPECT_EQ(dropped.differences.at(0).effective, "left out");
}

}  // namespace
}  // namespace tprimat::suite
