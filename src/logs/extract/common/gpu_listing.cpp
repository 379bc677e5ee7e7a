#include "extract/common/gpu_listing.h"

#include <algorithm>

#include "extract/common/log_words.h"
#include "extract/scan_text.h"
#include "text/words.h"

namespace tprimat::logs {
namespace {

constexpr int k_longest_table = 400;            // lines; 64 GPUs take 200
constexpr int k_max_strange_listing_lines = 8;  // of other processes, in a row
constexpr size_t k_longest_name = 60;
constexpr std::string_view k_brands[] = {"NVIDIA ", "AMD Instinct ", "AMD Radeon ", "Tesla "};

// "0  NVIDIA H100 80GB HBM3          On" -> the name; "" for other cells.
std::string_view name_in_cell(std::string_view cell) {
  cell = trim(cell);
  const size_t digits = std::min(cell.find_first_not_of("0123456789"), cell.size());
  if (digits == 0 || digits > 4 || !cell.substr(digits).starts_with("  ")) return {};
  cell.remove_prefix(digits);
  const size_t last = cell.rfind(' ');
  const std::string_view mode = cell.substr(last + 1);  // persistence mode, or the driver model on Windows
  if (mode != "On" && mode != "Off" && mode != "N/A" && mode != "TCC" && mode != "WDDM") return {};
  std::string_view name = trim(cell.substr(0, last));
  while (name.ends_with(".")) name.remove_suffix(1);  // older drivers cut it: "Tesla V100-SXM2..."
  return name.size() <= k_longest_name ? name : std::string_view();
}

bool says_gpu(std::string_view before) {
  for (const std::string_view word : {"GPU", "gpu", "evice", "ccelerator", "capacity", "arketing", "MARKET", "Card"})
    if (contains(before, word)) return true;
  return false;
}

std::string_view cut_name(std::string_view text) {
  size_t end = text.find_first_of("'\"|,(;:\t\\}]");
  for (const std::string_view mark : {"  ", " with ", ". "}) end = std::min(end, text.find(mark));
  text = trim(text.substr(0, end));
  if (text.ends_with(".")) text.remove_suffix(1);
  return text;
}

}  // namespace

bool GpuTable::is_title(std::string_view text) {
  return (contains(text, "NVIDIA-SMI") && contains(text, "Driver Version")) ||
         contains(text, "ROCm System Management Interface");
}

bool GpuTable::may_hold(std::string_view text) {
  return text.empty() || is_digit(text.front()) || contains("|+= ", text.substr(0, 1)) || text.starts_with("Device");
}

void GpuTable::open(std::string_view title) {
  *this = {};
  open_ = true;
  is_amd_ = contains(title, "ROCm");
  if (const auto version = text_after(title, "CUDA Version:"); version && parse_number(*version)) {
    const std::string_view words = trim(*version);
    listing_.stack_version = std::string(words.substr(0, std::min<size_t>(words.find_first_not_of("0123456789."), 16)));
  }
}

void GpuTable::read(std::string_view text) {
  if (++lines_ > k_longest_table) open_ = false;
  is_amd_ ? read_amd(text) : read_nvidia(text);
}

void GpuTable::read_nvidia(std::string_view text) {
  if (text.empty() || (text.front() != '|' && text.front() != '+')) {
    open_ &= ++strange_lines_ <= k_max_strange_listing_lines;
    return;
  }
  strange_lines_ = 0;
  if (contains(text, "Processes:")) open_ = false;
  if (text.front() != '|') return;
  text.remove_prefix(1);
  const std::string_view cell = text.substr(0, text.find('|'));
  if (const std::string_view name = name_in_cell(cell); !name.empty()) {
    if (++listing_.count == 1) listing_.name = quote_text(name);
  } else if (const Figure total = number_after(text, "MiB /"); total.finite() && *total > 0 && !listing_.memory_gb) {
    listing_.memory_gb = *total * k_mib / 1e9;
  }
}

// "0       [0x74a1 : 0x00]       45.0°C      173.0W    NPS1, SPX ...", the name below; newer ones have no name.
void GpuTable::read_amd(std::string_view text) {
  if (contains(text, "End of ROCm SMI Log")) open_ = false;
  const std::string_view words = trim(text);
  const bool is_row = !text.empty() && is_digit(text.front()) && contains(text, "W ") && contains(text, "%");
  if (is_row) ++listing_.count;
  if (listing_.name.empty() && (words.starts_with("AMD Instinct ") || words.starts_with("AMD Radeon ")))
    listing_.name = quote_text(cut_name(words));
  const bool strange = !is_row && !text.starts_with(" ") && !text.starts_with("=") && !text.starts_with("Device");
  strange_lines_ = strange ? strange_lines_ + 1 : 0;
  open_ &= strange_lines_ <= k_max_strange_listing_lines;
}

std::optional<NamedGpu> find_named_gpu(std::string_view text) {
  if (contains(text, ":::MLLOG") || looks_like_source(text)) return std::nullopt;
  for (const std::string_view brand : k_brands) {
    const size_t at = text.find(brand);
    if (at == std::string_view::npos) continue;
    const std::string_view before = trim(text.substr(0, at)), after = text.substr(at + brand.size());
    constexpr std::string_view k_openers = ":='\"|]";
    const bool introduced = !before.empty() && contains(k_openers, before.substr(before.size() - 1));
    if (!introduced || !says_gpu(before) || after.empty() || !is_upper(after.front())) continue;
    const std::string_view name = cut_name(text.substr(at));
    if (name.size() > k_longest_name || std::none_of(name.begin(), name.end(), is_digit)) continue;
    NamedGpu gpu{quote_text(name), std::nullopt, {}};
    for (const std::string_view key : {"GPU[", "GPU "})
      if (const auto rest = text_after(before, key); rest && !gpu.index) gpu.index = parse_whole(*rest);
    if (const auto rest = text_after(after, " with "); rest && contains(*rest, "memory"))
      gpu.memory_gb = parse_bytes_gb(*rest);
    return gpu;
  }
  return std::nullopt;
}

}  // namespace tprimat::logs
