#include "published/built_in_tables.h"

#include <map>

namespace tprimat::planner {
namespace embedded {
extern const std::string_view published_amd_tsv;
extern const std::string_view published_bloom_tsv;
extern const std::string_view published_dgx_cloud_tsv;
extern const std::string_view published_experts_tsv;
extern const std::string_view published_megatron_tsv;
extern const std::string_view published_mlperf_tsv;
extern const std::string_view published_mosaic_tsv;
extern const std::string_view published_nanotron_tsv;
extern const std::string_view published_nemo_tsv;
extern const std::string_view published_reports_tsv;
extern const std::string_view published_torchtitan_tsv;
}  // namespace embedded

namespace {

struct EmbeddedTable {
  const char* name;
  const std::string_view& text;
};
constexpr EmbeddedTable k_tables[] = {{"amd", embedded::published_amd_tsv},
                                      {"bloom", embedded::published_bloom_tsv},
                                      {"dgx_cloud", embedded::published_dgx_cloud_tsv},
                                      {"experts", embedded::published_experts_tsv},
                                      {"megatron", embedded::published_megatron_tsv},
                                      {"mlperf", embedded::published_mlperf_tsv},
                                      {"mosaic", embedded::published_mosaic_tsv},
                                      {"nanotron", embedded::published_nanotron_tsv},
                                      {"nemo", embedded::published_nemo_tsv},
                                      {"reports", embedded::published_reports_tsv},
                                      {"torchtitan", embedded::published_torchtitan_tsv}};

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

std::vector<PublishedTable> load_published_tables(const std::vector<std::string>& paths) {
  std::vector<PublishedTable> tables;
  for (const std::string& path : paths) {
    if (path == k_published_word)
      tables.insert(tables.end(), built_in_tables().begin(), built_in_tables().end());
    else
      tables.push_back(load_published_table(path));
  }
  return tables;
}

}  // namespace tprimat::planner
