#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "trace/trace.h"

namespace tprimat::logs {

// Texts by number, each once. Looking one up that is known costs no memory.
class TextIndex {
 public:
  explicit TextIndex(std::vector<std::string>& texts) : texts_(texts) {}

  // make(): the text that belongs to the key.
  template <class Make>
  uint32_t find(std::string_view key, Make&& make) {
    if (const auto found = by_key_.find(key); found != by_key_.end()) return found->second;
    std::string text = make();
    const auto [known, is_new] = by_text_.try_emplace(text, static_cast<uint32_t>(texts_.size()));
    if (is_new) texts_.push_back(std::move(text));
    by_key_.emplace(key, known->second);
    return known->second;
  }

 private:
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  std::vector<std::string>& texts_;
  std::unordered_map<std::string, uint32_t, Hash, std::equal_to<>> by_key_;
  std::unordered_map<std::string, uint32_t> by_text_;
};

// Collectives by number, each once.
class CollectiveIndex {
 public:
  explicit CollectiveIndex(std::vector<CollectiveCall>& calls) : calls_(calls) {
    for (uint32_t i = 0; i < calls.size(); ++i) indices_.try_emplace(calls[i], i);
  }

  uint32_t find(CollectiveCall call) {
    const auto [found, is_new] = indices_.try_emplace(call, static_cast<uint32_t>(calls_.size()));
    if (is_new) calls_.push_back(std::move(call));
    return found->second;
  }

 private:
  std::vector<CollectiveCall>& calls_;
  std::map<CollectiveCall, uint32_t> indices_;
};

}  // namespace tprimat::logs
