#include <fmt/format.h>

#include <string_view>

#include "report/html/html_text.h"
#include "report/html/page_data.h"
#include "report/html/sections.h"
#include "report/report.h"

namespace tprimat::results {
namespace embedded {
extern const std::string_view chart_js, page_css, data_js, theme_js, run_table_js, charts_js, panels_js, settings_js,
    formulas_js, page_js;
extern const std::string_view page_csp;  // the hashes of all of them, as a Content-Security-Policy
}  // namespace embedded

namespace {

// In the order in which they run.
constexpr const std::string_view* k_scripts[] = {&embedded::chart_js,     &embedded::data_js,     &embedded::theme_js,
                                                 &embedded::run_table_js, &embedded::charts_js,   &embedded::panels_js,
                                                 &embedded::settings_js,  &embedded::formulas_js, &embedded::page_js};

std::string render_head(const std::string& title) {
  std::string out = "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
  out += fmt::format("<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n", embedded::page_csp);
  out +=
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<link rel=\"icon\" href=\"data:,\">\n";
  out += fmt::format("<title>{}</title>\n<style>", escape_html(title));
  out += embedded::page_css;
  return out + "</style>\n</head>\n";
}

std::string render_section(const char* id, const char* title, const std::string& content) {
  return fmt::format("<section id=\"{}\">\n<h2>{}</h2>\n", id, title) + content + "</section>\n";
}

constexpr const char* k_charts =
    "<noscript><p>The charts need JavaScript, which this viewer does not run. The tables show all other figures.</p>"
    "</noscript>\n<p class=\"hint\" id=\"chart-note\"></p>\n<div id=\"panels\"></div>\n";
constexpr const char* k_settings =
    "<noscript><p>The side-by-side view needs JavaScript; the result files contain every setting.</p></noscript>\n"
    "<div id=\"setting-tables\"></div>\n";

constexpr const char* k_navigation =
    "<nav aria-label=\"Sections\"><a href=\"#verdicts\">Verdicts</a><a href=\"#runs\">Runs</a><a "
    "href=\"#charts\">Charts</a>"
    "<a href=\"#audit\">Audit</a><a href=\"#settings\">Settings</a><a href=\"#formulas\">Formulas</a>"
    "<a href=\"#remarks\">Pairs and files</a></nav>\n<button type=\"button\" id=\"theme\" hidden></button>\n";

std::string render_body(const Comparison& comparison) {
  const Document document = build_document(comparison);
  std::string out = "<body>\n<a class=\"skip\" href=\"#verdicts\">To the verdicts</a>\n<header>\n<h1>Comparison of " +
                    escape_html(count_runs(comparison)) + "</h1>\n" + k_navigation + "</header>\n<main>\n";
  out += render_section("verdicts", "Verdicts", render_verdicts(document));
  out += render_section("runs", "Runs", "<div id=\"filters\" hidden></div>\n" + render_run_table(comparison));
  out += render_section("charts", "Charts", k_charts);
  out += render_section("audit", "Audit", render_audit(comparison));
  out += render_section("settings", "Settings and environment", k_settings);
  out += render_section("formulas", "Formulas", render_formulas(comparison));
  out += render_section("remarks", "Pairs and files", render_remarks(document));
  return out + "</main>\n<footer>\n" + render_reading_aid(document) + "</footer>\n";
}

}  // namespace

std::string render_html(const Comparison& comparison) {
  std::string out = render_head("Comparison of " + count_runs(comparison)) + render_body(comparison);
  out += "<script type=\"application/json\" id=\"page-data\">" + escape_script_json(page_to_json(comparison)) +
         "</script>\n";
  for (const std::string_view* script : k_scripts) out.append("<script>").append(*script).append("</script>\n");
  return out + "</body>\n</html>\n";
}

}  // namespace tprimat::results
