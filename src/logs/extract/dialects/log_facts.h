#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "extract/extracted_log.h"
#include "extract/scan_text.h"
#include "spec/names.h"

// Facts that several dialects read from the lines around the steps.
namespace tprimat::logs {

// The first value of a fact stays.
template <class T, class U>
void keep_first(std::optional<T>& fact, const U& value) {
  if (!fact) fact = value;
}
template <class T, class U>
void keep_first(std::optional<T>& fact, const std::optional<U>& value) {
  if (!fact && value) fact = *value;
}

// A count of something, 1 or more, right after `key`: "global batch size 24".
std::optional<int64_t> count_after(std::string_view text, std::string_view key);

// The number that ends right before the first `mark`: number_before("2470.01 ms | 40.7%", " ms").
Figure number_before(std::string_view text, std::string_view mark);

// The vendor of a device, by the driver's name for it: "NVIDIA H100 80GB HBM3", "AMD Instinct MI300X".
std::optional<Platform> platform_of_gpu(std::string_view name);

// "bf16", "BF16", "bfloat16", "torch.bfloat16"
std::optional<Precision> precision_named(std::string_view name);

// The rates of all devices and of each. True: the device count was unknown and follows from them.
bool set_token_rates(ExtractedStep& step, const std::optional<RoundedNumber>& all,
                     const std::optional<RoundedNumber>& each, LoggedFacts& facts);

}  // namespace tprimat::logs
