#include "model_files/checkpoint_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace tprimat::engine {
namespace {

// Clips a run to [begin, end) and joins it to the one before where both go on.
void add_run(std::vector<ShardRun>& runs, ShardRun run, int64_t begin, int64_t end) {
  const int64_t skipped = std::max<int64_t>(0, begin - run.local);
  run = {run.whole + skipped, run.local + skipped, std::min(run.local + run.count, end) - run.local - skipped};
  if (run.count <= 0) return;
  if (!runs.empty() && runs.back().whole + runs.back().count == run.whole)
    runs.back().count += run.count;
  else
    runs.push_back(run);
}

namespace fs = std::filesystem;

constexpr const char* k_damage_hint = "resume from an earlier checkpoint in the same directory";

// Copies values that are stored as S to T's.
template <class S, class T>
void copy_values(const std::byte* stored, std::span<T> values) {
  if constexpr (std::is_same_v<S, T>) {
    std::memcpy(values.data(), stored, values.size_bytes());
  } else {
    for (size_t i = 0; i < values.size(); ++i) {
      S value;
      std::memcpy(&value, stored + i * sizeof value, sizeof value);
      values[i] = static_cast<T>(value);
    }
  }
}

// Fills a part of a weight from pieces of other parts of it, run by run.
template <class T>
class Assembly {
 public:
  Assembly(const Shard& shard, int64_t begin, std::span<T> values)
      : begin_(begin), values_(values), filled_(values.size(), false) {
    runs_ = shard_runs(shard, begin, begin + static_cast<int64_t>(values.size()));
    std::sort(runs_.begin(), runs_.end(), by_whole);
  }

  struct Match {
    int64_t local, stored, count;  // in our part; in the piece
  };

  // What of a piece belongs to this part.
  std::vector<Match> match(const Piece& piece) const {
    std::vector<Match> found;
    for (const ShardRun& theirs : shard_runs(piece.shard, piece.begin, piece.end)) {
      const int64_t end = theirs.whole + theirs.count;
      auto ours = std::upper_bound(runs_.begin(), runs_.end(), ShardRun{theirs.whole, 0, 0}, by_whole);
      if (ours != runs_.begin()) --ours;
      for (; ours != runs_.end() && ours->whole < end; ++ours) {
        const int64_t first = std::max(ours->whole, theirs.whole);
        const int64_t count = std::min(ours->whole + ours->count, end) - first;
        if (count > 0)
          found.push_back(
              {ours->local + first - ours->whole, theirs.local + first - theirs.whole - piece.begin, count});
      }
    }
    return found;
  }

  void take(const std::vector<Match>& matches, const Piece& piece, const std::byte* stored) {
    for (const Match& match : matches) {
      const auto at = static_cast<size_t>(match.local - begin_);
      const auto target = values_.subspan(at, static_cast<size_t>(match.count));
      const std::byte* const source = stored + match.stored * piece.bytes_per_value;
      piece.bytes_per_value == 4 ? copy_values<float, T>(source, target) : copy_values<double, T>(source, target);
      std::fill_n(filled_.begin() + static_cast<int64_t>(at), match.count, true);
    }
  }

  // Index within the part of the first value that no piece held.
  std::optional<int64_t> first_missing() const {
    const auto found = std::find(filled_.begin(), filled_.end(), false);
    if (found == filled_.end()) return std::nullopt;
    return begin_ + (found - filled_.begin());
  }

 private:
  static bool by_whole(const ShardRun& a, const ShardRun& b) { return a.whole < b.whole; }

  int64_t begin_;
  std::span<T> values_;
  std::vector<bool> filled_;
  std::vector<ShardRun> runs_;  // in the order of the whole weight
};

}  // namespace

std::vector<ShardRun> shard_runs(const Shard& shard, int64_t begin, int64_t end) {
  std::vector<ShardRun> runs;
  const bool whole_rows = shard.cols == shard.whole_cols;
  int64_t local = 0;  // of the range's first value
  for (const RowRange& range : shard.rows) {
    const int64_t values = range.count * shard.cols;
    const int64_t first = range.first * shard.whole_cols + shard.first_col;
    if (local < end && local + values > begin) {
      if (whole_rows) {
        add_run(runs, {first, local, values}, begin, end);
      } else {
        const int64_t last_row = (std::min(end - local, values) - 1) / shard.cols;
        for (int64_t row = std::max<int64_t>(0, begin - local) / shard.cols; row <= last_row; ++row)
          add_run(runs, {first + row * shard.whole_cols, local + row * shard.cols, shard.cols}, begin, end);
      }
    }
    local += values;
  }
  return runs;
}

CheckpointReader::CheckpointReader(const fs::path& folder)
    : folder_(folder.string()), manifest_(read_manifest(folder)), files_(manifest_.ranks.size()) {
  for (size_t rank = 0; rank < files_.size(); ++rank) open_rank(rank);
  for (const RankFile& file : files_)
    for (const Piece& piece : file.table.pieces) pieces_[{piece.kind, piece.name}].push_back({&file, &piece});
}

void CheckpointReader::open_rank(size_t rank) {
  const CheckpointManifest::RankEntry& entry = manifest_.ranks[rank];
  RankFile& file = files_[rank];
  const fs::path path = fs::path(folder_) / entry.file;
  file.path = path.string();
  file.bytes = std::make_unique<MappedFile>(path);
  const auto size = static_cast<int64_t>(file.bytes->bytes().size());
  if (size != entry.bytes)
    throw Error(Problem{fmt::format("has {} bytes, but {} were written", size, entry.bytes), file.path, k_damage_hint});
  file.table = parse_rank_table(file.bytes->bytes(), file.path);
  if (file.table.checksum != entry.checksum || file.table.step != manifest_.step || file.table.rank != rank ||
      file.table.ranks != files_.size())
    throw Error(Problem{"is not the file that the manifest lists", file.path, k_damage_hint});
}

