// Highway's own choice of instruction sets needs its library, which times the processor's clock whenever a program
// starts. Of these few, ours is a line each.
#undef HWY_DISABLED_TARGETS  // this file includes itself
#define HWY_DISABLED_TARGETS (HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "extract/anchor_scanner.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h
#include <hwy/highway.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/check.h"
#include "extract/anchor_scanner.h"

HWY_BEFORE_NAMESPACE();
namespace tprimat::logs {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR

// Without vectors, byte by byte.
size_t find_windows(const AnchorScanner::Tables& tables, const uint8_t* text, size_t count, uint32_t* positions) {
  size_t found = 0;
  for (size_t i = 0; i < count; ++i) {
    unsigned any = 0;
    for (size_t set = 0; set < AnchorScanner::k_sets; ++set) {
      unsigned buckets = 0xff;
      for (size_t k = 0; k < AnchorScanner::k_window && buckets != 0; ++k)
        buckets &= tables.low[set][k][text[i + k] & 15] & tables.high[set][k][text[i + k] >> 4];
      any |= buckets;
    }
    if (any != 0) positions[found++] = static_cast<uint32_t>(i);
  }
  return found;
}

#else

// Not zero where a literal may have its window, for each byte from `text` on.
template <class D, class V>
HWY_INLINE V window_buckets(D d, const uint8_t* text, const V (&low)[2][4], const V (&high)[2][4]) {
  const hn::Repartition<uint16_t, D> d16;
  const V nibble = hn::Set(d, 0x0f);
  V first = hn::Set(d, 0xff), second = first;
  for (size_t k = 0; k < AnchorScanner::k_window; ++k) {
    const V bytes = hn::LoadU(d, text + k);
    const V lower = hn::And(bytes, nibble);
    const V upper = hn::And(hn::BitCast(d, hn::ShiftRight<4>(hn::BitCast(d16, bytes))), nibble);
    first = hn::And(first, hn::And(hn::TableLookupBytes(low[0][k], lower), hn::TableLookupBytes(high[0][k], upper)));
    second = hn::And(second, hn::And(hn::TableLookupBytes(low[1][k], lower), hn::TableLookupBytes(high[1][k], upper)));
  }
  return hn::Or(first, second);
}

// Writes those of the positions 0 .. count - 1, and maybe some beyond, where a window may be; gives their number. Reads
// k_window - 1 bytes and a vector beyond them.
size_t find_windows(const AnchorScanner::Tables& tables, const uint8_t* text, size_t count, uint32_t* positions) {
  const hn::ScalableTag<uint8_t> d;
  using V = hn::Vec<decltype(d)>;
  const size_t lanes = hn::Lanes(d);
  V low[2][4], high[2][4];
  for (size_t set = 0; set < AnchorScanner::k_sets; ++set) {
    for (size_t k = 0; k < AnchorScanner::k_window; ++k) {
      low[set][k] = hn::LoadDup128(d, tables.low[set][k].data());
      high[set][k] = hn::LoadDup128(d, tables.high[set][k].data());
    }
  }
  uint32_t* next = positions;
  for (size_t i = 0; i < count; i += lanes) {
    const V buckets = window_buckets(d, text + i, low, high);
    const auto none = hn::Eq(buckets, hn::Zero(d));
    if (HWY_LIKELY(hn::AllTrue(d, none))) continue;
    HWY_ALIGN uint64_t bits[HWY_MAX_BYTES / 64 + 1] = {};
    hn::StoreMaskBits(d, hn::Not(none), reinterpret_cast<uint8_t*>(bits));
    for (size_t word = 0; word * 64 < lanes; ++word)
      for (uint64_t rest = bits[word]; rest != 0; rest &= rest - 1)
        *next++ = static_cast<uint32_t>(i + word * 64 + static_cast<size_t>(std::countr_zero(rest)));
  }
  return static_cast<size_t>(next - positions);
}

#endif

int64_t count_line_ends(const uint8_t* text, size_t size) {
  const hn::ScalableTag<uint8_t> d;
  const size_t lanes = hn::Lanes(d);
  const auto newline = hn::Set(d, '\n');
  int64_t count = 0;
  size_t i = 0;
  for (; i + lanes <= size; i += lanes)
    count += static_cast<int64_t>(hn::CountTrue(d, hn::Eq(hn::LoadU(d, text + i), newline)));
  for (; i < size; ++i) count += text[i] == '\n';
  return count;
}

}  // namespace HWY_NAMESPACE
}  // namespace tprimat::logs
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tprimat::logs {
namespace {

// The vectors' work, for the best instructions that this processor has.
struct Vectors {
  decltype(&HWY_STATIC_DISPATCH(find_windows)) find_windows;
  decltype(&HWY_STATIC_DISPATCH(count_line_ends)) count_newlines;
};

Vectors choose_vectors() {
#if HWY_ARCH_X86 && (HWY_TARGETS & HWY_AVX3)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    return {N_AVX3::find_windows, N_AVX3::count_line_ends};
#endif
#if HWY_ARCH_X86 && (HWY_TARGETS & HWY_AVX2)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
      __builtin_cpu_supports("fma"))
    return {N_AVX2::find_windows, N_AVX2::count_line_ends};
#endif
  return {HWY_STATIC_DISPATCH(find_windows), HWY_STATIC_DISPATCH(count_line_ends)};
}

const Vectors& vectors() {
  static const Vectors chosen = choose_vectors();
  return chosen;
}

// How common a byte is in logs, roughly, in parts of 256.
int commonness(char c) {
  if (std::strchr(" eatinosr0", c) != nullptr) return 16;
  if (std::strchr("ldcmupg1_.:hGPU|", c) != nullptr) return 8;
  if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || std::strchr("FLOTS/()", c) != nullptr) return 4;
  return 2;
}

