#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "extract/dialect.h"

namespace tprimat::logs {

// The trainers that log like Megatron-LM, each recognised by its own words.
enum class MegatronFlavour : uint8_t { megatron, megatron_deepspeed, gpt_neox, primus, native };
inline constexpr size_t k_megatron_flavours = 5;

// One " iteration 10/ 200 | key: value | ... |" record.
struct IterationRecord {
  ExtractedStep step;
  std::optional<int64_t> total_steps;
  std::optional<int64_t> sequence_length;
  bool closed = false;  // the fields that end such a line were read
  bool has_loss = false;
  bool is_cut = false;                                        // its line has no end
  bool prints_layer_mean = false, prints_added_loss = false;  // which balancing loss; see common/expert_settings.h
  int64_t prediction_layers = 0;                              // the last one whose loss it prints
  Figure other_loss;  // under an unknown name, which points into the scanned text
  std::string_view other_loss_name;
  int64_t skipped = 0, nans = 0;  // "number of skipped iterations", "number of nan iterations"
  struct Memory {
    int32_t rank = -1;
    MemoryKind kind = MemoryKind::device_used;
    double gb = 0.0;  // GB = 1e9 bytes
  };
  std::array<Memory, 6> memory{};
  size_t memory_count = 0;
  std::array<int32_t, k_megatron_flavours> marks{};  // fields that only this flavour prints
  int32_t fields = 0;                                // fields understood
};

class IterationScanner {
 public:
  // Reads the next record of `text` and cuts the text behind it; false when there is none. A last field without its end
  // may be truncated, so it is not read.
  bool scan(const LogLine& line, std::string_view& text, IterationRecord& record);

 private:
  void read_field(std::string_view segment, IterationRecord& record);

  std::array<int32_t, 32> expected_{};  // the rule that fitted the n-th field of the line before
  size_t position_ = 0;
};

// A reader for one flavour. Joins records that a terminal wrapped over several lines, splits several records of one
// line, and notes when the second step's time is a mean with the first.
std::unique_ptr<LogReader> make_megatron_reader(MegatronFlavour flavour);

// The fields of all flavours.
std::vector<FieldNote> megatron_fields();

}  // namespace tprimat::logs
