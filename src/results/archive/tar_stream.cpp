#include "archive/tar_stream.h"

#include <fmt/format.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>

#include "base/error.h"
#include "base/printable.h"

namespace tprimat::results {
namespace {

constexpr size_t k_block = 512;  // POSIX.1, ustar
constexpr size_t k_size_at = 124, k_size_length = 12, k_sum_at = 148, k_sum_length = 8, k_kind_at = 156;
constexpr char k_folder = '5';
constexpr uint64_t k_max_records = 1 << 20;

std::optional<uint64_t> octal(std::string_view field) {
  const size_t begin = std::min(field.find_first_not_of(' '), field.size());
  uint64_t value = 0;
  for (const char c : field.substr(begin)) {
    if (c == ' ' || c == '\0') break;
    if (c < '0' || c > '7') return std::nullopt;
    value = value * 8 + static_cast<uint64_t>(c - '0');
  }
  return value;
}

bool has_valid_sum(std::string_view block) {
  uint64_t sum = 0;
  for (size_t i = 0; i < k_block; ++i)
    sum += i >= k_sum_at && i < k_sum_at + k_sum_length ? ' ' : static_cast<unsigned char>(block[i]);
  return octal(block.substr(k_sum_at, k_sum_length)) == sum;
}

uint64_t padded(uint64_t size) { return (size + k_block - 1) / k_block * k_block; }

// Files, folders, and the preceding kinds that give a long name. Links and devices are refused later, with their names.
bool is_sealed_kind(char kind) { return kind == '\0' || (kind >= '0' && kind <= '6') || kind == 'x' || kind == 'L'; }

constexpr size_t k_unpacked_at_once = 1 << 16;

}  // namespace

std::string TarHeaders::read(std::string_view bytes) {
  while (!bytes.empty() && !has_ended_) {
    if (skipped_ > 0) {
      const size_t count = std::min<uint64_t>(skipped_, bytes.size());
      skipped_ -= count;
      bytes.remove_prefix(count);
      continue;
    }
    const uint64_t wanted = records_ > 0 ? records_ : k_block;
    const size_t count = std::min<uint64_t>(wanted - block_.size(), bytes.size());
    block_.append(bytes.substr(0, count));
    bytes.remove_prefix(count);
    if (block_.size() < wanted) break;
    const bool are_records = records_ > 0;
    const std::string fault = are_records ? take_records() : take_header();
    if (!fault.empty()) return fault;
    if (are_records) records_ = 0;
    block_.clear();
  }
  return "";
}

std::string TarHeaders::take_header() {
  const auto size = octal(std::string_view(block_).substr(k_size_at, k_size_length));
  const char kind = block_[k_kind_at];
  has_ended_ = block_.find_first_not_of('\0') == std::string::npos;
  if (has_ended_) return "";
  if (!size || !has_valid_sum(block_) || (kind == k_folder && *size > 0))
    return "is not a tar archive, or holds an ambiguous header";
  if (kind == 'g') return "holds a global header (pax), which other programs apply to every file";
  if (!is_sealed_kind(kind))
    return fmt::format("holds an entry of the unknown kind \"{}\"", printable(std::string(1, kind)));
  if (kind != 'x') {
    skipped_ = padded(*size);
    return "";
  }
  if (*size == 0 || *size > k_max_records) return "holds an extended header (pax) of an invalid length";
  records_ = padded(*size);
  return "";
}

// "30 mtime=1350244992.023960108\n"
std::string TarHeaders::take_records() const {
  for (const std::string_view key : {" size=", " GNU.sparse."})
    for (size_t at = block_.find(key); at != std::string::npos; at = block_.find(key, at + 1)) {
      const size_t line = at == 0 ? 0 : block_.rfind('\n', at - 1) + 1;
      if (block_.find_first_not_of("0123456789", line) == at)
        return "holds an extended header (pax) that overrides the length of a file";
    }
  return "";
}

TarStream::TarStream(const std::filesystem::path& path)
    : path_(path.string()), file_(open_input(path)), input_(k_unpacked_at_once), output_(k_unpacked_at_once) {
  refill();
  if (rest_.starts_with("\x1f\x8b"))
    packing_ = "gzip", unpack_ = make_gzip();
  else if (rest_.starts_with("\x28\xb5\x2f\xfd"))
    packing_ = "zstd", unpack_ = make_zstd();
}

void TarStream::refuse(const std::string& what) const {
  throw Error(Problem{what, path_, "give a file that `tprimat archive` wrote"});
}

void TarStream::distrust(const std::string& what) const {
  throw Error(Problem{what, path_, "nothing was unpacked; do not trust this archive"});
}

std::string_view TarStream::next() {
  std::string_view bytes;
  if (unpack_) {
    bytes = unpack();
  } else {
    if (handed_out_ > 0) refill();
    bytes = rest_;
  }
  handed_out_ += std::ssize(bytes);
  if (const std::string fault = headers_.read(bytes); !fault.empty()) distrust(fault);
  return bytes;
}

std::string_view TarStream::unpack() {
  std::span<char> free = output_;
  while (free.size() == output_.size() && !has_ended_) {
    if (rest_.empty()) refill();
    const bool is_out_of_input = rest_.empty();
    has_ended_ = unpack_(rest_, free);
    if (!has_ended_ && is_out_of_input && free.size() == output_.size())
      refuse(fmt::format("is truncated: its {} data end early", packing_));
    if (has_ended_ && rest_.empty()) refill();
    if (has_ended_ && !rest_.empty()) distrust(fmt::format("has data after its {} data", packing_));
  }
  return {output_.data(), output_.size() - free.size()};
}

TarStream::Unpack TarStream::make_gzip() const {
  constexpr int k_gzip_only = 16 + MAX_WBITS;
  const auto end = [](z_stream* state) { inflateEnd(state), delete state; };
  const std::shared_ptr<z_stream> state(new z_stream{}, end);
  if (inflateInit2(state.get(), k_gzip_only) != Z_OK) refuse("cannot be read: zlib could not be started");
  return [this, state](std::string_view& input, std::span<char>& output) {
    state->next_in = reinterpret_cast<Bytef*>(const_cast<char*>(input.data()));
    state->avail_in = static_cast<uInt>(input.size());
    state->next_out = reinterpret_cast<Bytef*>(output.data());
    state->avail_out = static_cast<uInt>(output.size());
    const int status = inflate(state.get(), Z_NO_FLUSH);
    if (status != Z_STREAM_END && status != Z_OK && status != Z_BUF_ERROR)
      refuse("is damaged: its gzip data cannot be unpacked");
    input.remove_prefix(input.size() - state->avail_in);
    output = output.last(state->avail_out);
    return status == Z_STREAM_END;
  };
}

TarStream::Unpack TarStream::make_zstd() const {
  const std::shared_ptr<ZSTD_DStream> state(ZSTD_createDStream(), ZSTD_freeDStream);
  if (state == nullptr) refuse("cannot be read: zstd could not be started");
  return [this, state](std::string_view& input, std::span<char>& output) {
    ZSTD_inBuffer in{input.data(), input.size(), 0};
    ZSTD_outBuffer out{output.data(), output.size(), 0};
    const size_t status = ZSTD_decompressStream(state.get(), &out, &in);
    if (ZSTD_isError(status) != 0)
      refuse(fmt::format("is damaged: its zstd data cannot be unpacked ({})", ZSTD_getErrorName(status)));
    input.remove_prefix(in.pos);
    output = output.subspan(out.pos);
    return status == 0;
  };
}

// A partial block occurs only at the end.
void TarStream::refill() {
  size_t filled = 0;
  while (filled < input_.size()) {
    const ssize_t count = ::read(file_.get(), input_.data() + filled, input_.size() - filled);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) refuse(fmt::format("cannot be read: {}", std::strerror(errno)));
    if (count == 0) break;
    filled += static_cast<size_t>(count);
  }
  rest_ = {input_.data(), filled};
}

}  // namespace tprimat::results
