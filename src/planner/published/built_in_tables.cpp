#include "published/built_in_tables.h"

#include <map>

namespace tprimat::planner {
namespace embedded {
extern const std::string_view published_reports_tsv;
}

namespace {

struct EmbeddedTable {
  const char* name;
  const std::string_view& text;
};
constexpr EmbeddedTable k_tables[] = {{"reports", embedded::published_reports_tsv}};

std::vector<PublishedTable> parse_tables() {
  std::vector<PublishedTable> tables;
  for (const EmbeddedTable& each : k_tables) tables.push_back(parse_published_table(each.text, each.name));
  return tables;
}

using RowsById = std::map<std::string_view, const PublishedRow*>;

RowsById index_rows() {
  RowsById rows;
  for (const PublishedTable& table : built_in_tables())
    for (const PublishedRow& row : table.rows) rows.emplace(row.cell("id"), &row);
  return rows;
}

}  // namespace

const std::vector<PublishedTable>& built_in_tables() {
  static const std::vector<PublishedTable> tables = parse_tables();
  return tables;
}

const PublishedRow* find_built_in_row(std::string_view id) {
  static const RowsById rows = index_rows();
  const auto found = rows.find(id);
  return found != rows.end() ? found->second : nullptr;
}

}  // namespace tprimat::planner
