#include "fuzz/targets.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/check.h"
#include "base/error.h"
#include "data/megatron_index.h"
#include "extract/dialects.h"
#include "extract/dialects/tfrecord.h"
#include "extract/to_result.h"
#include "result/result_file.h"
#include "telemetry/telemetry_file.h"
#include "text/json.h"
#include "trace/profile_summary.h"
#include "unit/trace/zip_fixture.h"

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
  const ReadLog read = read_log_text(std::string(bytes), {format});
  if (std::hash<std::string_view>()(bytes) % 8 != 0) return;
  const RunResult result = make_result(read, "fuzz.log", {});
  check_figures(result);
  // What we write we can read.
  run_result_from_json(parse_json(print_json(run_result_to_json(result)), "fuzz"), "fuzz.json");
}

// As bytes of an archive, and, behind an odd first byte, as what an archive holds.
void read_compressed(std::string_view bytes, const std::string&) {
  if (bytes.empty()) return;
  const bool inside = (bytes.front() & 1) != 0 && bytes.front() != '\x1f';
  read_as_log(inside ? gzip_bytes(bytes.substr(1)) : std::string(bytes), "");
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

void read_profile(std::string_view bytes, const std::string&) { render_profile(summarise_profile(bytes, "fuzz")); }

// As the bytes of a workbook, and as the sheet inside one.
void read_workbook_bytes(std::string_view bytes, const std::string&) {
  if (bytes.substr(0, 2) == "PK") return read_profile(bytes, "");
  read_profile(
      make_workbook({{"gpu_timeline", std::string(bytes)}, {"kernel_summary", std::string(bytes)}}, std::string(bytes)),
      "");
}

void read_index(std::string_view bytes, const std::string&) {
  const int descriptor = ::memfd_create("fuzz", 0);
  CHECK(descriptor >= 0 && ::write(descriptor, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
  try {
    load_megatron_index("/proc/self/fd/" + std::to_string(descriptor), 4096);
  } catch (const Error&) {
    ::close(descriptor);
    throw;
  }
  ::close(descriptor);
}

std::vector<FuzzTarget> make_targets() {
  const std::string fixtures = "tests/unit/extract/fixtures";
  std::vector<FuzzTarget> targets = {{"log", fixtures, read_as_log, ""},
                                     {"gzip", fixtures, read_compressed, ""},
                                     {"telemetry", "tests/fuzz/corpus/telemetry", read_telemetry, ""},
                                     {"trace", "tests/fuzz/corpus/trace", read_profile, ""},
                                     {"workbook", "tests/fuzz/corpus/workbook", read_workbook_bytes, ""},
                                     {"index", "", read_index, ""}};
  for (const Dialect& dialect : dialects()) {
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