size_t rarest_window(std::string_view text) {
  size_t best = 0;
  int lowest = 1 << 30;
  for (size_t at = 0; at + AnchorScanner::k_window <= text.size(); ++at) {
    int product = 1;
    for (size_t k = 0; k < AnchorScanner::k_window; ++k) product *= commonness(text[at + k]);
    if (product < lowest) lowest = product, best = at;
  }
  return best;
}

constexpr size_t k_piece = size_t{1} << 16;  // windows of one piece stay in the first cache
constexpr size_t k_widest_vector = 256;      // bytes, of any instruction set
constexpr size_t k_overread = k_widest_vector + AnchorScanner::k_window;

inline uint32_t load_window(const char* text) {
  uint32_t bytes = 0;
  std::memcpy(&bytes, text, AnchorScanner::k_window);
  return bytes;
}

// Knuth's multiplicative hash, 12 bits.
inline size_t slot_of(uint32_t window) { return (window * 2654435761u) >> 20; }

}  // namespace

AnchorScanner::AnchorScanner(const std::vector<std::string_view>& anchors) {
  for (uint32_t i = 0; i < anchors.size(); ++i) {
    CHECK(anchors[i].size() >= k_window);
    const size_t at = rarest_window(anchors[i]);
    const char* text = anchors[i].data();
    literals_.push_back({std::string(anchors[i]), at, load_window(text + at), load_window(text),
                         load_window(text + anchors[i].size() - k_window), i});
  }
  // Windows that look alike share a bucket, so that its tables let little else through.
  std::sort(literals_.begin(), literals_.end(), [](const Literal& a, const Literal& b) {
    return a.text.substr(a.window, k_window) < b.text.substr(b.window, k_window);
  });
  for (size_t i = 0; i < literals_.size(); ++i) {
    const size_t bucket = i * 8 * k_sets / literals_.size();
    const auto bit = static_cast<uint8_t>(1 << bucket % 8);
    for (size_t k = 0; k < k_window; ++k) {
      const auto byte = static_cast<uint8_t>(literals_[i].text[literals_[i].window + k]);
      tables_.low[bucket / 8][k][byte & 15] |= bit;
      tables_.high[bucket / 8][k][byte >> 4] |= bit;
    }
  }
  const auto slot = [](const Literal& literal) { return slot_of(literal.bytes); };
  std::sort(literals_.begin(), literals_.end(), [&](const Literal& a, const Literal& b) { return slot(a) < slot(b); });
  for (const Literal& literal : literals_) ++first_[slot(literal) + 1];
  for (size_t i = 0; i < k_slots; ++i) first_[i + 1] = static_cast<uint16_t>(first_[i + 1] + first_[i]);
}

// Most windows are of no literal, which their hash shows without a call.
inline bool AnchorScanner::may_be_literal(const uint8_t* window) const {
  const size_t slot = slot_of(load_window(reinterpret_cast<const char*>(window)));
  return first_[slot] != first_[slot + 1];
}

void AnchorScanner::verify(std::string_view text, size_t position, std::vector<AnchorHit>& hits) const {
  if (text.size() - position < k_window) return;
  const uint32_t bytes = load_window(text.data() + position);
  const size_t slot = slot_of(bytes);
  for (size_t i = first_[slot]; i < first_[slot + 1]; ++i) {
    const Literal& literal = literals_[i];
    if (bytes != literal.bytes || position < literal.window ||
        text.size() - (position - literal.window) < literal.text.size())
      continue;
    const size_t start = position - literal.window;
    const char* found = text.data() + start;
    const bool ends_alike =
        load_window(found) == literal.head && load_window(found + literal.text.size() - k_window) == literal.tail;
    if (ends_alike && std::memcmp(found, literal.text.data(), literal.text.size()) == 0)
      hits.push_back({start, literal.anchor});
  }
}

void AnchorScanner::scan(std::string_view text, std::vector<AnchorHit>& hits) const {
  hits.clear();
  thread_local std::vector<uint32_t> windows(k_piece + k_widest_vector);
  std::array<uint8_t, 2 * k_overread> tail{};
  const auto* bytes = reinterpret_cast<const uint8_t*>(text.data());
  for (size_t begin = 0; begin < text.size();) {
    const size_t left = text.size() - begin;
    const bool near_end = left <= k_overread;  // the vector loads would leave the text: work on a padded copy
    const size_t count = near_end ? left : std::min(k_piece, left - k_overread);
    const uint8_t* piece = bytes + begin;
    if (near_end) {
      std::memcpy(tail.data(), piece, left);
      std::fill(tail.begin() + static_cast<std::ptrdiff_t>(left), tail.end(), uint8_t{0});
      piece = tail.data();
    }
    const size_t found = vectors().find_windows(tables_, piece, count, windows.data());
    for (size_t i = 0; i < found && windows[i] < count; ++i)
      if (may_be_literal(piece + windows[i])) verify(text, begin + windows[i], hits);
    begin += count;
  }
  const auto by_position = [](const AnchorHit& a, const AnchorHit& b) { return a.position < b.position; };
  if (!std::is_sorted(hits.begin(), hits.end(), by_position)) std::sort(hits.begin(), hits.end(), by_position);
}

int64_t count_newlines(std::string_view text) {
  return vectors().count_newlines(reinterpret_cast<const uint8_t*>(text.data()), text.size());
}

}  // namespace tprimat::logs
#endif  // HWY_ONCE
