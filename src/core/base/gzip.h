#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tprimat {

// The bytes as a gzip file: the same for the same bytes, without name and time.
std::string gzip(std::string_view bytes);

// The content of a gzip file of one member; nothing for other and damaged files, and for more than `limit` bytes.
std::optional<std::string> gunzip(std::string_view bytes, int64_t limit);

}  // namespace tprimat
