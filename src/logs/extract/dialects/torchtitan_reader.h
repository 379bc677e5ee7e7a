#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "extract/dialect.h"

namespace tprimat::logs {

// torchtitan as it prints itself, and under AMD Primus, which may rewrite its record into one line like Megatron's.
enum class TitanFlavour { plain, primus };

std::unique_ptr<LogReader> make_titan_reader(TitanFlavour flavour);
std::vector<FieldNote> titan_fields();
std::vector<std::string_view> titan_anchors();

// A line before the first step: devices, model, mesh, batch. False when it says nothing of the kind.
bool read_titan_header(std::string_view text, LogBuilder& log);

}  // namespace tprimat::logs
