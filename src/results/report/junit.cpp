#include <algorithm>
#include <pugixml.hpp>
#include <sstream>

#include "report/ci_report.h"
#include "text/format.h"

namespace tprimat::results {
namespace {

// All that is printable XML can hold; pugixml escapes the rest.
void set(pugi::xml_node node, const char* name, std::string_view value) {
  node.append_attribute(name) = printable(value).c_str();
}

void add_case(pugi::xml_node suite, const Check& check) {
  pugi::xml_node node = suite.append_child("testcase");
  set(node, "name", check.name);
  set(node, "classname", "tprimat." + check.suite + "." + check.kind);
  set(node, "time", "0");
  const char* element = nullptr;
  switch (check.state) {
    case Check::State::passed: return;
    case Check::State::failed: element = "failure"; break;
    case Check::State::error: element = "error"; break;
    case Check::State::skipped: element = "skipped"; break;
  }
  pugi::xml_node verdict = node.append_child(element);
  set(verdict, "type", check.type);
  set(verdict, "message", check.sentence);
}

struct Suite {
  std::string name;
  std::vector<const Check*> checks;
  long count(Check::State state) const {
    return std::count_if(checks.begin(), checks.end(), [&](const Check* each) { return each->state == state; });
  }
};

std::vector<Suite> gather_suites(const std::vector<Check>& checks) {
  std::vector<Suite> suites;
  for (const Check& check : checks) {
    if (suites.empty() || suites.back().name != check.suite) suites.push_back({check.suite, {}});
    suites.back().checks.push_back(&check);
  }
  return suites;
}

void add_suite(pugi::xml_node root, const Suite& suite, size_t id, const JUnitStamp& stamp) {
  pugi::xml_node node = root.append_child("testsuite");
  set(node, "package", "tprimat.compare");
  node.append_attribute("id") = static_cast<unsigned long long>(id);
  set(node, "name", suite.name);
  set(node, "timestamp", stamp.timestamp);
  set(node, "hostname", stamp.hostname);
  node.append_attribute("tests") = static_cast<unsigned long long>(suite.checks.size());
  node.append_attribute("failures") = static_cast<long long>(suite.count(Check::State::failed));
  node.append_attribute("errors") = static_cast<long long>(suite.count(Check::State::error));
  node.append_attribute("skipped") = static_cast<long long>(suite.count(Check::State::skipped));
  set(node, "time", "0");
  node.append_child("properties");
  for (const Check* check : suite.checks) add_case(node, *check);
  node.append_child("system-out");
  node.append_child("system-err");
}

}  // namespace

std::string render_junit(const Comparison& comparison, const JUnitStamp& stamp) {
  pugi::xml_document document;
  pugi::xml_node declaration = document.append_child(pugi::node_declaration);
  declaration.append_attribute("version") = "1.0";
  declaration.append_attribute("encoding") = "UTF-8";
  pugi::xml_node root = document.append_child("testsuites");
  const std::vector<Check> checks = list_checks(comparison);
  size_t id = 0;
  for (const Suite& suite : gather_suites(checks)) add_suite(root, suite, id++, stamp);
  std::ostringstream out;
  document.save(out, "  ");
  return out.str();
}

}  // namespace tprimat::results
