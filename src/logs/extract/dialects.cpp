#include "extract/dialects.h"

#include <fmt/format.h>

#include "base/error.h"
#include "extract/common/readers.h"
#include "text/format.h"

namespace tprimat::logs {

// Each is defined in dialects/<id>.cpp, except the documents and common readers that say otherwise.
Dialect composer_dialect(), csv_dialect(), deepspeed_dialect(), deepspeed_rlhf_dialect(), gpt_neox_dialect(),
    hf_trainer_dialect(), litgpt_dialect(), llmc_dialect(), llmc_main_dialect(), megatron_bridge_dialect(),
    megatron_deepspeed_dialect(), megatron_dialect(), mlperf_dialect(), modded_nanogpt_dialect(), nanotron_dialect(),
    native_dialect(), nemo1_dialect(), nemo2_dialect(), picotron_dialect(), primus_dialect(),
    primus_torchtitan_dialect(), result_dialect(), steps_dialect(), tfevents_dialect(), torchtitan_dialect(),
    trainer_state_dialect();

const std::vector<Dialect>& dialects() {
  static const std::vector<Dialect> list = {
      native_dialect(),
      megatron_dialect(),
      megatron_deepspeed_dialect(),
      gpt_neox_dialect(),
      primus_dialect(),
      megatron_bridge_dialect(),
      nemo2_dialect(),
      nemo1_dialect(),
      deepspeed_dialect(),
      deepspeed_rlhf_dialect(),
      hf_trainer_dialect(),
      torchtitan_dialect(),
      primus_torchtitan_dialect(),
      nanotron_dialect(),
      picotron_dialect(),
      composer_dialect(),
      litgpt_dialect(),
      llmc_dialect(),
      llmc_main_dialect(),
      modded_nanogpt_dialect(),
      mlperf_dialect(),
      steps_dialect(),
      trainer_state_dialect(),
      tfevents_dialect(),
      csv_dialect(),
      result_dialect(),
  };
  return list;
}

const std::vector<Dialect>& common_readers() {
  static const std::vector<Dialect> list = {failures_reader(), pauses_reader(), settings_reader(),
                                            machine_facts_reader()};
  return list;
}

const Dialect& find_dialect(std::string_view id) {
  std::vector<std::string> names;
  for (const Dialect& dialect : dialects()) {
    if (dialect.id == id) return dialect;
    names.emplace_back(dialect.id);
  }
  const std::string near = nearest_word(id, names);
  throw Error(Problem{
      fmt::format("no log format is called '{}'", printable(id)), "--format",
      (near.empty() ? "" : fmt::format("did you mean '{}'? ", near)) + "`tprimat extract --list-formats` shows all"});
}

}  // namespace tprimat::logs
