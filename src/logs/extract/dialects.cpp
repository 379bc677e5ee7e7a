#include "extract/dialects.h"

#include <fmt/format.h>

#include "base/error.h"
#include "extract/scan_text.h"
#include "text/format.h"

namespace tprimat::logs {

// Each is defined in dialects/<id>.cpp; dialects with a common reader share a file.
Dialect composer_dialect(), csv_dialect(), deepspeed_dialect(), deepspeed_rlhf_dialect(), gpt_neox_dialect(),
    hf_trainer_dialect(), litgpt_dialect(), llama_factory_dialect(), nanogpt_dialect(), llmc_dialect(),
    llmc_main_dialect(), megatron_bridge_dialect(), megatron_deepspeed_dialect(), megatron_dialect(), mlperf_dialect(),
    modded_nanogpt_dialect(), nanotron_dialect(), native_dialect(), nemo1_dialect(), nemo2_dialect(),
    picotron_dialect(), primus_dialect(), primus_torchtitan_dialect(), result_dialect(), steps_dialect(),
    tfevents_dialect(), torchtitan_dialect(), trainer_state_dialect();

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
      nanogpt_dialect(),
      llama_factory_dialect(),
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
      fmt::format("there is no log format '{}'", printable(id)), "--format",
      (near.empty() ? "" : fmt::format("did you mean '{}'? ", near)) + "`tprimat extract --list-formats` lists all"});
}

namespace {

struct Kind {
  bool (*fits)(std::string_view head);
  std::string_view description;
};

constexpr Kind k_kinds[] = {
    {[](std::string_view head) { return head.starts_with("PK\x03\x04"); },
     "a zip container (.xlsx, .pt, .npz): `tprimat profile --summarise` reads performance reports in .xlsx"},
    {[](std::string_view head) { return contains(head, "\"traceEvents\"") || contains(head, "\"deviceProperties\""); },
     "a Chrome trace: `tprimat profile --summarise` reads it"},
    {[](std::string_view head) { return head.starts_with("\xff\xfe") || head.starts_with("\xfe\xff"); },
     "text in UTF-16: convert it with `iconv -f utf-16 -t utf-8`"},
    {[](std::string_view head) { return head.starts_with("MMIDIDX"); },
     "the index of a Megatron dataset: `tprimat data info` reads it"},
    {[](std::string_view head) { return contains(head, "ROCm System Management Interface"); },
     "telemetry of rocm-smi: give it with --telemetry, next to the log"},
    {[](std::string_view head) { return head.starts_with("# gpu") || head.starts_with("#Date"); },
     "telemetry of nvidia-smi dmon: give it with --telemetry, next to the log"},
    {[](std::string_view head) { return contains(head.substr(0, 400), "power.draw"); },
     "telemetry of nvidia-smi: give it with --telemetry, next to the log"},
    {[](std::string_view head) { return head.starts_with("GPU  ") && contains(head.substr(0, 400), "VIOL"); },
     "telemetry of amd-smi: give it with --telemetry, next to the log"},
    {[](std::string_view head) { return head.starts_with("GPU  ") && contains(head.substr(0, 400), "POWER"); },
     "telemetry of amd-smi: give it with --telemetry, next to the log"},
    {[](std::string_view head) { return contains(head, "\"card0\"") || contains(head, "\"socket_power\""); },
     "telemetry of an AMD tool: give it with --telemetry, next to the log"},
    {[](std::string_view head) {
       return head.starts_with(
           "\x7f"
           "ELF");
     },
     "a program"},
    {[](std::string_view head) { return head.starts_with("\x89PNG"); }, "an image"},
};

// Zero bytes do not occur in text.
bool is_binary(std::string_view head) { return head.substr(0, 4096).find('\0') != std::string_view::npos; }

}  // namespace

std::string describe_other_kind(std::string_view head) {
  for (const Kind& kind : k_kinds)
    if (kind.fits(head)) return std::string(kind.description);
  return is_binary(head) ? "binary data of an unknown kind" : "";
}

}  // namespace tprimat::logs