Json CheckpointReader::state() const { return parse_json(manifest_.state, ""); }

std::vector<NamedShape> CheckpointReader::weights(StateKind kind) const {
  std::vector<NamedShape> shapes;
  for (const auto& [key, views] : pieces_) {
    const Shard& shard = views.front().piece->shard;
    if (key.first == kind) shapes.push_back({key.second, shard.whole_rows, shard.whole_cols});
  }
  return shapes;
}

std::span<const std::byte> CheckpointReader::bytes_of(const PieceView& view) const {
  return view.file->bytes->bytes().subspan(static_cast<size_t>(view.piece->offset),
                                           static_cast<size_t>(view.piece->bytes()));
}

bool CheckpointReader::is_sound(const PieceView& view) const {
  if (!view.verified) view.verified = checksum_of(bytes_of(view)) == view.piece->checksum;
  return view.verified;
}

Problem CheckpointReader::damage(const PieceView& view) {
  return {fmt::format("{}: the checksum is wrong", describe_piece(*view.piece)), view.file->path, k_damage_hint};
}

std::vector<Problem> CheckpointReader::verify() const {
  std::vector<Problem> problems;
  for (const auto& [key, views] : pieces_)
    for (const PieceView& view : views)
      if (!is_sound(view)) problems.push_back(damage(view));
  return problems;
}

const std::vector<CheckpointReader::PieceView>& CheckpointReader::pieces_of(StateKind kind,
                                                                            const std::string& name) const {
  const auto found = pieces_.find({kind, name});
  if (found == pieces_.end())
    throw Error(Problem{fmt::format("holds no {} of {}", enum_name(kind), name), folder_,
                        "use a checkpoint of this model: this one is of another"});
  return found->second;
}

void CheckpointReader::check_shape(const Shard& wanted, const PieceView& found, const std::string& name) const {
  const Shard& stored = found.piece->shard;
  if (stored.whole_rows == wanted.whole_rows && stored.whole_cols == wanted.whole_cols) return;
  throw Error(Problem{fmt::format("{} is {}x{} in the checkpoint and {}x{} in the model", name, stored.whole_rows,
                                  stored.whole_cols, wanted.whole_rows, wanted.whole_cols),
                      found.file->path, "use a checkpoint of this model: this one is of another"});
}

template <class T>
void CheckpointReader::read(StateKind kind, const Parameter& parameter, int64_t begin, std::span<T> values) const {
  CHECK(begin >= 0 && begin + static_cast<int64_t>(values.size()) <= parameter.count());
  Assembly<T> assembly(parameter.shard, begin, values);
  for (const PieceView& view : pieces_of(kind, parameter.name)) {
    check_shape(parameter.shard, view, parameter.name);
    const auto matches = assembly.match(*view.piece);
    if (matches.empty()) continue;
    if (!is_sound(view)) throw Error(damage(view));
    assembly.take(matches, *view.piece, bytes_of(view).data());
  }
  if (const auto missing = assembly.first_missing()) {
    const int64_t index = parameter.shard.whole_index(*missing);
    throw Error(Problem{fmt::format("{} of {}: no rank has written row {}, column {}", enum_name(kind), parameter.name,
                                    index / parameter.shard.whole_cols, index % parameter.shard.whole_cols),
                        folder_, k_damage_hint});
  }
}

template <class T>
std::vector<T> CheckpointReader::read(StateKind kind, const Parameter& parameter) const {
  std::vector<T> values(static_cast<size_t>(parameter.count()));
  read<T>(kind, parameter, 0, std::span<T>(values));
  return values;
}

template void CheckpointReader::read(StateKind, const Parameter&, int64_t, std::span<float>) const;
template void CheckpointReader::read(StateKind, const Parameter&, int64_t, std::span<double>) const;
template std::vector<float> CheckpointReader::read(StateKind, const Parameter&) const;
template std::vector<double> CheckpointReader::read(StateKind, const Parameter&) const;

std::vector<float> CheckpointReader::read_whole(StateKind kind, const std::string& name) const {
  const Shard& shard = pieces_of(kind, name).front().piece->shard;
  Parameter whole;
  whole.name = name;
  whole.shard = Shard::whole(shard.whole_rows, shard.whole_cols);
  int64_t stored = 0;  // before the memory is taken: a damaged table must not ask for more than there is
  for (const PieceView& view : pieces_of(kind, name)) stored += view.piece->count();
  if (stored < whole.count())
    throw Error(Problem{
        fmt::format("{} of {}: {} values are stored instead of {}", enum_name(kind), name, stored, whole.count()),
        folder_, k_damage_hint});
  return read<float>(kind, whole);
}

FoundCheckpoint find_newest_checkpoint(const fs::path& directory) {
  FoundCheckpoint found;
  for (const auto& [step, folder] : list_step_folders(directory)) {
    std::error_code ignored;
    if (!fs::exists(folder / k_manifest_file, ignored)) {
      found.notes.push_back(fmt::format("{}: was never completed (no {})", folder.string(), k_manifest_file));
      continue;
    }
    try {
      const std::vector<Problem> problems = CheckpointReader(folder).verify();
      for (const Problem& problem : problems) found.notes.push_back(fmt::format("{}: {}", problem.where, problem.what));
      if (!problems.empty()) continue;
      found.folder = folder;
      found.step = step;
      return found;
    } catch (const Error& error) {
      const Problem& problem = error.problems().front();
      found.notes.push_back(fmt::format("{}: {}", problem.where, problem.what));
    }
  }
  return found;
}

}  // namespace tprimat::engine
