#pragma once

#include "cli/session.h"

namespace tprimat {

void add_data_encode(CLI::App& verb, Session& session);  // tprimat data encode

}  // namespace tprimat
