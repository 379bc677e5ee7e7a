// Whatever happens to the files of a checkpoint is found, named, and an earlier one is used.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "base/files.h"
#include "model_files/checkpoint_folder.h"
#include "model_files/checkpoint_reader.h"
#include "unit/model_files/expect_error.h"
#include "unit/model_files/sample_checkpoint.h"
#include "unit/temporary_folder.h"

namespace tprimat::engine {
namespace {

namespace fs = std::filesystem;
using test::TemporaryFolder;

// In place: emptying a file first makes some file systems wait for the disk.
void overwrite(const fs::path& path, const std::string& bytes) {
  std::fstream(path, std::ios::binary | std::ios::in | std::ios::out) << bytes;
  fs::resize_file(path, bytes.size());
}

std::vector<fs::path> files_of(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) files.push_back(entry.path());
  return files;
}

bool is_found_damaged(const fs::path& folder) {
  try {
    return !CheckpointReader(folder).verify().empty();
  } catch (const Error& error) {
    return !error.problems().front().what.empty();
  }
}

// Two ranks, two weights, three kinds: small enough to change every byte.
fs::path write_two_ranks(const fs::path& directory, int64_t step) {
  ModelSpec model = test::tiny_llama();
  model.num_layers = 1;
  for (const uint32_t rank : {1u, 0u}) {
    CheckpointWriter writer({directory, step, rank, 2});
    for (const StateKind kind : test::k_all_kinds) {
      Parameter part;
      part.name = "final_norm.weight";
      part.shard = {6, 1, {{3 * rank, 3}}, 0, 1};
      const std::vector<float> values(3, static_cast<float>(rank) + 0.5f);
      writer.add(kind, part, 0, 3, values.data());
    }
    writer.start(Json{{"loss_scale", 4096.0}});
    writer.wait();
  }
  return step_folder(directory, step);
}

TEST(CheckpointDamage, EveryChangedByteIsFound) {
  const TemporaryFolder folder;
  const fs::path checkpoint = write_two_ranks(folder.path(), 1);
  ASSERT_EQ(files_of(checkpoint).size(), 3u);
  for (const fs::path& path : files_of(checkpoint)) {
    const std::string good = read_file(path);
    for (size_t at = 0; at < good.size(); ++at)
      for (const int change : {0x01, 0x80, 0xff}) {
        std::string bad = good;
        bad[at] = static_cast<char>(bad[at] ^ change);
        overwrite(path, bad);
        EXPECT_TRUE(is_found_damaged(checkpoint)) << path << " byte " << at;
      }
    overwrite(path, good);
    EXPECT_FALSE(is_found_damaged(checkpoint));
  }
}

TEST(CheckpointDamage, EveryTruncationAndAddedByteIsFound) {
  const TemporaryFolder folder;
  const fs::path checkpoint = write_two_ranks(folder.path(), 1);
  for (const fs::path& path : files_of(checkpoint)) {
    const std::string good = read_file(path);
    for (size_t length = 0; length < good.size(); ++length) {
      overwrite(path, good.substr(0, length));
      EXPECT_TRUE(is_found_damaged(checkpoint)) << path << " of " << length << " bytes";
    }
    overwrite(path, good + '\0');
    EXPECT_TRUE(is_found_damaged(checkpoint));
    overwrite(path, good);
  }
}

TEST(CheckpointDamage, FilesOfTwoCheckpointsDoNotMix) {
  const TemporaryFolder folder;
  const fs::path one = write_two_ranks(folder.path(), 1), two = write_two_ranks(folder.path(), 2);
  const std::string name = rank_file_name(1, 2, 0);
  fs::copy_file(one / name, two / name, fs::copy_options::overwrite_existing);
  EXPECT_ERROR_WITH("not the file that the manifest lists", CheckpointReader{two});
}

TEST(CheckpointDamage, IsNamedAndTheOneBeforeIsUsed) {
  const TemporaryFolder folder;
  for (int64_t step = 1; step <= 3; ++step)
    test::write_small_checkpoint({folder.path(), step, 0, 1, 0, 10}, static_cast<float>(step));
  fs::create_directories(step_folder(folder.path(), 4));
  const fs::path third = step_folder(folder.path(), 3) / rank_file_name(0, 1, 0);
  std::string bytes = read_file(third);
  bytes[bytes.size() - 7] = static_cast<char>(bytes[bytes.size() - 7] ^ 0x10);
  overwrite(third, bytes);

  const FoundCheckpoint found = find_newest_checkpoint(folder.path());
  ASSERT_TRUE(found.folder);
  EXPECT_EQ(found.step, 2);
  EXPECT_EQ(CheckpointReader(*found.folder).read<float>(StateKind::weights, test::small_parameter())[4], 2.0f);
  ASSERT_EQ(found.notes.size(), 2u);
  EXPECT_NE(found.notes[0].find("step_00000004: was never completed"), std::string::npos) << found.notes[0];
  const std::string range = "bytes " + std::to_string(bytes.size() - 20) + " to " + std::to_string(bytes.size() - 1);
  EXPECT_NE(found.notes[1].find(third.string() + ": weights of final_norm.weight (" + range), std::string::npos)
      << found.notes[1];
  EXPECT_ERROR_WITH(
      "checksum is wrong",
      CheckpointReader(step_folder(folder.path(), 3)).read<float>(StateKind::weights, test::small_parameter()));
}

TEST(CheckpointDamage, NothingSoundIsNothingFound) {
  const TemporaryFolder folder;
  EXPECT_FALSE(find_newest_checkpoint(folder / "nowhere").folder);
  test::write_small_checkpoint({folder.path(), 1}, 1.0f);
  fs::remove(step_folder(folder.path(), 1) / rank_file_name(0, 1, 0));
  const FoundCheckpoint found = find_newest_checkpoint(folder.path());
  EXPECT_FALSE(found.folder);
  ASSERT_EQ(found.notes.size(), 1u);
  EXPECT_NE(found.notes[0].find("rank_00000"), std::string::npos);
}

// A table that is whole by its checksums and yet impossible: only a bug or an enemy writes one.
TEST(CheckpointDamage, ImpossibleTablesAreRefused) {
  const auto refusal = [](auto change) {
    Piece piece{StateKind::weights, "w", Shard::whole(3, 2), 0, 6, 4, 0, 0};
    change(piece);
    RankFileTable table;
    table.pieces = {piece};
    std::string file = encode_rank_table(table);
    file.resize(static_cast<size_t>(std::clamp<int64_t>(table.file_bytes, 0, 4096)));
    return test::error_of([&] { parse_rank_table(std::as_bytes(std::span(file)), "x"); });
  };
  EXPECT_EQ(refusal([](Piece&) {}), "");
  constexpr int64_t k_huge = int64_t{1} << 62;
  EXPECT_NE(refusal([](Piece& p) { p.end = 7; }), "");
  EXPECT_NE(refusal([](Piece& p) { p.begin = -1; }), "");
  EXPECT_NE(refusal([](Piece& p) { p.begin = 6; }), "");
  EXPECT_NE(refusal([](Piece& p) { p.shard.cols = 3; }), "");
  EXPECT_NE(refusal([](Piece& p) { p.shard.first_col = 1; }), "");
  EXPECT_NE(refusal([](Piece& p) { p.shard.rows = {{2, 2}}; }), "");
  EXPECT_NE(refusal([](Piece& p) { p.shard.rows = {{0, 0}, {0, 3}}; }), "");
  EXPECT_NE(refusal([=](Piece& p) { p.shard.whole_rows = k_huge; }), "");
  EXPECT_NE(refusal([=](Piece& p) { p.shard.rows = {{k_huge, k_huge}}; }), "");
  EXPECT_NE(refusal([](Piece& p) { p.bytes_per_value = 2; }), "");
  EXPECT_NE(refusal([](Piece& p) { p.kind = static_cast<StateKind>(9); }), "");
}

}  // namespace
}  // namespace tprimat::engine
