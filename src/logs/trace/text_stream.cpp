#include "trace/text_stream.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>

#include "base/error.h"

namespace tprimat::logs {
namespace {

constexpr size_t k_output_bytes = 256 * 1024;
constexpr size_t k_first_window = 1024 * 1024;
constexpr size_t k_max_characters = size_t{1} << 36;  // 64 GiB: beyond any trace; stops decompression bombs
constexpr size_t k_input_piece = size_t{1} << 30;     // zlib counts input in 32 bits

bool is_gzip(std::string_view bytes) { return bytes.starts_with("\x1f\x8b"); }

}  // namespace

struct TextStream::Inflater {
  explicit Inflater(std::string_view bytes) : rest(bytes) {
    ok = inflateInit2(&stream, 15 + 16) == Z_OK;  // 16: a gzip header
  }
  ~Inflater() { inflateEnd(&stream); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  // The next piece; empty at the end. Sets `problem` for damaged data.
  std::string_view next_piece() {
    stream.next_out = output.data();
    stream.avail_out = static_cast<uInt>(output.size());
    while (stream.avail_out == output.size() && ok && !finished) inflate_some();
    return {reinterpret_cast<const char*>(output.data()), output.size() - stream.avail_out};
  }

  void inflate_some() {
    if (stream.avail_in == 0) {
      const size_t piece = std::min(rest.size(), k_input_piece);
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(rest.data()));
      stream.avail_in = static_cast<uInt>(piece);
      rest.remove_prefix(piece);
    }
    if (stream.avail_in == 0) return fail("the gzip data are truncated");
    const uInt before = stream.avail_in;
    const int result = ::inflate(&stream, Z_NO_FLUSH);
    consumed += before - stream.avail_in;
    if (result == Z_STREAM_END) return end_member();
    if (result != Z_OK) fail("the gzip data are damaged");
  }

  // A gzip file may hold several members one after another; anything else behind them is ignored.
  void end_member() {
    const bool more = stream.avail_in >= 2 && stream.next_in[0] == 0x1f && stream.next_in[1] == 0x8b;
    finished = !more || inflateReset(&stream) != Z_OK;
  }

  void fail(std::string_view what) {
    ok = false;
    problem = what;
  }

  z_stream stream{};
  std::string_view rest, problem = "the gzip data cannot be inflated";
  std::array<Bytef, k_output_bytes> output;
  size_t consumed = 0;
  bool ok = false, finished = false;
};

TextStream::TextStream(std::string_view bytes, std::string_view where) : where_(where) {
  if (is_gzip(bytes))
    inflater_ = std::make_unique<Inflater>(bytes);
  else
    rest_ = bytes.starts_with("\xef\xbb\xbf") ? bytes.substr(3) : bytes;
  window_ = rest_.substr(0, 0);
}

TextStream::~TextStream() = default;

void TextStream::grow() {
  const size_t wanted = std::max(2 * window_.size(), k_first_window);
  if (!inflater_) {
    rest_.remove_prefix(static_cast<size_t>(window_.data() - rest_.data()));
    window_ = rest_.substr(0, wanted);
    whole_ = window_.size() == rest_.size();
    return;
  }
  kept_.erase(0, kept_.size() - window_.size());
  while (kept_.size() < wanted && !whole_) {
    const std::string_view piece = inflater_->next_piece();
    if (piece.empty() && !inflater_->ok)
      throw Error(
          Problem{fmt::format("{} at byte {} of the file", inflater_->problem, inflater_->consumed), where_, ""});
    whole_ = piece.empty();
    kept_ += piece;
  }
  window_ = kept_;
  if (position_ > k_max_characters)
    throw Error(Problem{fmt::format("holds more than {} GiB of text", k_max_characters >> 30), where_, ""});
}

}  // namespace tprimat::logs
