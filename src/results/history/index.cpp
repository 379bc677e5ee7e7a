#include "history/index.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <cmath>
#include <cstdlib>
#include <ctime>

#include "base/build_info.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/parallel_for.h"
#include "compare/audit.h"
#include "compare/contender.h"
#include "compare/copies.h"
#include "compare/load_runs.h"
#include "history/database.h"
#include "result/metrics.h"
#include "result/summary.h"
#include "text/fast_json.h"

namespace tprimat::results {
namespace {

template <class T>
std::string name_of(const std::optional<T>& value) {
  return value ? std::string(enum_name(*value)) : "";
}

std::string hash_of(const std::string& key) {
  if (key.empty()) return "";
  const XXH128_hash_t hash = XXH3_128bits(key.data(), key.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

// The status is stored beside it, and a missing rate is a missing figure.
std::string find_fault(const RunResult& result) {
  for (const Finding& finding : audit_contender({"", "", {{"", result}}, {}}))
    if (finding.severity == Severity::error && finding.code != "status" && finding.code != "rate_missing" &&
        finding.code != "model_missing")
      return finding.sentence;
  return "";
}

namespace fs = std::filesystem;

constexpr int k_index_version = 6;

// Facts of a file without reading it.
struct Stamp {
  int64_t size = 0, mtime_ns = 0;
  bool operator==(const Stamp&) const = default;
};

struct Row {
  Stamp stamp;
  std::string hash;
  int64_t seen_ns = 0;        // when it was read
  std::string facts, reason;  // a HistoryEntry as JSON, or why it is not a result
};
using Rows = std::map<std::string, Row>;  // by path below the folder

int64_t now_ns() {
  std::timespec now{};
  std::timespec_get(&now, TIME_UTC);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

std::vector<fs::path> list_tree(const fs::path& folder) {
  try {
    return list_result_files(folder, FolderReach::whole_of_tree);
  } catch (const fs::filesystem_error& error) {
    throw Error(Problem{fmt::format("cannot be read: {}", error.code().message()), folder.string(),
                        "give --history the directory that holds the results"});
  }
}

std::map<std::string, Stamp> list_folder(const fs::path& folder) {
  std::map<std::string, Stamp> listing;
  for (const fs::path& path : list_tree(folder)) {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) continue;
    listing[path.lexically_relative(folder).string()] = {
        status.st_size, int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec};
  }
  return listing;
}

// Lock for the time that this process works on an index; the system releases it when the process ends.
class IndexLock {
 public:
  explicit IndexLock(const std::string& path) : descriptor_(::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0666)) {
    if (descriptor_ < 0) throw DatabaseError("the index cannot be locked", SQLITE_CANTOPEN);
    int code = 0;
    do code = ::flock(descriptor_, LOCK_EX);
    while (code != 0 && errno == EINTR);
    if (code == 0) return;
    ::close(descriptor_);
    throw DatabaseError("the index cannot be locked", SQLITE_CANTOPEN);
  }
  ~IndexLock() { ::close(descriptor_); }
  IndexLock(const IndexLock&) = delete;
  IndexLock& operator=(const IndexLock&) = delete;

 private:
  int descriptor_;
};

std::string hash_text(const std::string& text) { return fmt::format("{:016x}", XXH3_64bits(text.data(), text.size())); }

// Reads the file again if its content has changed.
Row read_row(const fs::path& path, const Stamp& stamp, const Row* known) {
  Row row{stamp, "", now_ns(), "", ""};
  const ReadOutcome read = read_result_file(path, [&](const std::string& text) {
    row.hash = hash_text(text);
    return known == nullptr || known->hash != row.hash;
  });
  if (read.result)
    row.facts = print_json_line(to_json(make_entry(*read.result)));
  else if (!read.problems.empty())
    row.reason = read.problems.front().what;
  else
    row.facts = known->facts, row.reason = known->reason;
  return row;
}

// A file may change twice within a tick of its clock: one that was read so soon after a change is read once more.
bool is_current(const Row& row, const Stamp& stamp) {
  constexpr int64_t k_tick_ns = 2'000'000'000;
  return row.stamp == stamp && row.stamp.mtime_ns < row.seen_ns - k_tick_ns;
}

std::string made_by() {
  const BuildInfo build = build_info();
  return fmt::format("{} {} {}", k_index_version, build.version, build.revision);
}

// True if an index of another version was discarded.
bool prepare_tables(Database& database) {
  database.run("CREATE TABLE IF NOT EXISTS about (made_by TEXT)");
  std::string maker;
  {
    Statement read(database, "SELECT made_by FROM about");
    if (read.step()) maker = read.text(0);
  }
  if (maker != made_by()) {
    database.run("DROP TABLE IF EXISTS files; DELETE FROM about");
    Statement(database, "INSERT INTO about VALUES (?)").bind(0, made_by()).step();
  }
  database.run(
      "CREATE TABLE IF NOT EXISTS files (path TEXT PRIMARY KEY, size INTEGER, mtime_ns INTEGER, hash TEXT, seen_ns "
      "INTEGER, "
      "facts TEXT, reason TEXT)");
  return !maker.empty() && maker != made_by();
}

Rows read_rows(Database& database) {
  Rows rows;
  Statement read(database, "SELECT path, size, mtime_ns, hash, seen_ns, facts, reason FROM files");
  while (read.step())
    rows[read.text(0)] = {{read.number(1), read.number(2)}, read.text(3), read.number(4), read.text(5), read.text(6)};
  return rows;
}

void write_row(Statement& write, const std::string& path, const Row& row) {
  write.bind(0, path).bind(1, row.stamp.size).bind(2, row.stamp.mtime_ns).bind(3, row.hash).bind(4, row.seen_ns);
  write.bind(5, row.facts).bind(6, row.reason).step();
  write.reset();
}

// New and changed files.
Rows read_changed(const fs::path& folder, const std::map<std::string, Stamp>& listing, const Rows& known) {
  std::vector<std::pair<std::string, Row>> changed;
  for (const auto& [path, stamp] : listing) {
    const auto row = known.find(path);
    if (row == known.end() || !is_current(row->second, stamp)) changed.emplace_back(path, Row{stamp, "", 0, "", ""});
  }
  parallel_for(changed.size(), [&](size_t i) {
    auto& [path, row] = changed[i];
    const auto before = known.find(path);
    row = read_row(folder / path, row.stamp, before == known.end() ? nullptr : &before->second);
  });
  return Rows(std::make_move_iterator(changed.begin()), std::make_move_iterator(changed.end()));
}

void add_file(IndexedFolder& folder, simdjson::dom::parser& parser, const std::string& path, const Row& row) {
  if (row.facts.empty()) return folder.skipped.push_back({path, row.reason});
  IndexedFile file{path, {}, 0};
  FastElement json;
  if (parser.parse(row.facts).get(json) != simdjson::SUCCESS || !read_fast(json, file.entry))
    throw DatabaseError("a row cannot be read", SQLITE_CORRUPT);
  file.unix_time = parse_timestamp(file.entry.timestamp).value_or(static_cast<double>(row.stamp.mtime_ns) / 1e9);
  folder.files.push_back(std::move(file));
}

IndexedFolder update_index(const fs::path& folder, const std::string& index_path) {
  const auto listing = list_folder(folder);
  Database database(index_path);
  database.run("BEGIN IMMEDIATE");
  IndexedFolder result;
  if (prepare_tables(database)) result.note = "the index came from another version of this program and is rebuilt";
  Rows rows = read_rows(database);
  Statement remove(database, "DELETE FROM files WHERE path = ?");
  result.files_gone = std::erase_if(rows, [&](const auto& row) {
    if (listing.contains(row.first)) return false;
    remove.bind(0, row.first).step();
    remove.reset();
    return true;
  });
  Statement write(database, "INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?, ?, ?)");
  for (auto& [path, row] : read_changed(folder, listing, rows)) {
    write_row(write, path, row);
    rows[path] = row;
    ++result.files_read;
  }
  simdjson::dom::parser parser;
  for (const auto& [path, row] : rows) add_file(result, parser, path, row);
  database.run("COMMIT");
  return result;
}

bool is_damage(const DatabaseError& error) {
  return error.code() == SQLITE_CORRUPT || error.code() == SQLITE_NOTADB || error.code() == SQLITE_ERROR;
}

IndexedFolder use_index(const fs::path& folder, const std::string& path) {
  const IndexLock lock(path + ".lock");
  const auto at_path = [&](IndexedFolder result) {
    result.index_path = path;
    return result;
  };
  try {
    return at_path(update_index(folder, path));
  } catch (const DatabaseError& error) {
    if (!is_damage(error)) throw;
    for (const char* suffix : {"", "-journal", "-wal", "-shm"}) fs::remove(path + suffix);
    IndexedFolder result = at_path(update_index(folder, path));
    result.note = fmt::format("the index was damaged ({}) and is rebuilt", error.what());
    return result;
  }
}

// In the folder itself, else in the user's cache; empty if neither is writable.
std::string choose_index_path(const fs::path& folder) {
  if (::access(folder.c_str(), W_OK) == 0) return (folder / k_index_name).string();
  const char *cache = std::getenv("XDG_CACHE_HOME"), *home = std::getenv("HOME");
  fs::path place = cache != nullptr && *cache != '\0' ? fs::path(cache)
                   : home != nullptr                  ? fs::path(home) / ".cache"
                                                      : fs::path();
  if (place.empty()) return "";
  place /= "tprimat";
  std::error_code error;
  fs::create_directories(place, error);
  if (error || ::access(place.c_str(), W_OK) != 0) return "";
  return (place / fmt::format("history-{}.sqlite", hash_text(fs::canonical(folder).string()))).string();
}

}  // namespace

std::string describe_series(const SeriesKey& key) {
  std::string text = key.model.empty() ? "unknown model" : key.model;
  const auto add = [&](const std::string& word) { text += word.empty() ? "" : ", " + word; };
  const auto platform = parse_enum<Platform>(key.platform);
  const auto framework = parse_enum<Framework>(key.framework);
  add(platform ? std::string(display_name(*platform)) : "unknown platform");
  if (framework) text += " " + std::string(display_name(*framework));
  if (!key.installation.empty()) text += "@" + key.installation;
  add(key.device_count > 1 ? fmt::format("{} x {}", key.device_count, key.device) : key.device);
  add(key.precision);
  if (key.global_batch_size > 0) add(fmt::format("GBS {}", key.global_batch_size));
  if (key.sequence_length > 0) add(fmt::format("SL {}", key.sequence_length));
  add(key.strategy);
  return text;
}

HistoryEntry make_entry(const RunResult& result) {
  HistoryEntry entry;
  entry.series = {.model = result.model_info.name,
                  .framework = name_of(result.framework),
                  .platform = name_of(result.platform),
                  .device = result.gpu_info.device_name,
                  .precision = name_of(result.precision),
                  .strategy = result.parallelism_config.strategy_name.value_or(""),
                  .installation = result.framework_installation.value_or(""),
                  .device_count = device_count(result).value_or(0),
                  .global_batch_size = result.training_config.global_batch_size.value_or(0),
                  .sequence_length = result.training_config.sequence_length.value_or(0)};
  entry.timestamp = result.timestamp;
  entry.status = result.status;
  entry.measurement = hash_of(measurement_key(result));
  entry.work = hash_of(state_work(result));
  entry.dataset = result.dataset.value_or("");
  entry.fault = find_fault(result);
  for (const Metric& metric : metrics())
    if (const auto figure = metric.read(result); figure && std::isfinite(figure->value))
      entry.figures[std::string(metric.key)] = *figure;
  return entry;
}

IndexedFolder index_folder(const fs::path& folder) {
  if (!fs::is_directory(folder))
    throw Error(Problem{"is not a directory", folder.string(), "give --history the directory that holds the results"});
  const std::string path = choose_index_path(folder);
  std::string why = "neither the folder nor the user's cache is writable";
  try {
    if (!path.empty()) return use_index(folder, path);
  } catch (const DatabaseError& error) {
    why = error.what();
  } catch (const fs::filesystem_error& error) {
    why = error.code().message();
  }
  IndexedFolder result = update_index(folder, ":memory:");
  result.note = fmt::format("there is no index, so all files are read each time: {}", why);
  return result;
}

}  // namespace tprimat::results
