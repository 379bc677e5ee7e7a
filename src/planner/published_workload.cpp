#include "planner/published_workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <regex>

#include "planner/weights.h"
#include "published/printed.h"
#include "published/row_inputs.h"
#include "spec/flop_breakdown.h"

namespace tprimat {
namespace {

constexpr double k_gpt2_vocabulary = 51200;    // padded by Megatron-LM
constexpr double k_bloom_vocabulary = 250880;  // arXiv 2211.05100, table 3

std::string lower(std::string_view text) {
  std::string result(text.substr(0, 1000));
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

bool mentions(const std::string& text, std::string_view word) { return text.find(word) != std::string::npos; }

constexpr double k_most_count = 1 << 24;
constexpr int64_t k_most_batch = int64_t{1} << 30;

// A whole number of at least 1; nothing for an empty cell and for anything else.
std::optional<int64_t> count_cell(const PublishedRow& row, std::string_view column) {
  const auto printed = parse_printed(row.cell(column));
  if (!printed || printed->value < 1 || printed->value > k_most_count) return std::nullopt;
  if (printed->value != std::floor(printed->value)) return std::nullopt;
  return static_cast<int64_t>(printed->value);
}

// Where nothing is printed: fp16 of the programs of before 2022, bf16 of the others.
std::optional<PlanPrecision> precision_of(const PublishedRow& row, const Family& family) {
  const std::string text = lower(row.cell("precision"));
  if (mentions(text, "fp4")) return PlanPrecision::fp4;
  if (mentions(text, "fp8") || mentions(text, "float8")) return PlanPrecision::fp8;
  if (mentions(text, "fp16")) return PlanPrecision::fp16;
  if (text.empty()) return family.dropout ? PlanPrecision::fp16 : PlanPrecision::bf16;
  if (mentions(text, "bf16") || mentions(text, "bfloat16")) return PlanPrecision::bf16;
  return std::nullopt;
}

// Words of a row's layout that stand in its notes: "model-parallel size 96", "model parallel partitions 8".
std::optional<int64_t> noted_model_parallel(const PublishedRow& row) {
  static const std::regex pattern("model-parallel size ([1-9][0-9]{0,4})");
  std::smatch match;
  const std::string notes = row.cell("notes").substr(0, 1000);
  if (!std::regex_search(notes, match, pattern)) return std::nullopt;
  return std::stoll(match[1]);
}

void take_model_parallel(Layout& layout, int64_t size, int64_t gpus_per_node) {
  layout.tensor = std::min(size, gpus_per_node);
  layout.pipeline = size / layout.tensor;
}

bool prints_layout(const PublishedRow& row, const Workload& workload, int64_t gpus) {
  return gpus == 1 || count_cell(row, "tp") || count_cell(row, "pp") || workload.family->fully_sharded ||
         mentions(lower(row.cell("sharding")), "fsdp") || noted_model_parallel(row);
}

void read_chunks(PublishedWorkload& read, const PublishedRow& row) {
  Workload& workload = read.workload;
  Layout& layout = workload.layout;
  layout.chunks = count_cell(row, "vp").value_or(1);
  if (count_cell(row, "vp") || layout.pipeline <= 1) return;
  const int64_t layers = std::max<int64_t>(1, workload.shape.model.num_layers / layout.pipeline);
  layout.chunks = workload.family->chunks == 0 ? layers : std::min(workload.family->chunks, layers);
  if (layout.chunks > 1) read.assumptions.push_back(fmt::format("VP {}", layout.chunks));
}

void read_sharding(Workload& workload, const PublishedRow& row) {
  const std::string text = lower(row.cell("sharding"));
  Sharding& sharding = workload.layout.sharding;
  if (workload.family->sharded_optimizer || mentions(text, "zero1")) sharding = Sharding::optimizer;
  if (mentions(text, "zero0")) sharding = Sharding::none;
  if (mentions(text, "zero2")) sharding = Sharding::gradients;
  const bool whole = mentions(text, "fsdp") && !mentions(text, "not resharded");
  if (workload.family->fully_sharded || mentions(text, "zero3") || whole) sharding = Sharding::weights;
}

bool read_layout(PublishedWorkload& read, const PublishedRow& row, int64_t gpus) {
  Layout& layout = read.workload.layout;
  layout.tensor = count_cell(row, "tp").value_or(1);
  layout.pipeline = count_cell(row, "pp").value_or(1);
  layout.context = count_cell(row, "cp").value_or(1);
  if (const auto size = noted_model_parallel(row); size && layout.tensor * layout.pipeline == 1)
    take_model_parallel(layout, *size, read.machine.gpus_per_domain);
  if (!prints_layout(row, read.workload, gpus)) {
    read.missing = "no layout";
    return false;
  }
  const double model =
      static_cast<double>(layout.tensor) * static_cast<double>(layout.pipeline) * static_cast<double>(layout.context);
  if (model > static_cast<double>(gpus) || layout.pipeline > read.workload.shape.model.num_layers) {
    read.missing = "a layout that does not multiply out";
    return false;
  }
  layout.data = gpus / (layout.tensor * layout.pipeline * layout.context);
  read_chunks(read, row);
  read_sharding(read.workload, row);
  return true;
}

// Where the micro-batch is not printed: the largest power of two up to 4 that keeps a pipeline four times full.
int64_t assume_micro_batch(const Workload& workload) {
  const Layout& layout = workload.layout;
  const int64_t per_rank = workload.global_batch / layout.data;
  const int64_t most = std::min<int64_t>(4, layout.pipeline > 1 ? per_rank / (4 * layout.pipeline) : per_rank);
  int64_t size = 1;
  while (2 * size <= most) size *= 2;
  return size;
}

// "batch size per DP group 32"
std::optional<int64_t> noted_batch_per_rank(const PublishedRow& row) {
  static const std::regex pattern("batch size per DP group ([0-9]{1,5})");
  std::smatch match;
  const std::string notes = row.cell("notes").substr(0, 1000);
  if (!std::regex_search(notes, match, pattern)) return std::nullopt;
  return std::stoll(match[1]);
}

int64_t read_global_batch(const PublishedRow& row, const Workload& workload) {
  const Layout& layout = workload.layout;
  if (const auto global = count_cell(row, "gbs")) return *global;
  if (const auto each = noted_batch_per_rank(row)) return std::min(*each * layout.data, int64_t{k_most_batch});
  const auto micro = count_cell(row, "mbs"), steps = count_cell(row, "ga");
  const bool once = layout.pipeline == 1 || workload.family->operator_recompute;
  if (!micro || (!steps && !once)) return 0;
  const double product = static_cast<double>(*micro) * static_cast<double>(steps.value_or(1) * layout.data);
  return product <= k_most_batch ? static_cast<int64_t>(product) : 0;
}

bool read_batch(PublishedWorkload& read, const PublishedRow& row) {
  Workload& workload = read.workload;
  Layout& layout = workload.layout;
  workload.global_batch = read_global_batch(row, workload);
  if (workload.global_batch < 1) {
    read.missing = "no batch";
    return false;
  }
  const auto micro = count_cell(row, "mbs");
  layout.micro_batch = micro.value_or(assume_micro_batch(workload));
  if (!micro) read.assumptions.push_back(fmt::format("MBS {}", layout.micro_batch));
  // torchtitan's local batch is cut into micro-batches of one sequence where there is a pipeline.
  if (workload.family->operator_recompute && layout.pipeline > 1) layout.micro_batch = 1;
  layout.micro_batch = std::min(layout.micro_batch, std::max<int64_t>(1, workload.global_batch / layout.data));
  return true;
}

int64_t assume_length(const PublishedRow& row, const Workload& workload) {
  const int64_t own = workload.shape.model.max_position_embeddings;
  if (workload.family->operator_recompute) return 8192;  // torchtitan's configurations of Llama 3
  return own > 1 ? std::min<int64_t>(own, 8192) : mentions(lower(row.cell("model")), "gpt-3") ? 2048 : 1024;
}

void read_recompute(Workload& workload, const PublishedRow& row) {
  const std::string text = lower(row.cell("recompute"));
  Recompute& recompute = workload.layout.recompute;
  if (text.starts_with("full")) recompute = Recompute::full;
  if (text.starts_with("selective")) recompute = Recompute::selective;
  // Every second layer whole, in torchtitan's words.
  if (text == "selective layer") workload.recomputed_share = 1.2;
  // Megatron-LM of before 2205.05198 repeated all layers.
  if (text.empty() && workload.family->dropout) recompute = Recompute::full;
  // torchtitan's configurations keep every second product.
  if (text.empty() && workload.family->operator_recompute) recompute = Recompute::selective;
  // Sequence parallelism came with that paper.
  workload.layout.sequence_parallel = !workload.family->dropout || recompute == Recompute::selective;
  // Its tables of activation memory say it apart.
  const std::string notes = lower(row.cell("notes"));
  if (mentions(notes, "sequence parallel only")) workload.layout.sequence_parallel = true;
  if (mentions(notes, "selective only") || mentions(notes, "no sequence parallel"))
    workload.layout.sequence_parallel = false;
}

void read_release(Workload& workload, const PublishedRow& row) {
  static const std::regex noted("release ([0-9][0-9.]{1,15})"), named("([0-9]{2}\\.[0-9.]{2,8})");
  std::smatch match;
  const std::string notes = row.cell("notes").substr(0, 1000), framework = row.cell("framework").substr(0, 200);
  if (std::regex_search(notes, match, noted) || std::regex_search(framework, match, named)) workload.release = match[1];
}

// How a program's authors count the FLOPs of a rate that they print instead of tokens.
double printed_flops_per_token(const Workload& workload, bool utilisation) {
  BreakdownOptions options{workload.sequence_length, workload.family->id == "meta", 0};
  const FlopBreakdown parts = break_down(workload.shape, options);
  const bool repeated = workload.family->dropout && !utilisation;  // arXiv 2104.04473, eq. 3
  return repeated ? hardware_flops(parts, Recompute::full) : parts.total();
}

std::optional<double> printed_rate(const PublishedWorkload& read, const PublishedRow& row, int64_t gpus) {
  const Workload& workload = read.workload;
  const auto each = parse_printed(row.cell("tokens_per_s_per_gpu")), whole = parse_printed(row.cell("tokens_per_s"));
  const auto step = parse_printed(row.cell("step_time_s")), flops = parse_printed(row.cell("tflops_per_gpu"));
  const auto mfu = parse_printed(row.cell("mfu_pct"));
  if (each) return each->value;
  if (whole) return whole->value / static_cast<double>(gpus);
  if (step)
    return static_cast<double>(workload.global_batch) * static_cast<double>(workload.sequence_length) / step->value /
           static_cast<double>(gpus);
  if (flops) return flops->value * 1e12 / printed_flops_per_token(workload, false);
  if (mfu) return mfu->value / 100 * read.machine.peak(workload.precision) / printed_flops_per_token(workload, true);
  return std::nullopt;
}

void read_memory(PublishedWorkload& read, const PublishedRow& row) {
  constexpr double k_gib = 1073741824.0, k_gb = 1e9;
  const std::string unit = row.cell("mem_unit"), notes = row.cell("notes").substr(0, 1000);
  read.out_of_memory = row.cell("mem") == "OOM";
  const auto printed = parse_printed(row.cell("mem"));
  if (!printed) return;
  const bool activations = notes.find("ACTIVATION memory") != std::string::npos;
  if (unit == "GiB" || unit == "GB")
    (activations ? read.activation_bytes : read.memory_bytes) = printed->value * (unit == "GiB" ? k_gib : k_gb);
  else if (activations && unit == "percent of tensor-parallel baseline")
    read.activation_share = printed->value / 100;
}

// Heads that a row does not print: of 128 channels each.
void assume_heads(PublishedWorkload& read, const PublishedRow& row) {
  ModelSpec& model = read.workload.shape.model;
  constexpr int64_t k_head = 128;
  if (model.num_attention_heads != 1 || model.head_dim <= 2 * k_head || count_cell(row, "heads")) return;
  model.num_attention_heads = model.num_key_value_heads = std::max<int64_t>(1, model.hidden_size / k_head);
  model.head_dim = k_head;
  read.assumptions.push_back("heads of 128");
}

// A dense GPT of which the parameter count and the hidden size are printed has so many layers: 12 l h^2 + V h.
std::optional<CountedModel> shape_from_count(const PublishedRow& row) {
  const auto count = parse_printed_count(row.cell("params"));
  const auto hidden = count_cell(row, "hidden");
  if (!count || !hidden) return std::nullopt;
  PublishedRow complete = row;
  const auto h = static_cast<double>(*hidden);
  const double layers = std::round((count->value - k_bloom_vocabulary * h) / (12 * h * h));
  if (layers < 1 || layers > 1000) return std::nullopt;
  complete.cells["layers"] = std::to_string(static_cast<int64_t>(layers));
  return read_inputs(complete).shape;
}

// The vocabulary whose table of embeddings brings the printed parameter count about: GPT-2's, padded, or BLOOM's.
double assume_vocabulary(const PublishedRow& row, const ModelSpec& model) {
  const auto count = parse_printed_count(row.cell("params"));
  if (!count) return k_gpt2_vocabulary;
  const auto off = [&](double vocabulary) {
    const double counted = static_cast<double>(model.num_layers) * layer_weights(model) +
                           vocabulary * static_cast<double>(model.hidden_size);
    return std::fabs(counted - count->value);
  };
  return off(k_bloom_vocabulary) < off(k_gpt2_vocabulary) ? k_bloom_vocabulary : k_gpt2_vocabulary;
}

void find_missing_shape(RowInputs& inputs, std::vector<std::string>& assumptions, const PublishedRow& row) {
  if (inputs.shape) return;
  inputs.shape = shape_from_count(row);
  if (inputs.shape) assumptions.push_back(fmt::format("{} layers", inputs.shape->model.num_layers));
}

bool read_shape(PublishedWorkload& read, const PublishedRow& row, RowInputs inputs) {
  find_missing_shape(inputs, read.assumptions, row);
  const std::string notes = lower(row.cell("notes"));
  if (!inputs.shape)
    read.missing = inputs.missing;
  else if (!unpredictable(*inputs.shape).empty())
    read.missing = unpredictable(*inputs.shape);
  else if (inputs.tuning == TuningKind::adapters)
    read.missing = "adapters alone are trained";
  else if (mentions(notes, "check:"))
    read.missing = "marked CHECK: its figures contradict each other";
  else if (mentions(notes, "single transformer layer"))
    read.missing = "one layer alone";
  if (!read.missing.empty()) return false;
  read.workload.shape = *inputs.shape;
  if (!inputs.vocabulary_known) {
    ModelSpec& model = read.workload.shape.model;
    model.vocab_size = static_cast<int64_t>(assume_vocabulary(row, model));
    read.assumptions.push_back(fmt::format("vocabulary {}", model.vocab_size));
  }
  assume_heads(read, row);
  return true;
}

bool read_program(PublishedWorkload& read, const PublishedRow& row) {
  const auto machine = find_printed_machine(row.cell("gpu"));
  const Family* family = find_printed_family(row.cell("framework"));
  const auto precision = family != nullptr ? precision_of(row, *family) : std::nullopt;
  if (!machine)
    read.missing = "no such GPU in the planner's list";
  else if (family == nullptr)
    read.missing = "no such framework in the planner's list";
  else if (!precision || machine->peak(*precision) <= 0)
    read.missing = "no peak of its precision";
  if (!read.missing.empty()) return false;
  read.machine = *machine;
  read.workload.family = family;
  read.workload.precision = *precision;
  return true;
}

void read_details(Workload& workload, const PublishedRow& row) {
  const std::string notes = lower(row.cell("notes"));
  workload.asynchronous_tensor = !workload.family->operator_recompute || mentions(notes, "async");
  workload.scaled_by_row = mentions(lower(row.cell("precision")), "rowwise");
  read_recompute(workload, row);
  read_release(workload, row);
}

}  // namespace

PublishedWorkload read_published_workload(const PublishedRow& row) {
  PublishedWorkload read;
  const auto gpus = count_cell(row, "n_gpus");
  if (!gpus) read.missing = "no number of GPUs";
  if (!gpus || !read_program(read, row) || !read_shape(read, row, read_inputs(row))) return read;
  if (const auto length = count_cell(row, "seq")) {
    read.workload.sequence_length = *length;
  } else {
    read.workload.sequence_length = assume_length(row, read.workload);
    read.assumptions.push_back(fmt::format("SL {}", read.workload.sequence_length));
  }
  if (!read_layout(read, row, *gpus) || !read_batch(read, row)) return read;
  read_details(read.workload, row);
  read_memory(read, row);
  if (const auto rate = printed_rate(read, row, *gpus))
    read.tokens_per_second_per_gpu = *rate;
  else
    read.missing = "no rate";
  return read;
}

}  // namespace tprimat
