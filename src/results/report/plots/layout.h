#pragma once

#include "report/plots/drawing.h"
#include "report/plots/picture.h"

namespace tprimat::results {

// Gives everything its place. No text leaves the picture or covers other text by the estimate of text_width.h, and
// every coordinate is a finite number.
Drawing lay_out(const Picture& picture);

}  // namespace tprimat::results
