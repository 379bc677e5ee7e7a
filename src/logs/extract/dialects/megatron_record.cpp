#include "extract/dialects/megatron_record.h"

#include <algorithm>
#include <cstring>

#include "extract/scan_text.h"

namespace tprimat::logs {
namespace {

using Flavour = MegatronFlavour;
using Store = void (*)(std::string_view value, IterationRecord& record);

template <Figure ExtractedStep::*member>
void store_figure(std::string_view value, IterationRecord& record) {
  record.step.*member = parse_number(value);  // of "instant/average" pairs the first
}

void store_milliseconds(std::string_view value, IterationRecord& record) {
  if (const Figure ms = parse_number(value)) record.step.time_seconds = *ms / 1e3;
}

void store_loss(std::string_view value, IterationRecord& record) {
  record.step.loss = parse_number(value);
  record.has_loss = true;  // though it may be unreadable
}

void store_loss_scale(std::string_view value, IterationRecord& record) {
  const Figure scale = parse_number(value);
  if (scale && *scale > 0) record.step.loss_scale = scale;  // -1: there is none
}

void store_skipped(std::string_view value, IterationRecord& record) {
  const auto skipped = parse_whole(value);
  record.skipped = skipped.value_or(0);
  if (skipped) record.step.skipped_updates = static_cast<double>(*skipped);
  record.closed = true;
}

void store_nans(std::string_view value, IterationRecord& record) {
  record.nans = parse_whole(value).value_or(0);
  record.closed = true;
}

void store_sequence_length(std::string_view value, IterationRecord& record) {
  record.sequence_length = parse_whole(value);
}

void store_mfu_percent(std::string_view value, IterationRecord& record) {
  const Figure percent = parse_number(value);
  if (percent && *percent >= 0) record.step.mfu = *percent / 100;
}

void add_memory(IterationRecord& record, int32_t rank, MemoryKind kind, Figure gib) {
  if (!gib.finite() || record.memory_count == record.memory.size()) return;
  record.memory[record.memory_count++] = {rank, kind, *gib * k_gib / 1e9};
}

// "71.14GB/120.85GB/191.98GB/37.05%": used, free, total of the device; GB is 1024^3 bytes there.
void store_device_memory(std::string_view value, IterationRecord& record) {
  const Figure used = take_number(value);
  add_memory(record, -1, MemoryKind::device_used, used);
  if (!skip_past(value, "/") || !skip_past(value, "/")) return;
  add_memory(record, -1, MemoryKind::device_total, take_number(value));
  if (used.finite()) record.step.memory_used_gb = *used * k_gib / 1e9;
}

// "20.5GiB/18.1GiB/(10.7%)": reserved and active, despite the label.
void store_reserved_memory(std::string_view value, IterationRecord& record) {
  const Figure reserved = take_number(value);
  if (reserved.finite()) record.step.memory_reserved_gb = *reserved * k_gib / 1e9;
  if (!skip_past(value, "/")) return;
  const Figure active = take_number(value);
  if (active.finite()) record.step.memory_allocated_gb = *active * k_gib / 1e9;
}

void ignore(std::string_view, IterationRecord&) {}

struct Rule {
  std::string_view key;
  Store store;
  int flavour;  // the only one that prints it; -1: several do
};

constexpr int of(Flavour flavour) { return static_cast<int>(flavour); }

constexpr Rule k_rules[] = {
    {"consumed samples", store_figure<&ExtractedStep::samples_seen>, -1},
    {"elapsed time per iteration (ms)", store_milliseconds, -1},
    {"throughput per GPU (TFLOP/s/GPU)", store_figure<&ExtractedStep::tflops_per_gpu>, -1},
    {"learning rate", store_figure<&ExtractedStep::learning_rate>, -1},
    {"global batch size", store_figure<&ExtractedStep::global_batch_size>, -1},
    {"lm loss", store_loss, -1},
    {"loss scale", store_loss_scale, -1},
    {"grad norm", store_figure<&ExtractedStep::grad_norm>, -1},
    {"number of skipped iterations", store_skipped, -1},
    {"number of nan iterations", store_nans, -1},
    {"elapsed time per iteration (s)", store_figure<&ExtractedStep::time_seconds>, of(Flavour::megatron_deepspeed)},
    {"num zeros", ignore, -1},
    {"params norm", ignore, -1},
    {"batch size", store_figure<&ExtractedStep::global_batch_size>, -1},
    {"energy per GPU (J/iter/GPU)", store_figure<&ExtractedStep::energy_joules_per_gpu>, -1},
    {"power per GPU (W/GPU)", store_figure<&ExtractedStep::power_watts_per_gpu>, -1},
    {"seq_length", store_sequence_length, -1},
    {"consumed tokens", store_figure<&ExtractedStep::tokens_seen>, of(Flavour::megatron_deepspeed)},
    {"lm-loss", store_loss, of(Flavour::megatron_deepspeed)},
    {"samples per second", store_figure<&ExtractedStep::samples_per_second>, of(Flavour::megatron_deepspeed)},
    {"tokens per gpu per second (tgs)", store_figure<&ExtractedStep::tokens_per_second_per_gpu>,
     of(Flavour::megatron_deepspeed)},
    {"TFLOPs", store_figure<&ExtractedStep::tflops_per_gpu>, of(Flavour::megatron_deepspeed)},
    {"actual seqlen", store_sequence_length, of(Flavour::megatron_deepspeed)},
    {"lm_loss", store_loss, of(Flavour::gpt_neox)},
    {"approx flops per GPU", store_figure<&ExtractedStep::tflops_per_gpu>, of(Flavour::gpt_neox)},
    {"tokens per GPU (tokens/s/GPU)", store_figure<&ExtractedStep::tokens_per_second_per_gpu>, -1},
    {"tokens/s/GPU inst/harmonic mean", store_figure<&ExtractedStep::tokens_per_second_per_gpu>, of(Flavour::primus)},
    {"compute per GPU (TFLOP/s/GPU)", store_figure<&ExtractedStep::tflops_per_gpu>, of(Flavour::primus)},
    {"hip mem usage/free/total/usage_ratio", store_device_memory, of(Flavour::primus)},
    {"rocm mem usage/free/total/usage_ratio", store_device_memory, of(Flavour::primus)},
    {"memory usage/free/total", store_reserved_memory, of(Flavour::primus)},
    {"mfu", store_mfu_percent, of(Flavour::primus)},
    {"tokens per second", store_figure<&ExtractedStep::tokens_per_second>, of(Flavour::native)},
    {"loss", store_loss, -1},
    {"grad_norm", store_figure<&ExtractedStep::grad_norm>, -1},
    {"throughput (token/sec/GPU)", store_figure<&ExtractedStep::tokens_per_second_per_gpu>, -1},
    {"flop throughput (TFLOP/sec/GPU)", store_figure<&ExtractedStep::tflops_per_gpu>, -1},
    {"TGS", store_figure<&ExtractedStep::tokens_per_second_per_gpu>, -1},
};
constexpr auto k_rule_count = static_cast<int32_t>(std::size(k_rules));

int32_t find_rule(std::string_view key) {
  for (int32_t i = 0; i < k_rule_count; ++i)
    if (k_rules[i].key == key) return i;
  return -1;
}

// Whether the text begins with the key and a colon. Eight bytes at a time, as keys are too short for a call.
bool begins_with_key(std::string_view text, std::string_view key) {
  if (text.size() <= key.size() || text[key.size()] != ':') return false;
  size_t at = 0;
  const auto load = [&](std::string_view from) {
    uint64_t bytes = 0;
    std::memcpy(&bytes, from.data() + at, sizeof(bytes));
    return bytes;
  };
  for (; at + sizeof(uint64_t) <= key.size(); at += sizeof(uint64_t))
    if (load(text) != load(key)) return false;
  for (; at < key.size(); ++at)
    if (text[at] != key[at]) return false;
  return true;
}

void mark(IterationRecord& record, Flavour flavour) { ++record.marks[static_cast<size_t>(flavour)]; }

// "rank-3 rocm max mem usage/usage_ratio: 170.79GB/59.31%": the rank that uses most.
bool store_rank_memory(std::string_view key, std::string_view value, IterationRecord& record) {
  if (key.substr(0, 5) != "rank-" || !contains(key, "max mem usage")) return false;
  const auto rank = parse_whole(key.substr(5));
  if (!rank || *rank < 0 || *rank > 10'000'000) return true;
  add_memory(record, static_cast<int32_t>(*rank), MemoryKind::device_used, parse_number(value));
  mark(record, Flavour::primus);
  return true;
}

void add_to(Figure& sum, Figure value) {
  if (value) sum = sum.value_or(0) + *value;
}

// The losses of a router, which the total has besides the model's: "seq_load_balancing_loss: 1.0E+00",
// "z_loss: 2.0E-01" of Megatron-LM, "moe loss: 1.2E-02" of Megatron-DeepSpeed; and of layers that predict further
// tokens, "mtp_1 loss".
void store_added_loss(std::string_view key, std::string_view value, IterationRecord& record) {
  if (key.ends_with("load_balancing_loss")) {
    record.prints_layer_mean = true;
    add_to(record.step.aux_loss, parse_number(value));
  } else if (key == "moe loss") {
    record.prints_added_loss = true;
    record.step.aux_loss = parse_number(value);
  } else if (key == "z_loss") {
    record.step.z_loss = parse_number(value);
  } else if (key.starts_with("mtp_")) {
    const auto layer = parse_whole(key.substr(4));
    constexpr int64_t k_max_layers = 100;
    if (layer && *layer <= k_max_layers) record.prediction_layers = std::max(record.prediction_layers, *layer);
  }
}

// Some models name their loss otherwise: "nll loss: 2.5". Auxiliary losses do not count.
void store_other_loss(std::string_view key, std::string_view value, IterationRecord& record) {
  if (key.ends_with("loss")) store_added_loss(key, value, record);
  if (record.other_loss || !key.ends_with("loss")) return;
  for (const std::string_view addition : {"balanc", "aux", "z_loss", "z loss", "mtp", "moe loss"})
    if (contains(key, addition)) return;
  record.other_loss = parse_number(value);
  record.other_loss_name = key;
}

// "lm loss 9.1E+00": until 2020 Megatron-LM printed some fields without a colon.
void read_bare_field(std::string_view segment, IterationRecord& record) {
  segment = trim(segment);
  const size_t blank = segment.rfind(' ');
  if (blank == std::string_view::npos || !parse_number(segment.substr(blank))) return;
  const std::string_view key = trim(segment.substr(0, blank));
  const int32_t rule = find_rule(key);
  if (rule < 0) return store_other_loss(key, segment.substr(blank), record);
  k_rules[rule].store(segment.substr(blank), record);
  ++record.fields;
}

// Where "iteration", a whole number, "/", a whole number and "|" follow; the text is cut behind the bar.
bool take_iteration(std::string_view& text, int64_t& step, std::optional<int64_t>& total) {
  std::string_view rest = text;
  while (skip_past(rest, "iteration ")) {
    std::string_view scan = rest;
    const Figure number = take_number(scan);
    if (!number.finite() || *number < 0 || *number > 1e15 || *number != std::floor(*number)) continue;
    if (scan.empty() || scan.front() != '/') continue;
    scan.remove_prefix(1);
    const Figure last = take_number(scan);
    scan = scan.substr(std::min(scan.size(), scan.find_first_not_of(' ')));
    if (!last || scan.empty() || scan.front() != '|') continue;
    step = static_cast<int64_t>(*number);
    if (*last >= 1 && *last <= 1e15) total = static_cast<int64_t>(*last);
    text = scan.substr(1);
    return true;
  }
  return false;
}

// "[default3]: [2025-11-02 10:00:05] iteration 5/ 10", unlike "elapsed time per iteration (ms)".
bool begins_record(std::string_view segment) {
  const auto after = text_after(segment, "iteration ");
  const size_t at = after ? after->find_first_not_of(' ') : std::string_view::npos;
  return at != std::string_view::npos && (*after)[at] >= '0' && (*after)[at] <= '9' && contains(*after, "/");
}

// False: no field of the record begins another one. Most lines hold one record, and one search tells.
bool begins_later_record(std::string_view text) {
  while (skip_past(text, "iteration ")) {
    const size_t at = text.find_first_not_of(' ');
    if (at != std::string_view::npos && is_digit(text[at])) return true;
  }
  return false;
}

}  // namespace

void IterationScanner::read_field(std::string_view segment, IterationRecord& record) {
  while (!segment.empty() && (segment.front() == ' ' || segment.front() == '*')) segment.remove_prefix(1);
  int32_t& hint = expected_[std::min(position_++, expected_.size() - 1)];
  const std::string_view expected = k_rules[hint].key;
  if (!begins_with_key(segment, expected)) {
    const size_t colon = segment.find(':');
    if (colon == std::string_view::npos) return read_bare_field(segment, record);
    const std::string_view key = trim(segment.substr(0, colon));
    const int32_t rule = find_rule(key);
    if (rule < 0) {
      if (!store_rank_memory(key, segment.substr(colon + 1), record))
        store_other_loss(key, segment.substr(colon + 1), record);
      return;
    }
    hint = rule;
    segment.remove_prefix(colon + 1);
  } else {
    segment.remove_prefix(expected.size() + 1);
  }
  const Rule& rule = k_rules[hint];
  rule.store(segment, record);
  if (rule.flavour >= 0) ++record.marks[static_cast<size_t>(rule.flavour)];
  ++record.fields;
}

bool IterationScanner::scan(const LogLine& line, std::string_view& text, IterationRecord& record) {
  int64_t step = 0;
  record = {};
  const std::string_view whole = text;
  if (!take_iteration(text, step, record.total_steps)) return false;
  record.step = LogBuilder::start_step(line, step);
  record.is_cut = line.is_cut;
  const std::string_view before = whole.substr(0, static_cast<size_t>(text.data() - whole.data()));
  if (const Figure rate = number_after(before, "samples/sec:")) {
    record.step.samples_per_second = rate;
    mark(record, Flavour::gpt_neox);
  }
  if (const size_t bracket = before.rfind('['); bracket != std::string_view::npos) {  // of a record that is glued on
    std::string_view stamp = before.substr(bracket);
    if (const Figure time = take_timestamp(stamp)) record.step.unix_time = time;
  }
  position_ = 0;
  const bool may_be_glued = begins_later_record(text);
  while (!text.empty()) {
    const size_t bar = text.find('|');
    const std::string_view segment = text.substr(0, bar);
    if (may_be_glued && begins_record(segment)) break;  // the next one, glued to this one
    if (bar == std::string_view::npos) {
      const std::string_view last = trim(segment);
      const bool whole_field = record.closed && !last.empty() && last.back() == '%';
      if (whole_field) read_field(segment, record);
      if (!contains(segment, "iteration ")) text = {};
      break;
    }
    read_field(segment, record);
    text.remove_prefix(bar + 1);
  }
  if (record.step.time_seconds) record.step.time_source = TimeSource::printed;
  return true;
}

}  // namespace tprimat::logs
