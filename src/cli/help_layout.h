#pragma once

namespace CLI {
class App;
}

namespace tprimat {

// How --help prints options, for the program and all verbs declared after the call: the kind of value in one word, then
// what it means, whether it is required and its default. Ranges are told by the error message.
void lay_out_help(CLI::App& program);

}  // namespace tprimat
