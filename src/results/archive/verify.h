#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "archive/limits.h"
#include "archive/verification.h"

namespace tprimat::results {

// Reads an archive of seal_files() and checks that every file is the one that was sealed, and that every figure of
// every result follows from its raw samples: the figures are made again from the series in the result, the series are
// held against the step records beside it, or against the log it was extracted from, which is read again. Figures agree
// within 1e-6. Throws Error for what is no such archive.
//
// Settings, model shape and layout are compared with the specification beside the result, step times with the time
// stamps of the records, and a run of the suite also with its log. list_facts() names the witnesses of each fact.
Verification verify_archive(const std::filesystem::path& archive, const ArchiveLimits& limits = {});

// Verifies files from any source, such as memory. The source is called more than once; `where` names it in errors.
using FileVisitor = std::function<void(const std::string& name, std::string content)>;
using FileSource = std::function<void(const FileVisitor& visit)>;
Verification verify_files(const FileSource& archive, const std::string& where, const ArchiveLimits& limits = {});

}  // namespace tprimat::results
