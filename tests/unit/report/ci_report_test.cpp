#include "report/ci_report.h"

#include <gtest/gtest.h>

#include <pugixml.hpp>

#include "compare/compare_runs.h"
#include "compare/gates.h"
#include "unit/compare/sample_runs.h"

namespace tprimat::results {
namespace {

constexpr const char* k_evil = "e<v>\"i'&l\n::error::\r%0A ]]>\x01\xff\xed\xa0\x80 caf\xc3\xa9";

// b.json is slower than the baseline a.json by more than the gate allows; c.json is invalid.
Comparison gated(const std::string& name = "c.json") {
  LoadedRuns runs{{sample_run("a.json", Platform::nvd, Framework::nemo, 1.0),
                   sample_run("b.json", Platform::nvd, Framework::nemo, 1.1),
                   sample_run(name, Platform::nvd, Framework::mega, 1.0)},
                  {{"odd.json", "is no <result>"}}};
  runs.runs[2].result.status = RunStatus::failed;
  runs.runs[2].result.status_reason = k_evil;
  return compare_runs(std::move(runs), {.baseline = "a.json", .gates = {parse_gate("tokens_per_second < -3%")}});
}

pugi::xml_document parse(const std::string& xml) {
  pugi::xml_document document;
  const auto result = document.load_buffer(xml.data(), xml.size());
  EXPECT_TRUE(result) << result.description() << "\n" << xml;
  return document;
}

const JUnitStamp k_stamp = {"2026-01-01T00:00:00", "host"};

TEST(JUnit, CountsWhatItHolds) {
  const auto document = parse(render_junit(gated(), k_stamp));
  const auto suite = document.child("testsuites").child("testsuite");
  EXPECT_STREQ(suite.attribute("name").value(), "llama");
  long cases = 0, failures = 0, errors = 0;
  for (const auto& each : suite.children("testcase")) {
    ++cases;
    failures += !each.child("failure").empty();
    errors += !each.child("error").empty();
    EXPECT_STRNE(each.attribute("name").value(), "");
    EXPECT_STRNE(each.attribute("classname").value(), "");
  }
  EXPECT_EQ(cases, 3 + 2 + 2) << "results, pairs, gates";
  EXPECT_EQ(failures, 1);
  EXPECT_EQ(errors, 3) << "the failed run, its pair, its gate";
  EXPECT_EQ(suite.attribute("tests").as_int(), cases);
  EXPECT_EQ(suite.attribute("failures").as_int(), failures);
  EXPECT_EQ(suite.attribute("errors").as_int(), errors);
  const auto files = suite.next_sibling("testsuite");
  EXPECT_STREQ(files.child("testcase").child("skipped").attribute("message").value(), "is no <result>");
}

// Order and attributes as the schemas of Ant (JUnit.xsd) and Jenkins (junit-10.xsd) ask for them.
TEST(JUnit, HasTheOrderOfTheSchema) {
  const auto document = parse(render_junit(gated(), k_stamp));
  for (const auto& suite : document.child("testsuites").children("testsuite")) {
    std::string order;
    for (const auto& child : suite.children())
      if (!order.ends_with(std::string(child.name()) + " ")) order += std::string(child.name()) + " ";
    EXPECT_EQ(order, "properties testcase system-out system-err ");
    for (const char* name : {"package", "id", "name", "timestamp", "hostname", "tests", "failures", "errors", "time"})
      EXPECT_STRNE(suite.attribute(name).value(), "") << name;
  }
}

TEST(JUnit, HoldsWhateverAFileSays) {
  const std::string xml = render_junit(gated(k_evil), k_stamp);
  parse(xml);
  for (const char c : xml) EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 0x20) << static_cast<int>(c);
  EXPECT_EQ(xml.find('\xff'), std::string::npos);
  EXPECT_EQ(xml.find("\xed\xa0"), std::string::npos) << "a lone surrogate";
  EXPECT_NE(xml.find("caf\xc3\xa9"), std::string::npos);
}

TEST(Annotations, AreOneEscapedLineEach) {
  const std::string text = render_annotations(gated(k_evil));
  size_t start = 0;
  for (size_t end; (end = text.find('\n', start)) != std::string::npos; start = end + 1) {
    const std::string line = text.substr(start, end - start);
    EXPECT_TRUE(line.starts_with("::error title=") || line.starts_with("::warning title=") ||
                line.starts_with("::notice title="))
        << line;
    const size_t title_end = line.find("::", 2);
    ASSERT_NE(title_end, std::string::npos);
    const std::string title = line.substr(line.find('=') + 1, title_end - line.find('=') - 1);
    EXPECT_EQ(title.find_first_of(":,\r\n"), std::string::npos) << title;
  }
  EXPECT_EQ(start, text.size()) << "the last line is whole";
  EXPECT_EQ(text.find('\r'), std::string::npos);
  EXPECT_NE(text.find("e<v>\"i'&l%0A::error::%0D%250A"), std::string::npos);
}

TEST(Annotations, NoTerminalObeysThem) {
  EXPECT_EQ(render_annotations(gated("m\x1b[31mX")).find('\x1b'), std::string::npos);
}

TEST(Annotations, TellTheWorstFirst) {
  const std::string text = render_annotations(gated());
  EXPECT_TRUE(text.starts_with("::error"));
  EXPECT_LT(text.rfind("::error title="), text.find("::warning title="));
  EXPECT_NE(
      text.find("::error title=llama%3A tokens_per_second < -3%25%3A NVIDIA NeMo b against NVIDIA NeMo a::failed"),
      std::string::npos)
      << text;
}

}  // namespace
}  // namespace tprimat::results
