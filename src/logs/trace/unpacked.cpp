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

[[noreturn]] void refuse_at(size_t at, std::string_view what, const std::string& where) {
  throw Error(Problem{fmt::format("{} at byte {} of the file", what, at), where, "copy or record the file again"});
}

class GzipUnpacker : public Unpacker {
 public:
  GzipUnpacker(std::string_view bytes, std::string_view where)
      : where_(where), rest_(bytes), size_(bytes.size()), output_(k_output_bytes) {
    constexpr int k_gzip_header = 15 + 16;
    if (inflateInit2(&stream_, k_gzip_header) != Z_OK) refuse("the gzip data cannot be inflated");
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
    if (rest_.empty()) refuse("the gzip data are truncated");
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(rest_.data()));
    stream_.avail_in = static_cast<uInt>(std::min(rest_.size(), k_input_piece));
    const size_t before = stream_.avail_in;
    const int result = ::inflate(&stream_, Z_NO_FLUSH);
    rest_.remove_prefix(before - stream_.avail_in);
    if (result == Z_STREAM_END)  // another member may follow; anything else behind it is ignored
      finished_ = !is_gzip(rest_) || inflateReset(&stream_) != Z_OK;
    else if (result != Z_OK)
      refuse("the gzip data are damaged");
  }

  [[noreturn]] void refuse(std::string_view what) const { refuse_at(size_ - rest_.size(), what, where_); }

  std::string where_;
  std::string_view rest_;
  size_t size_;
  std::vector<Bytef> output_;
  z_stream stream_{};
  bool finished_ = false;
};

class ZstdUnpacker : public Unpacker {
 public:
  ZstdUnpacker(std::string_view bytes, std::string_view where)
      : where_(where), state_(ZSTD_createDStream(), ZSTD_freeDStream), output_(k_output_bytes) {
    input_ = {bytes.data(), bytes.size(), 0};
    if (state_ == nullptr) refuse("the zstd data cannot be unpacked");
    ZSTD_DCtx_setParameter(state_.get(), ZSTD_d_windowLogMax, k_largest_window);
  }

  // Frames follow one another.
  std::string_view next_piece() override {
    ZSTD_outBuffer output{output_.data(), output_.size(), 0};
    while (output.pos == 0) {
      const bool at_end = input_.pos == input_.size;
      if (at_end && !in_frame_) break;
      const size_t status = ZSTD_decompressStream(state_.get(), &output, &input_);
      if (ZSTD_isError(status) != 0) refuse(fmt::format("the zstd data are damaged ({})", ZSTD_getErrorName(status)));
      if (at_end && output.pos == 0 && status != 0) refuse("the zstd data are truncated");
      in_frame_ = status != 0;
    }
    return {output_.data(), output.pos};
  }

 private:
  [[noreturn]] void refuse(std::string_view what) const { refuse_at(input_.pos, what, where_); }

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
