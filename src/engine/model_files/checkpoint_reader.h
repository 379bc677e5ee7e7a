#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "model_files/checkpoint_folder.h"
#include "model_files/rank_file.h"
#include "model_files/whole_weights.h"
#include "parameters/parameters.h"
#include "text/json.h"

namespace tprimat::engine {

// Values that lie side by side both in a rank's part of a weight and in the whole weight.
struct ShardRun {
  int64_t whole = 0;  // index of the first in the whole weight
  int64_t local = 0;  // index of the first in the part
  int64_t count = 0;
  bool operator==(const ShardRun&) const = default;
};

// The local values [begin, end) of a shard, in their order: one run per row, or one per range of whole rows.
std::vector<ShardRun> shard_runs(const Shard& shard, int64_t begin, int64_t end);

// Reads one checkpoint, by whatever layout of ranks it was written. Not for several threads at once.
class CheckpointReader {
 public:
  // Opens the folder of one step and checks the manifest and the tables of all files; the values themselves are checked
  // when they are read, or by verify(). Throws Error that names what is damaged.
  explicit CheckpointReader(const std::filesystem::path& folder);

  int64_t step() const { return manifest_.step; }
  Json state() const;  // what the trainer gave to CheckpointWriter::start
  std::vector<NamedShape> weights(StateKind kind) const;

  // Reads all values and returns each damaged piece: the file, the kind, the weight and the bytes.
  std::vector<Problem> verify() const;

  // The values [begin, end) of this rank's part of the parameter; `values` has end − begin of them. Bits are those that
  // were written where T is the type that was written, else the value is converted. Throws Error where the whole weight
  // has another shape, is missing in part, or is damaged.
  template <class T>
  void read(StateKind kind, const Parameter& parameter, int64_t begin, std::span<T> values) const;
  template <class T>
  std::vector<T> read(StateKind kind, const Parameter& parameter) const;  // the whole part

  // The whole weight, row by row; for export.
  std::vector<float> read_whole(StateKind kind, const std::string& name) const;

 private:
  struct RankFile {
    std::string path;
    std::unique_ptr<MappedFile> bytes;
    RankFileTable table;
  };
  struct PieceView {
    const RankFile* file;
    const Piece* piece;
    mutable bool verified = false;
  };

  void open_rank(size_t rank);
  std::span<const std::byte> bytes_of(const PieceView& view) const;
  bool is_sound(const PieceView& view) const;
  static Problem damage(const PieceView& view);
  const std::vector<PieceView>& pieces_of(StateKind kind, const std::string& name) const;
  void check_shape(const Shard& wanted, const PieceView& found, const std::string& name) const;

  std::string folder_;
  CheckpointManifest manifest_;
  std::vector<RankFile> files_;
  std::map<std::pair<StateKind, std::string>, std::vector<PieceView>> pieces_;
};

// Tries the newest checkpoint of the directory first, reads it whole, and goes back to the one before where it is
// damaged or incomplete; `notes` says what was wrong with those. No folder: there is none that is sound.
struct FoundCheckpoint {
  std::optional<std::filesystem::path> folder;
  int64_t step = 0;
  std::vector<std::string> notes;
};
FoundCheckpoint find_newest_checkpoint(const std::filesystem::path& directory);

}  // namespace tprimat::engine
