#pragma once

#include "cli/session.h"

namespace tprimat {

void add_data_samples(CLI::App& verb, Session& session);  // tprimat data samples

}  // namespace tprimat
