#include "launch/trainer_program.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/program_module.h"
#include "process/process.h"
#include "text/format.h"
#include "text/json_fields.h"

namespace tprimat::suite {
namespace {

constexpr double k_probe_seconds = 300.0;    // limit of a measurement that takes seconds, for a very busy machine
constexpr double k_question_seconds = 30.0;  // limit of a question that only loads libraries

constexpr const char* k_build_again =
    "rebuild both programs: cmake --build --preset release --target tprimat tprimat-train";

Error failed(std::string what, ExitStatus status = ExitStatus::missing_component) {
  return Error(Problem{std::move(what), k_trainer_name, status == ExitStatus::missing_component ? k_build_again : ""},
               status);
}

// The trainer prints its answer between lines of a single brace. Its libraries may print before and after it.
std::string take_answer(const std::string& output) {
  const size_t start = output.starts_with("{\n") ? 0 : output.find("\n{\n"), end = output.rfind("\n}\n");
  if (start == std::string::npos || end == std::string::npos || end < start)
    throw failed("printed no JSON answer; its first line is: " + output.substr(0, output.find('\n')));
  return output.substr(start, end + 3 - start);
}

// The trainer's answer to these arguments.
template <class T>
T ask_trainer(ProcessRunner& runner, std::vector<std::string> arguments, double seconds,
              const std::function<bool()>& is_stopped) {
  arguments.insert(arguments.begin(), require_trainer_program().string());
  arguments.insert(arguments.end(), {"--json", "--quiet"});
  std::optional<Captured> answer;
  try {
    answer = run_captured(runner, std::move(arguments), seconds, "", is_stopped);
  } catch (const Error& error) {
    throw failed(error.problems().front().what);
  }
  if (is_stopped && is_stopped()) throw failed("was stopped", ExitStatus::interrupted);
  if (!answer) throw failed("cannot be started");
  if (!answer->exit.success()) {
    const std::string said = answer->output.substr(0, answer->output.find('\n'));
    throw failed(to_string(answer->exit) + (said.empty() ? "" : ": " + said));
  }
  const std::string text = take_answer(answer->output);
  try {
    return from_json<T>(parse_json(text, k_trainer_name), k_trainer_name);
  } catch (const Error& error) {
    throw failed("its output cannot be parsed; it may be a different version: " + error.problems().front().what);
  }
}

bool is_rate(double value) { return std::isfinite(value) && value > 0; }

// Numbers of 16 bits may have been multiplied in fp32; formats without a probe have no peak.
void check_answer(const ProbeReport& report, const std::vector<Precision>& asked) {
  const auto has_peak = [&](Precision precision) {
    const auto format = parse_enum<ProductFormat>(enum_name(precision));
    return !format || report.find_peak(*format) != nullptr || report.find_peak(ProductFormat::fp32) != nullptr;
  };
  const bool whole = std::all_of(asked.begin(), asked.end(), has_peak) &&
                     std::all_of(report.matmul.begin(), report.matmul.end(),
                                 [](const GemmPeak& peak) { return is_rate(peak.flops_per_second); }) &&
                     is_rate(report.memory.rate(StreamKernel::triad).value_or(0));
  if (!whole) throw failed("its output lacks rates; it may be a different version");
}

MeasuredPeak read_peak(const GemmPeak& matmul, const MemoryBandwidth& memory) {
  MeasuredPeak measured{
      {fmt::format("measured:cpu:{}", enum_name(matmul.precision)), matmul.flops_per_second, matmul.how}, {}};
  measured.peak.memory_bytes_per_second = memory.rate(StreamKernel::triad);
  measured.peak.memory_source = "triad: " + memory.how;
  if (matmul.cpu_share < k_undisturbed_share)
    measured.warning = fmt::format(
        "other processes took {} of the CPU time during the matmul peak measurement: the peak is too low and MFU is "
        "overstated",
        format_percent(1.0 - matmul.cpu_share));
  return measured;
}

}  // namespace

std::optional<std::filesystem::path> find_trainer_program() { return find_program_module(k_trainer_name); }

std::filesystem::path require_trainer_program() {
  const auto path = find_trainer_program();
  if (path && ::access(path->c_str(), X_OK) == 0) return *path;
  if (path)
    throw Error(Problem{"the native trainer cannot be executed", path->string(),
                        "make it executable: chmod +x " + path->string()},
                ExitStatus::missing_component);
  throw Error(Problem{"the native trainer is neither beside this program nor in ../lib/tprimat", k_trainer_name,
                      "copy tprimat-train there, or link to tprimat instead of copying it; to build it: cmake --build "
                      "--preset release --target tprimat-train"},
              ExitStatus::missing_component);
}

ProbeReport probe_processor(ProcessRunner& runner, const std::vector<Precision>& precisions, int64_t threads,
                            const std::function<bool()>& is_stopped) {
  std::vector<std::string> names;
  for (const Precision each : precisions) names.emplace_back(enum_name(each));
  const ProbeReport report = ask_trainer<ProbeReport>(
      runner, {"probe", "--precision", join(names, ","), "--threads", fmt::format("{}", threads)}, k_probe_seconds,
      is_stopped);
  check_answer(report, precisions);
  return report;
}

std::optional<MeasuredPeak> measure_cpu_peak(ProcessRunner& runner, Precision precision, int64_t threads,
                                             const std::function<bool()>& is_stopped) {
  const ProbeReport report = probe_processor(runner, {precision}, threads, is_stopped);
  if (report.matmul.empty()) return std::nullopt;
  return read_peak(report.matmul.front(), report.memory);
}

TrainerLibraries read_trainer_libraries(ProcessRunner& runner, Platform platform,
                                        const std::function<bool()>& is_stopped) {
  return ask_trainer<TrainerLibraries>(runner, {"libraries", "--device", std::string(enum_name(platform))},
                                       k_question_seconds, is_stopped);
}

CommandInfo read_trainer_commands(ProcessRunner& runner) {
  return ask_trainer<CommandInfo>(runner, {"commands"}, k_question_seconds, {});
}

}  // namespace tprimat::suite
