#include "published/built_in_tables.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "published/cells.h"
#include "published/columns.h"
#include "published/validate.h"

namespace tprimat::planner {
namespace {

template <class Visit>
void visit_rows(const Visit& visit) {
  for (const PublishedTable& table : built_in_tables())
    for (const PublishedRow& row : table.rows) visit(table, row);
}

bool lists(const std::vector<PublishedColumn>& list, std::string_view name) {
  return std::ranges::find(list, name, &PublishedColumn::name) != list.end();
}

TEST(BuiltInTables, AreTheFilesOfTheFolder) {
  std::set<std::string> files, tables;
  for (const auto& file : std::filesystem::directory_iterator(TPRIMAT_SOURCE_DIR "/data/published"))
    if (file.path().extension() == ".tsv") files.insert(file.path().stem().string());
  for (const PublishedTable& table : built_in_tables()) {
    tables.insert(table.name);
    const auto file = load_published_table(fmt::format("{}/data/published/{}.tsv", TPRIMAT_SOURCE_DIR, table.name));
    EXPECT_EQ(table.rows.size(), file.rows.size()) << table.name;
    EXPECT_FALSE(table.rows.empty()) << table.name;
  }
  EXPECT_EQ(files, tables);
}

TEST(BuiltInTables, HaveIdsThatAreUniqueAndPlain) {
  std::set<std::string> ids;
  visit_rows([&](const PublishedTable& table, const PublishedRow& row) {
    const std::string& id = row.cell("id");
    EXPECT_TRUE(ids.insert(id).second) << id;
    EXPECT_TRUE(id.size() >= 5 && id.size() <= 60) << table.name << ' ' << row.line << ' ' << id;
    EXPECT_EQ(id.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789.-"), std::string::npos) << id;
    EXPECT_EQ(find_built_in_row(id), &row) << id;
  });
  EXPECT_EQ(find_built_in_row("no-such-row"), nullptr);
  EXPECT_EQ(find_built_in_row(""), nullptr);
}

TEST(BuiltInTables, SayWhereEveryFigureStandsAndHowItWasRead) {
  visit_rows([](const PublishedTable&, const PublishedRow& row) {
    const std::string& id = row.cell("id");
    for (const char* column : {"model", "source", "commit", "reach", "reading"})
      EXPECT_FALSE(row.cell(column).empty()) << id << ' ' << column;
    EXPECT_TRUE(lists(published_reaches(), row.cell("reach"))) << id << ' ' << row.cell("reach");
    EXPECT_TRUE(lists(published_readings(), row.cell("reading"))) << id << ' ' << row.cell("reading");
    EXPECT_TRUE(source_link(row).starts_with("https://")) << id << ' ' << row.cell("source");
  });
}

TEST(BuiltInTables, HaveAFigureInEveryRow) {
  constexpr const char* k_figures[] = {"step_time_s", "tokens_per_s", "tokens_per_s_per_gpu", "tflops_per_gpu",
                                       "mfu_pct",     "hfu_pct",      "ttt_min_olympic_mean"};
  visit_rows([&](const PublishedTable&, const PublishedRow& row) {
    const bool has_rate =
        std::ranges::any_of(k_figures, [&](const char* figure) { return parse_printed(row.cell(figure)).has_value(); });
    EXPECT_TRUE(has_rate || !row.cell("mem").empty()) << row.cell("id");
    EXPECT_EQ(row.cell("reading") == "memory_only", !has_rate) << row.cell("id");
    for (const char* figure : k_figures)  // a cell with something else would be read by nobody
      EXPECT_TRUE(row.cell(figure).empty() || parse_printed(row.cell(figure))) << row.cell("id") << ' ' << figure;
  });
}

TEST(BuiltInTables, HaveOnlyColumnsThatAreExplained) {
  const std::string page = read_file(TPRIMAT_SOURCE_DIR "/data/published/README.md");
  std::set<std::string> used;
  visit_rows([&](const PublishedTable& table, const PublishedRow& row) {
    for (const auto& [column, cell] : row.cells) {
      EXPECT_TRUE(lists(published_columns(), column)) << table.name << ' ' << column;
      EXPECT_LE(cell.size(), 300u) << row.cell("id") << ' ' << column;
      used.insert(column);
    }
  });
  for (const PublishedColumn& column : published_columns()) {
    EXPECT_TRUE(used.contains(std::string(column.name))) << column.name;
    EXPECT_NE(page.find(fmt::format("`{}`", column.name)), std::string::npos) << column.name;
  }
  for (const auto* words : {&published_readings(), &published_reaches()})
    for (const PublishedColumn& word : *words)
      EXPECT_NE(page.find(fmt::format("`{}`", word.name)), std::string::npos) << word.name;
}

TEST(BuiltInTables, AreCountedOnTheirPages) {
  const std::string page = read_file(TPRIMAT_SOURCE_DIR "/data/published/README.md");
  EXPECT_NE(page.find(fmt::format("\nversion {}\n", k_published_version)), std::string::npos);
  size_t rows = 0;
  for (const PublishedTable& table : built_in_tables()) {
    EXPECT_NE(page.find(fmt::format("| `{}` | {} |", table.name, table.rows.size())), std::string::npos)
        << table.name << ' ' << table.rows.size();
    rows += table.rows.size();
  }
  for (const char* file : {"/data/published/README.md", "/docs/published.md"})
    EXPECT_NE(read_file(std::string(TPRIMAT_SOURCE_DIR) + file).find(fmt::format("{} ", rows)), std::string::npos)
        << file << ' ' << rows;
}

// Of the figures that our arithmetic gives, "as printed" counts no FLOPs.
std::set<std::string> conventions_of(const PublishedRow& row) {
  std::set<std::string> found;
  for (const FigureCheck& figure : validate_row(row).figures)
    if (figure.verdict == Standing::reproduced || figure.verdict == Standing::explained)
      if (figure.convention && *figure.convention != "as printed") found.insert(*figure.convention);
  return found;
}

TEST(BuiltInTables, NameTheConventionThatGivesTheirFigures) {
  size_t named = 0;
  visit_rows([&](const PublishedTable&, const PublishedRow& row) {
    const std::string& cell = row.cell("flop_convention");
    const std::set<std::string> found = conventions_of(row);
    named += cell.empty() ? 0 : 1;
    EXPECT_EQ(cell.empty(), found.empty()) << row.cell("id");
    EXPECT_TRUE(cell.empty() || found.contains(cell.substr(0, cell.find(" with ")))) << row.cell("id") << ' ' << cell;
  });
  EXPECT_GT(named, 500u);
}

TEST(BuiltInTables, StandForTheWordPublished) {
  EXPECT_EQ(load_published_tables({"published"}).size(), built_in_tables().size());
  EXPECT_THROW(load_published_tables({"published", "no/such/table.tsv"}), Error);
}

PublishedRow row_from(const std::string& source, const std::string& commit) {
  return {2, {{"source", source}, {"commit", commit}}};
}

TEST(SourceLink, OpensFilesPapersAndThreads) {
  EXPECT_EQ(source_link(row_from("arXiv 2407.21783 table 4", "arXiv 2407.21783")), "https://arxiv.org/abs/2407.21783");
  EXPECT_EQ(source_link(row_from("a/b.c docs/x.md", "067f987")), "https://github.com/a/b.c/blob/067f987/docs/x.md");
  EXPECT_EQ(source_link(row_from("a/b results/run/gpt3", "067f987")),
            "https://github.com/a/b/tree/067f987/results/run/gpt3");
  EXPECT_EQ(source_link(row_from("a/b x.md, line 12", "2022-02-17")),
            "https://github.com/a/b/blob/HEAD/x.md?plain=1#L12");
  EXPECT_EQ(source_link(row_from("a/b x.png, figure 7", "067f987")), "https://github.com/a/b/blob/067f987/x.png");
  EXPECT_EQ(source_link(row_from("a/b pull request 55", "2025")), "https://github.com/a/b/pull/55");
  EXPECT_EQ(source_link(row_from("a/b#78", "2024")), "https://github.com/a/b/issues/78");
  EXPECT_EQ(source_link(row_from("a/b discussion 481", "2024")), "https://github.com/a/b/discussions/481");
  EXPECT_EQ(source_link(row_from("somebody's notes", "")), "");
  EXPECT_EQ(source_link(row_from("", "")), "");
}

}  // namespace
}  // namespace tprimat::planner
