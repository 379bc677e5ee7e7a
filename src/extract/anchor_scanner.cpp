#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "extract/anchor_scanner.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h
#include <hwy/highway.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "extract/anchor_scanner.h"

HWY_BEFORE_NAMESPACE();
namespace tprimat {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR

// Without vectors, byte by byte.
template <class Found>
void find_windows(const AnchorScanner::Tables& tables, const uint8_t* text, size_t count, const Found& found) {
  for (size_t i = 0; i < count; ++i) {
    unsigned buckets = 0xff;
    for (size_t k = 0; k < AnchorScanner::k_window && buckets != 0; ++k)
      buckets &= tables.low[k][text[i + k] & 15] & tables.high[k][text[i + k] >> 4];
    if (buckets != 0) found(i);
  }
}

#else

// Bits of the buckets whose literals may have their window at each byte from `text` on.
template <class D, class V>
V window_buckets(D d, const uint8_t* text, const V* low, const V* high) {
  const hn::Repartition<uint16_t, D> d16;
  const V nibble = hn::Set(d, 0x0f);
  V buckets = hn::Set(d, 0xff);
  for (size_t k = 0; k < AnchorScanner::k_window; ++k) {
    const V bytes = hn::LoadU(d, text + k);
    const V upper = hn::And(hn::BitCast(d, hn::ShiftRight<4>(hn::BitCast(d16, bytes))), nibble);
    buckets = hn::And(
        buckets, hn::And(hn::TableLookupBytes(low[k], hn::And(bytes, nibble)), hn::TableLookupBytes(high[k], upper)));
  }
  return buckets;
}

// Calls `found(position)` for positions 0 .. count - 1; reads k_window - 1 bytes and a vector beyond them.
template <class Found>
void find_windows(const AnchorScanner::Tables& tables, const uint8_t* text, size_t count, const Found& found) {
  const hn::ScalableTag<uint8_t> d;
  using V = hn::Vec<decltype(d)>;
  const size_t lanes = hn::Lanes(d);
  V low[AnchorScanner::k_window], high[AnchorScanner::k_window];
  for (size_t k = 0; k < AnchorScanner::k_window; ++k) {
    low[k] = hn::LoadDup128(d, tables.low[k].data());
    high[k] = hn::LoadDup128(d, tables.high[k].data());
  }
  for (size_t i = 0; i < count; i += lanes) {
    const V buckets = window_buckets(d, text + i, low, high);
    const auto none = hn::Eq(buckets, hn::Zero(d));
    if (HWY_LIKELY(hn::AllTrue(d, none))) continue;
    uint8_t bits[HWY_MAX_BYTES];
    hn::StoreMaskBits(d, hn::Not(none), bits);
    for (size_t lane = 0; lane < std::min(lanes, count - i); ++lane)
      if ((bits[lane / 8] >> (lane % 8) & 1) != 0) found(i + lane);
  }
}

#endif

void CollectWindows(const AnchorScanner::Tables& tables, const uint8_t* text, size_t count,
                    std::vector<uint32_t>& windows) {
  find_windows(tables, text, count,
               [&windows](size_t position) { windows.push_back(static_cast<uint32_t>(position)); });
}

int64_t CountNewlines(const uint8_t* text, size_t size) {
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
}  // namespace tprimat
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tprimat {
namespace {

HWY_EXPORT(CollectWindows);
HWY_EXPORT(CountNewlines);

// How common a byte is in logs, roughly, in parts of 256.
int commonness(char c) {
  if (std::strchr(" eatinosr0", c) != nullptr) return 16;
  if (std::strchr("ldcmupg1_.:", c) != nullptr) return 8;
  if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) return 4;
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
constexpr size_t k_widest_vector = 256;  // bytes, of any instruction set
constexpr size_t k_overread = k_widest_vector + AnchorScanner::k_window;

}  // namespace

size_t AnchorScanner::slot_of(const char* window) {
  uint32_t bytes = 0;
  std::memcpy(&bytes, window, k_window);
  return (bytes * 2654435761u) >> 20;  // Knuth's multiplicative hash, 12 bits
}

AnchorScanner::AnchorScanner(const std::vector<std::string_view>& anchors) {
  for (uint32_t i = 0; i < anchors.size(); ++i) {
    CHECK(anchors[i].size() >= k_window);
    literals_.push_back({std::string(anchors[i]), rarest_window(anchors[i]), i});
  }
  // Windows that look alike share a bucket, so that its tables let little else through.
  std::sort(literals_.begin(), literals_.end(), [](const Literal& a, const Literal& b) {
    return a.text.substr(a.window, k_window) < b.text.substr(b.window, k_window);
  });
  for (size_t i = 0; i < literals_.size(); ++i) {
    const auto bucket = static_cast<uint8_t>(1 << (i * 8 / literals_.size()));
    for (size_t k = 0; k < k_window; ++k) {
      const auto byte = static_cast<uint8_t>(literals_[i].text[literals_[i].window + k]);
      tables_.low[k][byte & 15] |= bucket;
      tables_.high[k][byte >> 4] |= bucket;
    }
  }
  const auto slot = [](const Literal& literal) { return slot_of(literal.text.data() + literal.window); };
  std::sort(literals_.begin(), literals_.end(), [&](const Literal& a, const Literal& b) { return slot(a) < slot(b); });
  for (const Literal& literal : literals_) ++first_[slot(literal) + 1];
  for (size_t i = 0; i < k_slots; ++i) first_[i + 1] = static_cast<uint16_t>(first_[i + 1] + first_[i]);
}

void AnchorScanner::verify(std::string_view text, size_t position, std::vector<AnchorHit>& hits) const {
  if (text.size() - position < k_window) return;
  const size_t slot = slot_of(text.data() + position);
  for (size_t i = first_[slot]; i < first_[slot + 1]; ++i) {
    const Literal& literal = literals_[i];
    if (position < literal.window || text.size() - (position - literal.window) < literal.text.size()) continue;
    const size_t start = position - literal.window;
    if (std::memcmp(text.data() + start, literal.text.data(), literal.text.size()) == 0)
      hits.push_back({start, literal.anchor});
  }
}

void AnchorScanner::scan(std::string_view text, std::vector<AnchorHit>& hits) const {
  hits.clear();
  thread_local std::vector<uint32_t> windows;
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
    windows.clear();
    HWY_DYNAMIC_DISPATCH(CollectWindows)(tables_, piece, count, windows);
    for (const uint32_t position : windows) verify(text, begin + position, hits);
    begin += count;
  }
  std::sort(hits.begin(), hits.end(), [](const AnchorHit& a, const AnchorHit& b) { return a.position < b.position; });
}

int64_t count_newlines(std::string_view text) {
  return HWY_DYNAMIC_DISPATCH(CountNewlines)(reinterpret_cast<const uint8_t*>(text.data()), text.size());
}

}  // namespace tprimat
#endif  // HWY_ONCE
