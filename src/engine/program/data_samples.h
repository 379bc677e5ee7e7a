#pragma once

#include "command_line/session.h"

namespace tprimat::engine {

void add_data_samples(CommandLine& verb, Session& session);  // tprimat data samples

}  // namespace tprimat::engine
