#include "model_files/checkpoint_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <exception>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/files.h"
#include "model_files/checkpoint_folder.h"
#include "model_files/rank_file.h"

namespace tprimat::engine {
namespace {

namespace fs = std::filesystem;

// Held by rank 0 while it writes, so that two runs do not tidy up after each other. Ends with the process, however that
// ends. File systems without locks do without.
class DirectoryLock {
 public:
  explicit DirectoryLock(const fs::path& directory)
      : descriptor_(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    if (descriptor_ < 0 || ::flock(descriptor_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
    ::close(descriptor_);
    throw Error(Problem{"another run is writing a checkpoint into this folder", directory.string(),
                        "give each run its own folder"},
                ExitStatus::work_failed);
  }
  ~DirectoryLock() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;

 private:
  int descriptor_;
};

void create_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    throw Error(Problem{"cannot create the folder: " + error.message(), folder.string(), ""}, ExitStatus::work_failed);
}

}  // namespace

class CheckpointWriter::Job {
 public:
  explicit Job(CheckpointTarget target)
      : target_(std::move(target)), folder_(step_folder(target_.directory, target_.step)) {
    CHECK(target_.rank < target_.ranks && target_.step >= 0);
  }

  template <class T>
  void add(StateKind kind, const Parameter& parameter, int64_t begin, int64_t end, const T* values) {
    CHECK(!thread_.joinable() && 0 <= begin && begin <= end && end <= parameter.count());
    if (begin == end) return;
    table_.pieces.push_back({kind, parameter.name, parameter.shard, begin, end, sizeof(T), 0, 0});
    const auto* const bytes = reinterpret_cast<const std::byte*>(values);
    staged_.emplace_back(bytes, bytes + table_.pieces.back().bytes());
  }

  void start(const Json& state) {
    CHECK(!thread_.joinable());
    state_ = print_json_line(state);
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  }

  std::vector<std::string> wait() {
    if (thread_.joinable()) thread_.join();
    if (const auto error = std::exchange(error_, nullptr)) std::rethrow_exception(error);
    return std::exchange(notes_, {});
  }

 private:
  void run(const std::stop_token& stop) {
    try {
      write_all(stop);
    } catch (const Error& error) {
      const Problem& cause = error.problems().front();
      const std::string hint = cause.hint + (cause.hint.empty() ? "" : "; ") + "earlier checkpoints are untouched";
      error_ = std::make_exception_ptr(
          Error(Problem{fmt::format("the checkpoint of step {} was not written: {}", target_.step, cause.what),
                        cause.where, hint},
                ExitStatus::work_failed));
    } catch (...) {
      error_ = std::current_exception();
    }
    staged_.clear();
    std::error_code ignored;
    if (error_) fs::remove(folder_, ignored);  // only where nothing is in it
  }

  void write_all(const std::stop_token& stop) {
    create_folder(folder_);
    if (target_.rank != 0) return write_rank_file();
    const DirectoryLock lock(target_.directory);
    write_rank_file();
    CheckpointManifest manifest{target_.step, {}, state_};
    manifest.ranks.push_back(entry_of(table_));
    for (uint32_t rank = 1; rank < target_.ranks; ++rank) manifest.ranks.push_back(await_rank(rank, stop));
    write_file_atomically(folder_ / k_manifest_file, print_manifest(manifest));
    sync_folder(target_.directory);
    notes_ = remove_old_checkpoints(target_.directory, target_.step, target_.keep_last_n);
  }

  void write_rank_file() {
    table_.step = target_.step;
    table_.rank = target_.rank;
    table_.ranks = target_.ranks;
    table_.run = target_.run;
    for (size_t i = 0; i < staged_.size(); ++i) table_.pieces[i].checksum = checksum_of(staged_[i]);
    NewFile file(folder_ / rank_file_name(target_.rank, target_.ranks, target_.run));
    file.write(encode_rank_table(table_));
    for (std::vector<std::byte>& piece : staged_) {
      file.write({reinterpret_cast<const char*>(piece.data()), piece.size()});
      std::vector<std::byte>().swap(piece);
    }
    file.finish();
  }

  CheckpointManifest::RankEntry entry_of(const RankFileTable& table) const {
    return {rank_file_name(table.rank, table.ranks, table.run), table.file_bytes, table.checksum};
  }

  // A file appears under its name when it is whole.
  CheckpointManifest::RankEntry await_rank(uint32_t rank, const std::stop_token& stop) const {
    const fs::path path = folder_ / rank_file_name(rank, target_.ranks, target_.run);
    const auto begin = SteadyClock::now();
    std::chrono::milliseconds pause{1};
    std::error_code ignored;
    while (!fs::exists(path, ignored)) {
      if (stop.stop_requested() || seconds_since(begin) > target_.patience_seconds)
        throw Error(Problem{fmt::format("rank {} of {} has not written its part within {:.0f} s", rank, target_.ranks,
                                        target_.patience_seconds),
                            path.string(), "see that rank's message; all ranks must reach the folder by the same path"},
                    ExitStatus::work_failed);
      std::this_thread::sleep_for(pause);
      pause = std::min(2 * pause, std::chrono::milliseconds(200));
    }
    const MappedFile file(path);
    const RankFileTable table = parse_rank_table(file.bytes(), path.string());
    if (table.step != target_.step || table.rank != rank || table.ranks != target_.ranks || table.run != target_.run)
      throw Error(Problem{"is the file of another rank or run", path.string(), ""}, ExitStatus::work_failed);
    return entry_of(table);
  }

  CheckpointTarget target_;
  fs::path folder_;
  RankFileTable table_;
  std::vector<std::vector<std::byte>> staged_;  // the bytes of each piece
  std::string state_;
  std::vector<std::string> notes_;
  std::exception_ptr error_;
  std::jthread thread_;  // last: it ends before what it uses
};

CheckpointWriter::CheckpointWriter(CheckpointTarget target) : job_(std::make_unique<Job>(std::move(target))) {}
CheckpointWriter::~CheckpointWriter() = default;

void CheckpointWriter::add(StateKind kind, const Parameter& parameter, int64_t begin, int64_t end,
                           const float* values) {
  job_->add(kind, parameter, begin, end, values);
}

void CheckpointWriter::add(StateKind kind, const Parameter& parameter, int64_t begin, int64_t end,
                           const double* values) {
  job_->add(kind, parameter, begin, end, values);
}

void CheckpointWriter::start(const Json& state) { job_->start(state); }
std::vector<std::string> CheckpointWriter::wait() { return job_->wait(); }

}  // namespace tprimat::engine
