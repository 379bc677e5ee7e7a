#include "report/plot_script.h"

#include <fmt/format.h>

#include <cmath>

#include "text/format.h"

namespace tprimat::results {
namespace embedded {
extern const std::string_view style_gp, panel_gp;
}

namespace {

std::string write_value(double value) { return std::isnan(value) ? "NaN" : fmt::format("{:.8g}", value); }
std::string write_value(const std::string& text) { return quote_gnuplot(text); }

template <class T>
std::string write_array(const char* name, const std::vector<T>& list) {
  std::vector<std::string> values;
  for (const T& each : list) values.push_back(write_value(each));
  return fmt::format("array {}[{}] = [{}]\n", name, list.size(), join(values, ", "));
}

}  // namespace

std::string quote_gnuplot(const std::string& text) {
  std::string quoted = "'";
  for (const char c : printable(text)) quoted += c == '\'' ? "''" : std::string(1, c);
  return quoted + '\'';
}

PlotScript::PlotScript(PlotFormat format, const Canvas& canvas) {
  const bool png = format == PlotFormat::png;
  text_ = fmt::format("set terminal {} noenhanced font 'DejaVu Sans,{}' background rgb 'white' size {},{}\n",
                      png ? "pngcairo" : "svg", png ? canvas.png_font : canvas.svg_font, canvas.width, canvas.height);
  draw(embedded::style_gp);
}

void PlotScript::set(const char* name, double value) { text_ += fmt::format("{} = {}\n", name, write_value(value)); }
void PlotScript::set(const char* name, const std::string& text) {
  text_ += fmt::format("{} = {}\n", name, write_value(text));
}
void PlotScript::set(const char* name, const std::vector<double>& list) { text_ += write_array(name, list); }
void PlotScript::set(const char* name, const std::vector<std::string>& list) { text_ += write_array(name, list); }

void PlotScript::set_block(const std::string& name, const std::string& rows) {
  text_ += fmt::format("${} << EOD\n{}EOD\n", name, rows);
}

void PlotScript::begin_panel(const Frame& frame, const std::string& title, const std::string& note) {
  text_ += fmt::format("left = {:.5f}\nbottom = {:.5f}\nwidth = {:.5f}\nheight = {:.5f}\n", frame.left, frame.bottom,
                       frame.width, frame.height);
  set("title", title);
  set("note", note);
  draw(embedded::panel_gp);
}

}  // namespace tprimat::results
