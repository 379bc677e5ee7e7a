#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>

#include "base/files.h"
#include "config_case.h"

namespace tprimat::suite {
namespace {

namespace fs = std::filesystem;

const fs::path k_folder = fs::path(TPRIMAT_SOURCE_DIR) / "tests" / "cli" / "malformed";

struct Malformed {
  std::string file;
  size_t errors = 0;
  std::vector<std::string> parts;
};

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

std::vector<Malformed> read_cases() {
  std::vector<Malformed> cases;
  for (const std::string& line : split(read_file(k_folder / "cases.tsv"), '\n')) {
    if (line.empty() || line[0] == '#') continue;
    const std::vector<std::string> cells = split(line, '\t');
    cases.push_back({cells.at(0), std::stoul(cells.at(1)), split(cells.at(2), '|')});
  }
  return cases;
}

std::vector<Problem> problems_of(const fs::path& path) {
  ConfigSources sources;
  sources.path = path.string();
  try {
    load_experiment(sources);
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), ExitStatus::usage);
    return error.problems();
  }
  return {};
}

TEST(Malformed, EveryMistakeGivesItsOneMessage) {
  const std::vector<Malformed> cases = read_cases();
  ASSERT_GE(cases.size(), 40u);
  for (const Malformed& each : cases) {
    const std::vector<Problem> problems = problems_of(k_folder / each.file);
    EXPECT_EQ(problems.size(), each.errors) << each.file << "\n" << print(problems);
    for (const std::string& part : each.parts)
      EXPECT_TRUE(mention(problems, part)) << each.file << " lacks: " << part << "\n" << print(problems);
  }
}

TEST(Malformed, EveryFileIsListed) {
  size_t files = 0;
  for (const auto& entry : fs::directory_iterator(k_folder)) files += entry.path().extension() == ".yaml";
  EXPECT_EQ(files, read_cases().size());
}

TEST(Malformed, EveryMessageHasAPlace) {
  for (const Malformed& each : read_cases())
    for (const Problem& problem : problems_of(k_folder / each.file))
      EXPECT_FALSE(problem.where.empty()) << each.file << ": " << problem.what;
}

TEST(Malformed, AMissingFileIsNamed) {
  const std::vector<Problem> problems = problems_of("/no/such/config.yaml");
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].where, "/no/such/config.yaml");
}

}  // namespace
}  // namespace tprimat::suite
