#pragma once

#include <string>
#include <vector>

#include "history/history.h"
#include "report/document.h"
#include "text/json.h"

// Pure functions: a history in, a document out.
namespace tprimat::results {

Document build_document(const History& history);
Json history_to_json(const History& history);
std::string render_csv(const History& history);  // one line per point of every series

// "▁▃█": the values between their least and greatest; a gap for none.
std::string draw_sparkline(const std::vector<double>& values);

}  // namespace tprimat::results
