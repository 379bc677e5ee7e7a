#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "parameters/parameters.h"
#include "text/enum_names.h"

namespace tprimat::engine {

// XXH3, 64 bits (https://xxhash.com, seed 0): finds damage at the rate of memory; no defence against intent.
uint64_t checksum_of(std::span<const std::byte> bytes);
uint64_t checksum_of(std::string_view bytes);

std::string checksum_text(uint64_t checksum);  // 16 hexadecimal digits

// What a checkpoint holds of each weight.
enum class StateKind : uint8_t { weights, first_moment, second_moment };

// Consecutive values of a rank's part of a weight, as they stand in the rank's file.
struct Piece {
  StateKind kind = StateKind::weights;
  std::string name;             // of the Parameter
  Shard shard;                  // which part of the whole weight the rank held
  int64_t begin = 0, end = 0;   // values of that part, begin < end
  int64_t bytes_per_value = 4;  // 4: float, 8: double; little-endian
  int64_t offset = 0;           // bytes from the beginning of the file
  uint64_t checksum = 0;        // XXH3 of its bytes
  int64_t count() const { return end - begin; }
  int64_t bytes() const { return count() * bytes_per_value; }
};

// A rank's file: a head of 72 bytes, the table of pieces, and the pieces one after the other without a gap. Checksums
// of head, table and each piece cover every byte; that of the head, which holds the table's, stands for the whole file.
//   bytes 0-7 "TPRIMATC"; u32 version, rank, ranks, pieces; i64 step; u64 run, bytes of the table, bytes of the file,
//   checksum of the table, checksum of the 64 bytes before it; all little-endian
struct RankFileTable {
  int64_t step = 0;
  uint32_t rank = 0, ranks = 1;
  uint64_t run = 0;        // the same in the files of one run of the trainer
  int64_t file_bytes = 0;  // set by encode and parse, as are the offsets of the pieces
  uint64_t checksum = 0;   // of the head; set likewise
  std::vector<Piece> pieces;
};

// Head and table as bytes; sets the offsets and sizes.
std::string encode_rank_table(RankFileTable& table);

// Reads head and table and holds them to their checksums, to the file's size and to each other; the pieces' own bytes
// are not looked at. `where` names the file. Throws Error that names what is damaged.
RankFileTable parse_rank_table(std::span<const std::byte> file, const std::string& where);

// "weights of layers.0.mlp.down.weight (bytes 4096 to 8191)"
std::string describe_piece(const Piece& piece);

}  // namespace tprimat::engine
