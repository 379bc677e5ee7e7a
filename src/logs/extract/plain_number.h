#pragma once

#include <cstddef>
#include <string_view>

namespace tprimat::logs {

struct PlainNumber {
  double value = 0;
  size_t length = 0;  // in the text; 0: it is another kind of number, or none
};

// The number at the start of the text if it has few digits, as most have: "1200.7", "1.099519E+01".
PlainNumber read_plain_number(std::string_view text);

}  // namespace tprimat::logs
