#include "fuzz/targets.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include "archive/verify.h"
#include "base/check.h"
#include "base/checksum.h"
#include "base/error.h"
#include "comm/tcp/peer_link.h"
#include "comm/tcp/rendezvous_messages.h"
#include "data/encode/encode_dataset.h"
#include "data/megatron_index.h"
#include "data/tokenizer/tokenizer.h"
#include "data/tokenizer/unicode.h"
#include "extract/dialects.h"
#include "extract/dialects/tfrecord.h"
#include "extract/to_result.h"
#include "hugging_face/model_config.h"
#include "model_files/checkpoint_folder.h"
#include "model_files/checkpoint_reader.h"
#include "model_files/rank_file.h"
#include "model_files/safetensors.h"
#include "planner/machine_from_probe.h"
#include "planner/own_results.h"
#include "planner/plan_validation.h"
#include "published/validate.h"
#include "result/result_file.h"
#include "telemetry/telemetry_file.h"
#include "text/json.h"
#include "text/json_fields.h"
#include "trace/operation_table.h"
#include "trace/pipeline_records.h"
#include "trace/profile_summary.h"
#include "trace/recorded_totals.h"
#include "trace/trace.h"
#include "unit/trace/zip_fixture.h"
#include "why/stragglers.h"

namespace tprimat {
namespace {

void check_figures(const RunResult& result) {
  for (const double seconds : result.step_times) CHECK(!(seconds < 0));
  if (result.derived.mfu && result.status == RunStatus::complete) CHECK(result.derived.mfu->value <= 1);
  if (result.statistics) CHECK(result.statistics->median > 0);
}

// Reading is what is fuzzed. Judging what was read takes ten times as long (bootstrap intervals), so it is done for
// every eighth input.
void read_as_log(std::string_view bytes, const std::string& format) {
  const logs::ReadLog read = logs::read_log_text(std::string(bytes), {format});
  if (std::hash<std::string_view>()(bytes) % 8 != 0) return;
  const RunResult result = logs::make_result(read, "fuzz.log", {});
  check_figures(result);
  // What we write we can read.
  run_result_from_json(parse_json(print_json(run_result_to_json(result)), "fuzz"), "fuzz.json");
}

// As bytes of an archive, and, behind an odd first byte, as what an archive holds.
void read_compressed(std::string_view bytes, const std::string&) {
  if (bytes.empty()) return;
  const bool inside = (bytes.front() & 1) != 0 && bytes.front() != '\x1f';
  read_as_log(inside ? logs::gzip_bytes(bytes.substr(1)) : std::string(bytes), "");
}

void put_checksum(std::string& file, size_t at, std::string_view of) {
  const uint32_t sum = masked_crc32c(of);
  for (size_t i = 0; i < 4; ++i) file[at + i] = static_cast<char>(sum >> (8 * i));
}

void mend_checksums(std::string& file) {
  constexpr size_t k_head = 12, k_tail = 4;
  for (size_t at = 0; file.size() - at >= k_head + k_tail;) {
    uint64_t length = 0;
    for (size_t i = 8; i-- > 0;) length = length << 8 | static_cast<uint8_t>(file[at + i]);
    if (length > file.size() - at - k_head - k_tail) return;
    put_checksum(file, at + 8, std::string_view(file).substr(at, 8));
    put_checksum(file, at + k_head + length, std::string_view(file).substr(at + k_head, length));
    at += k_head + length + k_tail;
  }
}

// Checksums are mended, or no changed record would ever be looked at.
void read_events(std::string_view bytes, const std::string& format) {
  std::string mended(bytes);
  mend_checksums(mended);
  read_as_log(mended, format);
  read_as_log(bytes, format);
}

void read_telemetry(std::string_view bytes, const std::string&) { read_telemetry_text(bytes, "fuzz"); }

void read_profile(std::string_view bytes, const std::string&) {
  logs::render_profile(logs::summarise_profile(bytes, "fuzz"));
}

// Every index points at what it names.
void check_trace(const logs::Trace& trace) {
  const auto within = [](uint32_t index, size_t size) { CHECK(index == logs::k_none || index < size); };
  for (const logs::GpuEvent& event : trace.events) {
    CHECK(event.span.length() >= 0 && event.name < trace.names.size() && event.device >= 0);
    within(event.launcher, trace.host_events.size());
    within(event.collective, trace.collectives.size());
  }
  for (const logs::HostEvent& event : trace.host_events) {
    CHECK(event.span.length() >= 0 && event.name < trace.names.size());
    within(event.shapes, trace.shapes.size());
    within(event.collective, trace.collectives.size());
  }
}

void read_any_trace(std::string_view bytes, const std::string&) {
  logs::Trace trace = logs::read_trace(bytes, "fuzz", logs::TraceContent::everything);
  check_trace(trace);
  logs::find_phases(trace);
  for (const logs::StepMark& mark : logs::find_steps(trace)) CHECK(mark.span.length() >= 0);
  if (std::hash<std::string_view>()(bytes) % 8 == 0) read_profile(bytes, "");
}

void read_pipeline(std::string_view bytes, const std::string&) {
  for (const logs::PipelineIteration& each : logs::parse_pipeline_rank(bytes, "fuzz", 0).iterations)
    CHECK(each.total >= 0 && each.iteration >= 0);
  logs::parse_pipeline_layout(bytes, "fuzz");
}

void read_totals(std::string_view bytes, const std::string&) {
  logs::Workbook report;
  logs::add_csv_sheet(report, "gpu_timeline", "type,time ms\ncomputation_time,1\nidle_time,1\ntotal_time,2\n");
  for (const char* const sheet : {"kernel_summary", "coll_analysis", "ops_summary", "SDPA_bwd"})
    logs::add_csv_sheet(report, sheet, bytes);
  for (const logs::CollectiveTotal& each : logs::read_recorded_totals(report, "fuzz").collectives)
    CHECK(each.calls >= 0 && each.call.bytes >= 0 && std::isfinite(each.total_seconds));
}

// As the bytes of a workbook, and as the sheet inside one.
void read_workbook_bytes(std::string_view bytes, const std::string&) {
  if (bytes.substr(0, 2) == "PK") return read_profile(bytes, "");
  read_profile(logs::make_workbook({{"gpu_timeline", std::string(bytes)}, {"kernel_summary", std::string(bytes)}},
                                   std::string(bytes)),
               "");
}

// For readers that want a path.
void with_path(std::string_view bytes, const std::function<void(const std::string& path)>& read) {
  const int descriptor = ::memfd_create("fuzz", 0);
  CHECK(descriptor >= 0 && ::write(descriptor, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
  try {
    read("/proc/self/fd/" + std::to_string(descriptor));
  } catch (const Error&) {
    ::close(descriptor);
    throw;
  }
  ::close(descriptor);
}

void read_index(std::string_view bytes, const std::string&) {
  with_path(bytes, [](const std::string& path) { engine::load_megatron_index(path, 4096); });
}

void read_archive(std::string_view bytes, const std::string&) {
  with_path(bytes, [](const std::string& path) { results::verify_archive(path, {1'000'000, 4'000'000, 1000}); });
}

void read_safetensors(std::string_view bytes, const std::string&) {
  const auto file = std::as_bytes(std::span(bytes));
  for (const auto& [name, tensor] : engine::parse_safetensors_header(file, "fuzz").tensors)
    CHECK(0 <= tensor.begin && tensor.begin <= tensor.end && static_cast<size_t>(tensor.end) <= bytes.size());
}

void read_rank_table(std::string_view bytes) {
  const engine::RankFileTable table = engine::parse_rank_table(std::as_bytes(std::span(bytes)), "fuzz");
  for (const engine::Piece& piece : table.pieces) {
    CHECK(piece.offset >= 0 && piece.offset + piece.bytes() <= static_cast<int64_t>(bytes.size()));
    int64_t values = 0;
    for (const engine::ShardRun& run : engine::shard_runs(piece.shard, piece.begin, piece.end)) values += run.count;
    CHECK(values == piece.count());
  }
}

// As it is, and with checksums and size mended (rank_file.h tells where they stand), or no changed table would ever be
// looked at.
void read_checkpoint(std::string_view bytes, const std::string&) {
  constexpr size_t k_table_bytes = 40, k_file_bytes = 48, k_table_sum = 56, k_head_sum = 64, k_head = 72;
  std::string mended(bytes);
  if (mended.size() >= k_head) {
    uint64_t table = 0;
    const uint64_t size = mended.size();
    std::memcpy(&table, mended.data() + k_table_bytes, sizeof table);
    table = std::min<uint64_t>(table, size - k_head);
    std::memcpy(mended.data() + k_table_bytes, &table, sizeof table);
    std::memcpy(mended.data() + k_file_bytes, &size, sizeof size);
    const uint64_t table_sum = engine::checksum_of(std::string_view(mended).substr(k_head, table));
    std::memcpy(mended.data() + k_table_sum, &table_sum, sizeof table_sum);
    const uint64_t head_sum = engine::checksum_of(std::string_view(mended).substr(0, k_head_sum));
    std::memcpy(mended.data() + k_head_sum, &head_sum, sizeof head_sum);
    try {
      read_rank_table(mended);
    } catch (const Error&) {
    }
  }
  read_rank_table(bytes);
}

void read_manifest_bytes(std::string_view bytes, const std::string&) {
  const size_t end = bytes.rfind("  \"checksum\"");
  const std::string_view checked = bytes.substr(0, end);
  const engine::CheckpointManifest manifest = engine::parse_manifest(
      std::string(checked) + "  \"checksum\": \"" + engine::checksum_text(engine::checksum_of(checked)) + "\"\n}\n",
      "fuzz");
  CHECK(engine::parse_manifest(engine::print_manifest(manifest), "fuzz").ranks.size() == manifest.ranks.size());
}

// What is understood can be written and comes back.
void read_model_config(std::string_view bytes, const std::string&) {
  const ModelSpec model = parse_hugging_face_config(parse_json(bytes, "fuzz", SameKeys::refused), "fuzz").spec;
  parse_hugging_face_config(make_hugging_face_config(model, NumberFormat::f32), "fuzz");
}

void encode_some(const engine::Tokenizer& tokenizer) {
  std::vector<int32_t> tokens;
  tokenizer.make_encoder()->encode("It's 2024:\tna\xc3\xafve <|endoftext|> \xe2\x82\xac\n\n  words words words",
                                   tokens);
  for (const int32_t token : tokens) CHECK(token >= 0 && token < tokenizer.vocab_size());
}

void read_tokenizer(std::string_view bytes, const std::string&) {
  encode_some(*engine::read_tokenizer_json(bytes, "fuzz"));
}

void read_model(std::string_view bytes, const std::string&) {
  encode_some(*engine::read_sentencepiece_model(bytes, "fuzz"));
}

// What is handed on must be text.
void read_json_lines(std::string_view bytes, const std::string&) {
  engine::JsonLineReader reader("text");
  while (!bytes.empty()) {
    const std::string_view line = bytes.substr(0, bytes.find('\n'));
    bytes.remove_prefix(std::min(bytes.size(), line.size() + 1));
    CHECK(engine::is_valid_utf8(reader.read(line, "fuzz")));
  }
}

// Judging follows reading, for a few rows: what is judged must stay within what doubles hold.
void read_published(std::string_view bytes, const std::string&) {
  planner::PublishedTable table = planner::parse_published_table(bytes, "fuzz.tsv");
  table.rows.resize(std::min<size_t>(table.rows.size(), 2));
  CHECK(!planner::render_validation({planner::validate_table(table)}).empty());
  const auto report = planner::make_validation_report({planner::plan_table(table, planner::built_in_parameters())});
  CHECK(!planner::render_plan_validation(report, true).empty());
}

void read_plan_parameters(std::string_view bytes, const std::string&) {
  CHECK(!planner::format_parameters(planner::parse_parameters(bytes, "fuzz.tsv")).empty());
}

// A machine that a plan can be made for: no figure is nothing, or without end.
void read_probe(std::string_view bytes, const std::string&) {
  constexpr const char* k_gpu =
      R"({"gpu": "GPU", "matmul": [{"precision": "bf16", "products": [{"m": 64, "n": 64, "k": 64, )"
      R"("flops_per_second": 1e14}]}], "memory": [{"kind": "copy", "bytes_per_second": 1e12}]})";
  const bool is_collectives = bytes.find("\"rates\"") != std::string_view::npos;
  planner::StatedMachine stated{
      .network_bandwidth = 50e9, .link_bandwidth = {}, .memory_bytes = 64e9, .devices_per_node = 8};
  if (!is_collectives) stated.link_bandwidth = 2e11;
  std::vector<planner::ProbeFile> files = {{"fuzz.json", std::string(bytes)}};
  if (is_collectives) files.push_back({"gpu.json", k_gpu});
  const planner::ParameterSet& parameters = planner::built_in_parameters();
  const planner::ProbedMachine probed = planner::parse_probed_machine(files, stated, parameters);
  planner::Workload workload;
  workload.family = planner::find_family(probed.machine.cores > 0 ? "native" : "megatron_core");
  for (const planner::MachineFigure& each : planner::machine_figures(probed, parameters, workload))
    CHECK(each.used > 0 && std::isfinite(each.used));
}

// What the fast reader takes, the ordinary one takes, and it reads the same.
void read_result(std::string_view bytes, const std::string&) {
  const std::string text(bytes);
  if (const auto fast = read_current_result(text)) {
    const RunResult slow = from_json<RunResult>(parse_json(text, "fuzz"), "fuzz");
    CHECK(print_json(run_result_to_json(*fast)) == print_json(run_result_to_json(slow)));
  }
  const RunResult result = read_run_result(text, "fuzz.json");
  for (const planner::OwnObservation& each : planner::observe_results({{"fuzz.json", result}}, {}))
    CHECK(each.observed.has_value() == each.missing.empty());
  if (result.derived.mfu && result.status == RunStatus::complete) CHECK(!(result.derived.mfu->value > 1));
}

// Whatever is valid stays within its bounds, and its texts have an end.
template <class Message>
std::optional<Message> valid_message(std::string_view bytes) {
  Message message;
  bytes.copy(reinterpret_cast<char*>(&message), sizeof message);
  return engine::is_valid(message) ? std::optional(message) : std::nullopt;
}

void read_rendezvous(std::string_view bytes, const std::string&) {
  if (const auto hello = valid_message<engine::RendezvousHello>(bytes))
    CHECK(hello->rank < hello->size && hello->size <= engine::k_max_tcp_ranks &&
          std::strlen(hello->version.data()) < hello->version.size());
  if (const auto message = valid_message<engine::RendezvousMessage>(bytes))
    CHECK(std::strlen(message->version.data()) < message->version.size());
  if (const auto place = valid_message<engine::RendezvousPlace>(bytes))
    CHECK(std::strlen(place->host.data()) < place->host.size());
}

// From a peer, while messages of several kinds are under way: the peer's bytes reach nothing but their places.
void read_peer(std::string_view bytes, const std::string&) {
  std::array<int, 2> ends{};
  CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()) == 0);
  std::vector<std::byte> sent(100'000), expected_short(8), expected_long(100'000);
  engine::PeerLink link(engine::Socket{ends[0]}, 1);
  const engine::Socket peer(ends[1]);
  const auto open = std::make_shared<int>(0);
  link.post_receive({0, 1}, expected_short.data(), std::ssize(expected_short), open);
  link.post_receive({0, 2}, expected_long.data(), std::ssize(expected_long), open);
  link.post_send({0, 3}, sent.data(), std::ssize(sent), open);
  const std::string_view taken = bytes.substr(0, 64 << 10);
  CHECK(::send(peer.descriptor(), taken.data(), taken.size(), 0) == static_cast<ssize_t>(taken.size()));
  ::shutdown(peer.descriptor(), SHUT_WR);
  while (link.is_connected()) link.read();
}

void read_operations(std::string_view bytes, const std::string&) {
  const auto pipeline = results::make_pipeline_replay(logs::read_operation_table(bytes, "fuzz.csv"), "fuzz.csv");
  if (pipeline.steps.size() > 64 || pipeline.stages > 64 || pipeline.dp_ranks > 64) return;  // time, not memory
  const results::StragglerReport report = results::find_stragglers(pipeline);
  CHECK(report.steps > 0 && report.workers > 0);
}

std::vector<FuzzTarget> make_targets() {
  const std::string fixtures = "tests/unit/extract/fixtures";
  std::vector<FuzzTarget> targets = {{"log", fixtures, read_as_log, ""},
                                     {"gzip", fixtures, read_compressed, ""},
                                     {"telemetry", "tests/fuzz/corpus/telemetry", read_telemetry, ""},
                                     {"trace", "tests/fuzz/corpus/trace", read_profile, ""},
                                     {"trace:kineto", "tests/fuzz/corpus/trace", read_any_trace, ""},
                                     {"trace:nsys", "tests/fuzz/corpus/nsys", read_any_trace, ""},
                                     {"trace:rocprofv3", "tests/fuzz/corpus/rocprofv3", read_any_trace, ""},
                                     {"trace:perfetto", "tests/fuzz/corpus/perfetto", read_any_trace, ""},
                                     {"pipeline", "tests/fuzz/corpus/pipeline", read_pipeline, ""},
                                     {"tracelens", "tests/fuzz/corpus/tracelens", read_totals, ""},
                                     {"operations", "tests/fuzz/corpus/operations", read_operations, ""},
                                     {"workbook", "tests/fuzz/corpus/workbook", read_workbook_bytes, ""},
                                     {"archive", "tests/fuzz/corpus/archive", read_archive, ""},
                                     {"index", "", read_index, ""},
                                     {"rendezvous", "tests/fuzz/corpus/rendezvous", read_rendezvous, ""},
                                     {"peer", "tests/fuzz/corpus/peer", read_peer, ""},
                                     {"result", "tests/fuzz/corpus/result", read_result, ""},
                                     {"tokenizer", "tests/fuzz/corpus/tokenizer", read_tokenizer, ""},
                                     {"sentencepiece", "tests/fuzz/corpus/sentencepiece", read_model, ""},
                                     {"jsonl", "tests/fuzz/corpus/jsonl", read_json_lines, ""},
                                     {"safetensors", "tests/fuzz/corpus/safetensors", read_safetensors, ""},
                                     {"checkpoint", "tests/fuzz/corpus/checkpoint", read_checkpoint, ""},
                                     {"manifest", "tests/fuzz/corpus/manifest", read_manifest_bytes, ""},
                                     {"model_config", "tests/fuzz/corpus/model_config", read_model_config, ""},
                                     {"published", "tests/fuzz/corpus/published", read_published, ""},
                                     {"parameters", "tests/fuzz/corpus/parameters", read_plan_parameters, ""},
                                     {"probe", "tests/cli/probes", read_probe, ""}};
  for (const logs::Dialect& dialect : logs::dialects()) {
    const std::string id(dialect.id);
    targets.push_back({"log:" + id, fixtures + "/" + id, id == "tfevents" ? read_events : read_as_log, id});
  }
  return targets;
}

}  // namespace

std::span<const FuzzTarget> fuzz_targets() {
  static const std::vector<FuzzTarget> targets = make_targets();
  return targets;
}

const FuzzTarget* find_fuzz_target(std::string_view name) {
  for (const FuzzTarget& target : fuzz_targets())
    if (target.name == name) return &target;
  return nullptr;
}

void run_fuzz_target(const FuzzTarget& target, std::string_view bytes) {
  try {
    target.read(bytes, target.format);
  } catch (const Error& error) {
    CHECK(!error.problems().empty() && !error.problems().front().what.empty());
  }
}

}  // namespace tprimat
