#pragma once

#include <filesystem>

#include "archive/limits.h"
#include "archive/verification.h"

namespace tprimat {

// Reads an archive of seal_files() and checks that every file is the one that was sealed, and that every figure of
// every result follows from its raw samples: the figures are made again from the series in the result, the series are
// held against the step records beside it, or against the log it was extracted from, which is read again. Figures agree
// within 1e-6. Throws Error for what is no such archive.
Verification verify_archive(const std::filesystem::path& archive, const ArchiveLimits& limits = {});

}  // namespace tprimat
