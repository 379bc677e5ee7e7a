#include "trace/unpacked.h"

#include <fmt/format.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <vector>

#include "base/error.h"

namespace tprimat::logs {
namespace {

constexpr size_t k_output_bytes = 256 * 1024;
constexpr size_t k_input_piece = size_t{1} << 30;  // zlib counts input in 32 bits
constexpr int k_largest_window = 27;               // 128 MiB: what `zstd --ultra` needs at most by default

bool is_gzip(std::string_view bytes) { return bytes.starts_with("\x1f\x8b"); }
bool is_zstd(std::string_view bytes) { return bytes.starts_with("\x28\xb5\x2f\xfd"); }

[[noreturn]] void refuse(std::string_view what, size_t at, const std::string& where) {
  throw Error(Problem{fmt::format("{} at byte {} of the file", what, at), where, "copy or record the file again"});
}

class GzipUnpacker : public Unpacker {
 public:
  GzipUnpacker(std::string_view bytes, std::string_view where) : where_(where), rest_(bytes), output_(k_output_bytes) {
    constexpr int k_gzip_header = 15 + 16;
    if (inflateInit2(&stream_, k_gzip_header) != Z_OK) refuse("the gzip data cannot be inflated", 0, where_);
  }
  ~GzipUnpacker() override { inflateEnd(&stream_); }

  std::string_view next_piece() override {
    stream_.next_out = output_.data();
    stream_.avail_out = static_cast<uInt>(output_.size());
    while (stream_.avail_out == output_.size() && !finished_) inflate_some();
    return {reinterpret_cast<const char*>(output_.data()), output_.size() - stream_.avail_out};
  }

 private:
  void inflate_some() {
    if (stream_.avail_in == 0) {
      const size_t piece = std::min(rest_.size(), k_input_piece);
      stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(rest_.data()));
      stream_.avail_in = static_cast<uInt>(piece);
      rest_.remove_prefix(piece);
    }
    if (stream_.avail_in == 0) refuse("the gzip data are truncated", consumed_, where_);
    const uInt before = stream_.avail_in;
    const int result = ::inflate(&stream_, Z_NO_FLUSH);
    consumed_ += before - stream_.avail_in;
    if (result == Z_STREAM_END) return end_member();
    if (result != Z_OK) refuse("the gzip data are damaged", consumed_, where_);
  }

  // A gzip file may hold several members one after another; anything else behind them is ignored.
  void end_member() {
    const bool more = stream_.avail_in >= 2 && stream_.next_in[0] == 0x1f && stream_.next_in[1] == 0x8b;
    finished_ = !more || inflateReset(&stream_) != Z_OK;
  }

  std::string where_;
  std::string_view rest_;
  std::vector<Bytef> output_;
  z_stream stream_{};
  size_t consumed_ = 0;
  bool finished_ = false;
};

class ZstdUnpacker : public Unpacker {
 public:
  ZstdUnpacker(std::string_view bytes, std::string_view where)
      : where_(where), state_(ZSTD_createDStream(), ZSTD_freeDStream), output_(k_output_bytes) {
    input_ = {bytes.data(), bytes.size(), 0};
    if (state_ == nullptr) refuse("the zstd data cannot be unpacked", 0, where_);
    ZSTD_DCtx_setParameter(state_.get(), ZSTD_d_windowLogMax, k_largest_window);
  }

  // Frames follow one another.
  std::string_view next_piece() override {
    ZSTD_outBuffer output{output_.data(), output_.size(), 0};
    while (output.pos == 0) {
      const bool at_end = input_.pos == input_.size;
      if (at_end && !in_frame_) break;
      const size_t status = ZSTD_decompressStream(state_.get(), &output, &input_);
      if (ZSTD_isError(status) != 0)
        refuse(fmt::format("the zstd data are damaged ({})", ZSTD_getErrorName(status)), input_.pos, where_);
      if (at_end && output.pos == 0 && status != 0) refuse("the zstd data are truncated", input_.pos, where_);
      in_frame_ = status != 0;
    }
    return {output_.data(), output.pos};
  }

 private:
  std::string where_;
  std::unique_ptr<ZSTD_DStream, size_t (*)(ZSTD_DStream*)> state_;
  std::vector<char> output_;
  ZSTD_inBuffer input_{nullptr, 0, 0};
  bool in_frame_ = true;
};

}  // namespace

bool is_packed(std::string_view bytes) { return is_gzip(bytes) || is_zstd(bytes); }

std::unique_ptr<Unpacker> make_unpacker(std::string_view bytes, std::string_view where) {
  if (is_gzip(bytes)) return std::make_unique<GzipUnpacker>(bytes, where);
  if (is_zstd(bytes)) return std::make_unique<ZstdUnpacker>(bytes, where);
  return nullptr;
}

std::string unpack(std::string_view bytes, std::string_view where) {
  const size_t limit = (size_t{64} << 20) + 256 * bytes.size();
  const auto unpacker = make_unpacker(bytes, where);
  std::string whole;
  for (std::string_view piece = unpacker->next_piece(); !piece.empty(); piece = unpacker->next_piece()) {
    if (piece.size() > limit - whole.size())
      throw Error(Problem{fmt::format("unpacks to more than {} MiB", limit >> 20), std::string(where), ""});
    whole += piece;
  }
  return whole;
}

}  // namespace tprimat::logs
