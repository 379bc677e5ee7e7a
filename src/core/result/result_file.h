#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/files.h"
#include "result/run_result.h"
#include "text/json.h"

namespace tprimat {

Json run_result_to_json(const RunResult& result);

// Accepts older files too: `file_name` ("train_amd_prim_qwen.json") replaces facts that they lack, and each assumption
// becomes a warning. A result without statistics is summarised from its raw series. Throws Error if it is not a result.
RunResult run_result_from_json(const Json& json, const std::string& file_name);

// The file is there whole or not at all. Throws Error (work_failed) when it cannot be written.
void write_run_result(const std::filesystem::path& path, const RunResult& result,
                      Survives survives = Survives::power_loss);

// Throws Error that names the path if the file is unreadable, not JSON or not a result.
RunResult load_run_result(const std::filesystem::path& path);

// The same for the text of that file.
RunResult read_run_result(const std::string& text, const std::filesystem::path& path);

// Reads a result of this schema version that has step times but no statistics, as our Python callbacks write it, and
// derives its figures. Nothing for every other file.
std::optional<RunResult> complete_plain_result(const std::filesystem::path& path);

// "train_amd_prim_qwen.json"; parts that were not requested (strategy, dataset, run number) are left out.
struct ResultNaming {
  std::string strategy, dataset;
  int64_t run = 0;  // 1 is the first of several; 0: there is only one
};
std::string result_file_name(const RunResult& result, const ResultNaming& naming);

// The result file as JSON Schema, draft 2020-12, made from the field lists. schema/result.schema.json holds this text.
std::string print_schema();

// A result of this schema version as it was written, neither checked nor derived. Nothing for files that need the
// ordinary reader: older and newer versions, damaged files, values of a wrong type.
std::optional<RunResult> read_current_result(std::string_view text);

// The note on an older file that states no model, after "older file: ".
inline constexpr char k_no_shape_note[] = "shape and precision of the model not given: no FLOPs, no MFU";

// A result file brought to the keys of schema version 1. Each assumption is added to `notes` as a sentence. Files of
// version 1 stay as they are. Files without a version are older: raw_step_times, "N/A" for unknown values, a
// framework's name as software stack, no model, no status ... `file_name` is the last source of platform, framework and
// model. Throws Error (where = file_name) for JSON that is not a benchmark result.
Json upgrade_result(const Json& json, const std::string& file_name, std::vector<std::string>& notes);

}  // namespace tprimat
