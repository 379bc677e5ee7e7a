#include "model_files/rank_file.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <bit>
#include <cstring>

#include "base/check.h"
#include "base/error.h"
#include "text/format.h"

namespace tprimat::engine {
namespace {

static_assert(std::endian::native == std::endian::little, "files are little-endian, and so are the machines");

constexpr std::string_view k_magic = "TPRIMATC";
constexpr uint32_t k_version = 1;
constexpr size_t k_checked_head = 64, k_head_bytes = 72;
constexpr int64_t k_largest_extent = int64_t{1} << 40;  // rows or columns: far above any weight

class ByteWriter {
 public:
  template <class T>
  void put(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void put_text(std::string_view text) {
    put(static_cast<uint32_t>(text.size()));
    bytes_ += text;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

class ByteReader {
 public:
  ByteReader(std::span<const std::byte> bytes, const std::string& where) : bytes_(bytes), where_(where) {}

  template <class T>
  T take() {
    T value;
    std::memcpy(&value, take_bytes(sizeof value).data(), sizeof value);
    return value;
  }
  std::string take_text() {
    const auto bytes = take_bytes(take<uint32_t>());
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  bool empty() const { return bytes_.empty(); }

 private:
  std::span<const std::byte> take_bytes(size_t count) {
    if (count > bytes_.size()) throw Error(Problem{"its table of pieces ends too early", where_, ""});
    const auto taken = bytes_.first(count);
    bytes_ = bytes_.subspan(count);
    return taken;
  }

  std::span<const std::byte> bytes_;
  const std::string& where_;
};

void put_piece(ByteWriter& out, const Piece& piece) {
  out.put(static_cast<uint8_t>(piece.kind));
  out.put(static_cast<uint8_t>(piece.bytes_per_value));
  out.put_text(piece.name);
  for (const int64_t number : {piece.shard.whole_rows, piece.shard.whole_cols, piece.shard.first_col, piece.shard.cols})
    out.put(number);
  out.put(static_cast<uint32_t>(piece.shard.rows.size()));
  for (const RowRange& range : piece.shard.rows) {
    out.put(range.first);
    out.put(range.count);
  }
  out.put(piece.begin);
  out.put(piece.end);
  out.put(piece.checksum);
}

Piece take_piece(ByteReader& in) {
  Piece piece;
  piece.kind = static_cast<StateKind>(in.take<uint8_t>());
  piece.bytes_per_value = in.take<uint8_t>();
  piece.name = in.take_text();
  for (int64_t* number : {&piece.shard.whole_rows, &piece.shard.whole_cols, &piece.shard.first_col, &piece.shard.cols})
    *number = in.take<int64_t>();
  for (auto ranges = in.take<uint32_t>(); ranges > 0; --ranges) {
    const auto first = in.take<int64_t>();
    piece.shard.rows.push_back({first, in.take<int64_t>()});
  }
  piece.begin = in.take<int64_t>();
  piece.end = in.take<int64_t>();
  piece.checksum = in.take<uint64_t>();
  return piece;
}

bool is_part(int64_t first, int64_t count, int64_t whole) {
  return first >= 0 && count >= 1 && count <= whole && first <= whole - count;
}

// The values that a shard holds; nothing for one that cannot be.
std::optional<int64_t> sound_count(const Shard& shard) {
  int64_t whole = 0, rows = 0, count = 0;
  for (const int64_t size : {shard.whole_rows, shard.whole_cols})
    if (size < 1 || size > k_largest_extent) return std::nullopt;
  if (__builtin_mul_overflow(shard.whole_rows, shard.whole_cols, &whole)) return std::nullopt;
  if (!is_part(shard.first_col, shard.cols, shard.whole_cols)) return std::nullopt;
  for (const RowRange& range : shard.rows) {
    if (!is_part(range.first, range.count, shard.whole_rows)) return std::nullopt;
    rows += range.count;  // at most 2^32 ranges of 2^40
    if (rows > k_largest_extent) return std::nullopt;
  }
  if (__builtin_mul_overflow(rows, shard.cols, &count)) return std::nullopt;
  return count;
}

class TableReader {
 public:
  TableReader(std::span<const std::byte> file, const std::string& where) : file_(file), where_(where) {}

  RankFileTable read() {
    const uint64_t table_bytes = read_head();
    ByteReader in(file_.subspan(k_head_bytes, table_bytes), where_);
    int64_t offset = static_cast<int64_t>(k_head_bytes + table_bytes);
    for (; pieces_ > 0; --pieces_) {
      Piece piece = take_piece(in);
      piece.offset = offset;
      check_piece(piece);
      offset += piece.bytes();
      table_.pieces.push_back(std::move(piece));
    }
    require(in.empty(), "its table of pieces is longer than its pieces");
    require(offset == table_.file_bytes, "its pieces do not fill it");
    return std::move(table_);
  }

 private:
  void require(bool sound, const std::string& what) const {
    if (!sound) throw Error(Problem{what, where_, ""});
  }

  uint64_t read_head() {
    require(file_.size() >= k_head_bytes, fmt::format("has {} bytes, too few for a checkpoint file", file_.size()));
    require(std::memcmp(file_.data(), k_magic.data(), k_magic.size()) == 0,
            "does not begin like a checkpoint file (bytes 0 to 7)");
    ByteReader in(file_.subspan(k_magic.size()), where_);
    const auto version = in.take<uint32_t>();
    table_.rank = in.take<uint32_t>();
    table_.ranks = in.take<uint32_t>();
    pieces_ = in.take<uint32_t>();
    table_.step = in.take<int64_t>();
    table_.run = in.take<uint64_t>();
    const auto table_bytes = in.take<uint64_t>(), file_bytes = in.take<uint64_t>(), table_sum = in.take<uint64_t>();
    table_.checksum = in.take<uint64_t>();
    require(checksum_of(file_.first(k_checked_head)) == table_.checksum, "its head (bytes 0 to 71) is damaged");
    require(version == k_version, fmt::format("has format version {}; this program reads {}", version, k_version));
    require(file_bytes == file_.size(), fmt::format("has {} bytes, but {} were written", file_.size(), file_bytes));
    require(table_bytes <= file_bytes - k_head_bytes, "its table of pieces is longer than the file");
    table_.file_bytes = static_cast<int64_t>(file_bytes);
    require(
        checksum_of(file_.subspan(k_head_bytes, table_bytes)) == table_sum,
        fmt::format("its table of pieces (bytes {} to {}) is damaged", k_head_bytes, k_head_bytes + table_bytes - 1));
    return table_bytes;
  }

  void check_piece(const Piece& piece) const {
    const bool known = piece.kind <= StateKind::second_moment;
    require(known && (piece.bytes_per_value == 4 || piece.bytes_per_value == 8), "it holds values of an unknown kind");
    const auto count = sound_count(piece.shard);
    require(count && piece.begin >= 0 && piece.begin < piece.end && piece.end <= *count,
            fmt::format("the position of '{}' in the whole weight is invalid", printable(piece.name.substr(0, 200))));
    require(piece.count() <= (table_.file_bytes - piece.offset) / piece.bytes_per_value,
            fmt::format("'{}' is longer than the file", printable(piece.name.substr(0, 200))));
  }

  std::span<const std::byte> file_;
  const std::string& where_;
  RankFileTable table_;
  uint32_t pieces_ = 0;
};

}  // namespace

uint64_t checksum_of(std::span<const std::byte> bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }
uint64_t checksum_of(std::string_view bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

std::string checksum_text(uint64_t checksum) { return fmt::format("{:016x}", checksum); }

std::string encode_rank_table(RankFileTable& table) {
  ByteWriter pieces;
  for (const Piece& piece : table.pieces) put_piece(pieces, piece);
  int64_t offset = static_cast<int64_t>(k_head_bytes + pieces.bytes().size());
  for (Piece& piece : table.pieces) {
    piece.offset = offset;
    offset += piece.bytes();
  }
  table.file_bytes = offset;
  ByteWriter head;
  for (const char c : k_magic) head.put(c);
  for (const uint32_t number : {k_version, table.rank, table.ranks, static_cast<uint32_t>(table.pieces.size())})
    head.put(number);
  head.put(table.step);
  head.put(table.run);
  head.put(static_cast<uint64_t>(pieces.bytes().size()));
  head.put(static_cast<uint64_t>(table.file_bytes));
  head.put(checksum_of(pieces.bytes()));
  CHECK(head.bytes().size() == k_checked_head);
  table.checksum = checksum_of(head.bytes());
  head.put(table.checksum);
  return head.bytes() + pieces.bytes();
}

RankFileTable parse_rank_table(std::span<const std::byte> file, const std::string& where) {
  return TableReader(file, where).read();
}

std::string describe_piece(const Piece& piece) {
  return fmt::format("{} of {} (bytes {} to {})", enum_name(piece.kind), printable(piece.name.substr(0, 200)),
                     piece.offset, piece.offset + piece.bytes() - 1);
}

}  // namespace tprimat::engine
