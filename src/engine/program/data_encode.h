#pragma once

#include "command_line/session.h"

namespace tprimat::engine {

void add_data_encode(CommandLine& verb, Session& session);  // tprimat data encode

}  // namespace tprimat::engine
