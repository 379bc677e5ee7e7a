#include "program/step_hooks.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "base/gzip.h"
#include "base/log.h"
#include "base/output.h"
#include "command_line/session.h"
#include "device/parallel.h"
#include "probe/gemm_probe.h"
#include "probe/gpu_probes.h"
#include "train/log_line.h"

namespace tprimat::engine {
namespace {

constexpr int64_t k_min_steps_to_halve = 6;  // after the first step

// What would fail at the end of the window fails now.
void require_writable(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code failure;
  if (fs::exists(path, failure) && !fs::is_regular_file(path, failure))
    throw Error(Problem{"cannot write the trace: this is not a regular file", path, "choose another path"});
  const fs::path folder = fs::absolute(path).parent_path();
  fs::create_directories(folder, failure);
  if (failure || ::access(folder.c_str(), W_OK) != 0)
    throw Error(Problem{"cannot write the trace: " + (failure ? failure.message() : std::string("no permission")),
                        folder.string(), "choose another path"});
}

}  // namespace

StepOutput::StepOutput(const TrainSpec& spec, const std::string& tensorboard, int64_t first_step) : spec_(spec) {
  if (const char* path = std::getenv("TPRIMAT_STEPS")) open_steps_file(path, first_step);
  if (tensorboard.empty()) return;
  const auto resumed = first_step > 1 ? std::optional<int64_t>(first_step) : std::nullopt;
  events_.emplace(tensorboard, unix_time_seconds(), resumed);
}

void StepOutput::show_extra(const StepRecord& record) {
  print_result(fmt::format(" profiled step {:8}, after the training | elapsed time (ms): {:.1f}\n", record.step,
                           record.time_seconds * 1e3));
  flush_stdout();
  const char* path = std::getenv("TPRIMAT_STEPS");
  if (path == nullptr) return;
  if (!extra_file_) extra_file_.emplace(std::filesystem::path(path).replace_filename("profiled_steps.jsonl"));
  extra_file_->write_line(step_record_to_line(record));
}

void StepOutput::show(const StepRecord& record) {
  print_result(render_log_line(record, spec_) + "\n");
  if (record.validation_loss) print_result(render_validation_line(record) + "\n");
  flush_stdout();
  if (steps_file_) steps_file_->write_line(step_record_to_line(record));
  if (events_) write_events(record);
}

// A resumed training keeps the records of the steps before; later ones are made again.
void StepOutput::open_steps_file(const std::string& path, int64_t first_step) {
  const std::vector<StepRecord> earlier = first_step > 1 ? read_step_records(path) : std::vector<StepRecord>();
  steps_file_.emplace(path);
  for (const StepRecord& record : earlier)
    if (record.step < first_step) steps_file_->write_line(step_record_to_line(record));
}

void StepOutput::write_events(const StepRecord& record) {
  std::vector<EventScalar> scalars{{"train/seconds_per_step", record.time_seconds}};
  const auto add = [&](std::string_view tag, const std::optional<double>& value) {
    if (value) scalars.push_back({tag, *value});
  };
  add("train/loss", record.loss);
  add("train/learning_rate", record.learning_rate);
  add("train/grad_norm", record.grad_norm);
  add("train/loss_scale", record.loss_scale);
  add("validation/loss", record.validation_loss);
  scalars.push_back({"train/tokens_per_second", static_cast<double>(spec_.tokens_per_step()) / record.time_seconds});
  events_->write_step(record.step, record.unix_time.value_or(unix_time_seconds()), scalars);
}

void KernelNotes::note(int64_t step) {
  if (report_ == nullptr) return;
  const bool first = step == first_step_;
  for (const std::string& warning :
       first ? take_shared_warnings(*report_, world_) : take_own_warnings(*report_, world_))
    log_warning(warning);
  if (!first || world_.rank() != 0) return;
  if (const std::string line = render_kernel_line(*report_); !line.empty()) print_result(line + "\n");
}

StepProfile::StepProfile(Engine& engine, const Backend& backend, const TrainSpec& spec, int64_t first_step)
    : engine_(engine), backend_(backend), spec_(spec) {
  const int64_t others = spec.steps - first_step;
  const bool on_gpu = backend.accelerator != nullptr, halves = on_gpu && others >= k_min_steps_to_halve;
  first_plain_ = first_step + 2;  // the second step records
  first_watched_ = first_step + 1 + (halves ? others / 2 : 0);
  first_timed_ = first_watched_ + (on_gpu ? 1 : 0);
}

void StepProfile::note(const StepRecord& record) {
  const int64_t step = record.step;
  if (step >= first_plain_ && step < first_watched_) ++plain_steps_, plain_seconds_ += record.time_seconds;
  if (step + 1 == first_watched_) engine_.use_clock(&clock_);
  if (step + 1 == first_timed_) clock_.clear();
  if (step >= first_timed_) ++steps_, seconds_ += record.time_seconds;
}

std::optional<double> StepProfile::measure_peak() const {
  if (backend_.accelerator == nullptr) {
    const std::optional<GemmPeak> peak = measure_gemm_peak(spec_.precision, thread_count());
    return peak ? std::optional<double>(peak->flops_per_second) : std::nullopt;
  }
  return measure_gpu_peak(
      {backend_.accelerator, backend_.f32_ops, backend_.bf16_ops, backend_.f16_ops, backend_.products},
      brief_gpu_plan(), spec_.precision);
}

void StepProfile::print() const {
  if (steps_ == 0)
    return log_warning(backend_.accelerator == nullptr
                           ? "--profile needs at least two steps: it excludes the first"
                           : "--profile needs at least three steps on a GPU: it excludes the first two");
  OpReport report = make_op_report(clock_, steps_, seconds_, measure_peak());
  if (plain_steps_ > 0) report.plain_step_seconds = plain_seconds_ / static_cast<double>(plain_steps_);
  print_result(render_op_report(report));
}

StepTrace::StepTrace(Engine& engine, const Backend& backend, const TrainSpec& spec, int64_t first_step)
    : engine_(engine), backend_(backend), spec_steps_(spec.steps), begin_(first_step), request_(op_trace_request()) {
  if (!request_) return;
  const bool is_split = request_->last_step > spec.steps && !is_extra();
  if (is_split || request_->last_step < first_step)
    throw Error(Problem{fmt::format("steps {} to {} are outside this training's steps {} to {}", request_->first_step,
                                    request_->last_step, first_step, spec.steps),
                        "TPRIMAT_PROFILE",
                        fmt::format("choose steps of this training, or later ones than step {} alone", spec.steps)});
  if (request_->kind == OpTraceRequest::Kind::own) {
    if (writes()) require_writable(request_->path_of(engine.ranks().world->rank()));
    clock_.keep_events();
  } else if (backend.accelerator != nullptr) {
    clock_.name_ranges_only();
  } else {
    throw Error(Problem{"GPU profilers cannot record a training on the CPU", "TPRIMAT_PROFILE",
                        "set TPRIMAT_PROFILE=own:11:15:PATH"});
  }
  begin_before(first_step);
}

void StepTrace::note(const StepRecord& record) {
  if (!request_) return;
  const auto end = SteadyClock::now();
  const auto length = std::chrono::duration<double>(record.time_seconds);
  if (record.step >= request_->first_step && record.step <= request_->last_step)
    steps_.push_back({record.step, end - std::chrono::duration_cast<SteadyClock::duration>(length), end});
}

void StepTrace::begin_before(int64_t step) {
  const bool is_own = request_->kind == OpTraceRequest::Kind::own;
  const int64_t first = std::max(request_->first_step, begin_);  // a resumed training may begin within the window
  if (step == std::max(first - (is_own ? 1 : 0), begin_)) engine_.use_clock(&clock_);
  if (step != first) return;
  clock_.forget_events();
  if (!is_own) backend_.accelerator->watch_with_profiler(true);
}

void StepTrace::finish(int64_t step) {
  if (!request_) return;
  if (step != request_->last_step) return begin_before(step + 1);
  engine_.use_clock(nullptr);
  if (request_->kind != OpTraceRequest::Kind::own) return backend_.accelerator->watch_with_profiler(false);
  if (!writes()) return;
  try {
    write();
  } catch (const Error& error) {
    if (!is_extra()) throw;
    log_warning(to_string(error.problems().front()));  // the training itself is complete
  }
}

void StepTrace::write() const {
  const Communicator& world = *engine_.ranks().world;
  std::vector<OpEvent> events = clock_.events();
  events.insert(events.end(), checkpoints_.begin(), checkpoints_.end());
  const std::string text = render_op_trace(events, steps_, {world.rank(), world.size()});
  const std::string path = request_->path_of(world.rank());
  write_file_atomically(path, path.ends_with(".gz") ? gzip(text) : text);
}

void StepTrace::note_checkpoint(SteadyClock::time_point begin) {
  if (!request_ || steps_.empty()) return;
  OpEvent event{"checkpoint", OpKind::range, {.phase = OpPhase::checkpoint}, {}, {}, begin, SteadyClock::now()};
  checkpoints_.push_back(std::move(event));
}

}  // namespace tprimat::engine
