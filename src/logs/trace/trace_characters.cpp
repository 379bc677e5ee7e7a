#include "trace/trace_characters.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>

#include "base/error.h"

namespace tprimat::logs {
namespace {

constexpr size_t k_output_bytes = 256 * 1024;
constexpr size_t k_longest_run = 16 * 1024 * 1024;    // characters of one string, or between strings
constexpr size_t k_max_characters = size_t{1} << 36;  // 64 GiB: beyond any trace; stops decompression bombs
constexpr size_t k_input_piece = size_t{1} << 30;     // zlib counts input in 32 bits
constexpr size_t k_longest_word = 16;

bool is_letter(int c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

bool is_gzip(std::string_view bytes) { return bytes.starts_with("\x1f\x8b"); }

}  // namespace

struct TraceCharacters::Inflater {
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

TraceCharacters::TraceCharacters(std::string_view bytes, std::string_view where) : where_(where) {
  if (is_gzip(bytes))
    inflater_ = std::make_unique<Inflater>(bytes);
  else
    chunk_ = bytes.starts_with("\xef\xbb\xbf") ? bytes.substr(3) : bytes;
}

TraceCharacters::~TraceCharacters() = default;

size_t TraceCharacters::position() const { return before_chunk_ + at_; }

bool TraceCharacters::refill() {
  if (at_ < chunk_.size()) return true;
  if (!inflater_) return false;
  before_chunk_ += chunk_.size();
  at_ = 0;
  chunk_ = inflater_->next_piece();
  if (chunk_.empty() && !inflater_->ok)
    throw Error(Problem{fmt::format("{} at byte {} of the file", inflater_->problem, inflater_->consumed), where_, ""});
  if (before_chunk_ > k_max_characters)
    throw Error(Problem{fmt::format("holds more than {} GiB of text", k_max_characters >> 30), where_, ""});
  return !chunk_.empty();
}

int TraceCharacters::peek() { return refill() ? static_cast<unsigned char>(chunk_[at_]) : k_end; }

int TraceCharacters::take() {
  const int c = peek();
  if (c == k_end)
    ended_ = true;
  else
    ++at_;
  return c;
}

int TraceCharacters::next() {
  if (pending_at_ < pending_.size()) return static_cast<unsigned char>(pending_[pending_at_++]);
  const int c = take();
  if (c == k_end) return k_end;
  check_length(c);
  return in_string_ ? next_in_string(c) : next_outside(c);
}

// The parser keeps all characters since the last string or number began, so without a limit a small file could fill the
// memory.
void TraceCharacters::check_length(int c) {
  const bool is_digit = c >= '0' && c <= '9';
  const bool begins = in_string_ ? c == '"' && !escaped_ : c == '"' || (is_digit && !in_number_);
  run_ = begins ? 0 : run_ + 1;
  if (run_ > k_longest_run)
    throw Error(Problem{fmt::format("holds a string, or a stretch without one, of more than {} MiB before byte {}",
                                    k_longest_run >> 20, position()),
                        where_, ""});
}

int TraceCharacters::next_in_string(int c) {
  if (escaped_)
    escaped_ = false;
  else if (c == '\\')
    escaped_ = true;
  else if (c == '"')
    in_string_ = false;
  return c < 0x20 ? ' ' : c < 0x80 ? c : '?';
}

int TraceCharacters::next_outside(int c) {
  const bool exponent = in_number_ && (c == 'e' || c == 'E');
  if (!exponent && (is_letter(c) || (c == '-' && is_letter(peek())))) return replace_word(c);
  in_number_ = (c >= '0' && c <= '9') || c == '.' || exponent;
  in_string_ = c == '"';
  return c;
}

int TraceCharacters::replace_word(int first) {
  pending_.assign(1, static_cast<char>(first));
  pending_at_ = 1;
  for (int c; pending_.size() < k_longest_word && (is_letter(c = peek()) || c == '/');)
    pending_ += static_cast<char>(take());
  const bool is_json = pending_ == "true" || pending_ == "false" || pending_ == "null";
  if (!is_json) pending_ = "null";
  return static_cast<unsigned char>(pending_[0]);
}

}  // namespace tprimat::logs
