#pragma once

#include <archive.h>
#include <archive_entry.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <map>

#include "archive/seal.h"
#include "archive/sealed_files.h"
#include "archive/verify.h"
#include "base/files.h"
#include "result/result_file.h"
#include "result/step_record.h"
#include "result/summary.h"
#include "text/json.h"

namespace tprimat::results {

namespace fs = std::filesystem;

// A folder with the output of one run, to seal, to change and to verify.
class ArchiveTest : public ::testing::Test {
 protected:
  ArchiveTest() {
    std::string pattern = (fs::temp_directory_path() / "tprimat_archive_XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    output_ = folder_ / "output";
  }
  ~ArchiveTest() override { fs::remove_all(folder_); }

  static StepRecord record_of_step(int i) {
    StepRecord record;
    record.step = i + 1;
    record.time_seconds = i == 0 ? 5.0 : 1.0 + 0.01 * (i % 7);
    record.loss = 9.0 - 0.1 * i;
    record.learning_rate = 1e-4;
    record.grad_norm = 2.0 - 0.01 * i;
    record.memory_allocated_gb = 40.0 + 0.1 * (i % 3);
    return record;
  }

  static RunResult facts_of_run() {
    RunResult run;
    run.platform = Platform::nvd;
    run.framework = Framework::mega;
    run.model_info.name = "llama";
    run.gpu_info = {"NVIDIA H100 80GB HBM3", 8, {}, {}, {}, {}, {}, {}};
    run.training_config.global_batch_size = 64;
    run.training_config.sequence_length = 2048;
    run.training_config.max_steps = 30;
    return run;
  }

  void write_run() {
    RunResult run = facts_of_run();
    std::string lines;
    for (int i = 0; i < 30; ++i) {
      const StepRecord record = record_of_step(i);
      run.step_times.push_back(record.time_seconds);
      run.loss_values.push_back(*record.loss);
      run.learning_rates.push_back(*record.learning_rate);
      run.grad_norms.push_back(*record.grad_norm);
      run.memory_values.push_back(*record.memory_allocated_gb);
      lines += step_record_to_line(record) + "\n";
    }
    summarise_run(run, {});
    write_run_result(output_ / "train_nvd_mega_llama.json", run);
    write_file_atomically(output_ / "runs/train_nvd_mega_llama/steps.jsonl", lines);
    write_file_atomically(output_ / "training.log", "token hf_abcdefghijklmnopqrstuvwxyz012345\n");
    write_file_atomically(output_ / "weights.safetensors", "large");
  }

  Seal seal() { return seal_files({{output_}, folder_ / "a.tar.zst", {}, "tprimat test", "2026-01-01T00:00:00Z"}); }

  // The archive once more, with one file changed on the way.
  void rewrite(const std::function<void(const std::string& name, std::string& content)>& change) {
    std::map<std::string, std::string> files;
    read_sealed_files(folder_ / "a.tar.zst", [&](const std::string& name, std::string content) {
      change(name, content);
      files[name] = std::move(content);
    });
    write_tar(files);
  }

  void write_tar(const std::map<std::string, std::string>& files, unsigned kind = AE_IFREG) {
    archive* tar = ::archive_write_new();
    ::archive_write_set_format_pax_restricted(tar);
    ::archive_write_open_filename(tar, (folder_ / "changed.tar").c_str());
    for (const auto& [name, content] : files) {
      archive_entry* entry = ::archive_entry_new();
      ::archive_entry_set_pathname(entry, name.c_str());
      ::archive_entry_set_filetype(entry, kind);
      ::archive_entry_set_perm(entry, 0644);
      if (kind == AE_IFLNK) ::archive_entry_set_symlink(entry, "/etc/passwd");
      ::archive_entry_set_size(entry, kind == AE_IFREG ? static_cast<la_int64_t>(content.size()) : 0);
      ::archive_write_header(tar, entry);
      if (kind == AE_IFREG) ::archive_write_data(tar, content.data(), content.size());
      ::archive_entry_free(entry);
    }
    ::archive_write_free(tar);
  }

  // The result once more, with one change that whoever seals it makes.
  void edit_result(const std::function<void(Json& result)>& change) {
    const fs::path path = output_ / "train_nvd_mega_llama.json";
    Json result = parse_json(read_file(path), "");
    change(result);
    write_file_atomically(path, print_json(result));
  }

  std::vector<Broken> seal_and_verify() {
    seal();
    return verify_archive(folder_ / "a.tar.zst").broken;
  }

  Verification verify_changed() { return verify_archive(folder_ / "changed.tar"); }

  fs::path folder_, output_;
};

}  // namespace tprimat::results
