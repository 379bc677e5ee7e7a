#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "archive/archive_format.h"

namespace tprimat::results {

// The files of a tar archive (plain, gzip, zstd), one after the other, in memory: nothing is written anywhere. Throws
// Error for anything else, for names that lead out of it (absolute, "..", control characters), for links and devices,
// for a name that comes twice (of a file or a folder), for ambiguous headers, for data behind the end of the archive
// and beyond the limits.
void read_sealed_files(const std::filesystem::path& archive,
                       const std::function<void(const std::string& name, std::string content)>& visit,
                       const ArchiveLimits& limits = {});

}  // namespace tprimat::results
