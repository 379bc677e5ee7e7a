#include <fmt/format.h>

#include <algorithm>

#include "base/printable.h"
#include "report/plots/backends.h"
#include "report/plots/style.h"
#include "text/format.h"

namespace tprimat::results {
namespace {

// One plot over the whole image, in points from the upper left corner. Lines and areas are its elements, which gnuplot
// draws in their order, and texts are labels over them.
struct Script {
  std::string blocks, elements, labels;
  size_t count = 0;

  // `rows`: the data of one element, drawn as `style` says.
  void add(const std::string& rows, const std::string& columns, const std::string& style) {
    blocks += fmt::format("$d{} << EOD\n{}EOD\n", ++count, rows);
    elements += fmt::format(", \\\n  $d{} using {} with {} notitle", count, columns, style);
  }
};

std::string paint_line(const std::string& colour, double width, const std::vector<double>& dashes) {
  constexpr double k_dash_unit = 0.25;  // gnuplot's dash lengths count in fourths of the line's width
  std::vector<std::string> lengths;
  for (const double length : dashes) lengths.push_back(fmt::format("{:.3g}", length / k_dash_unit / width));
  return fmt::format("lc rgb '{}' lw {:.3g} dt {}", colour, width * k_png_scale,
                     lengths.empty() ? "1" : "(" + join(lengths, ",") + ")");
}

void add_shape(Script& script, const Path& path) {
  std::string rows;
  for (const Place& place : path.places) rows += fmt::format("{:.2f} {:.2f}\n", place.x, place.y);
  if (!path.fill.empty())
    script.add(rows, "1:2", fmt::format("filledcurves closed fc rgb '{}' fs solid 1 noborder", path.fill));
  if (path.stroke.empty()) return;
  if (path.is_closed) rows += fmt::format("{:.2f} {:.2f}\n", path.places.front().x, path.places.front().y);
  script.add(rows, "1:2", "lines " + paint_line(path.stroke, path.width, path.dashes));
}

void add_shape(Script& script, const Disc& disc) {
  const std::string row = fmt::format("{:.2f} {:.2f} {:.2f}\n", disc.centre.x, disc.centre.y, disc.radius);
  if (!disc.fill.empty()) script.add(row, "1:2:3", fmt::format("circles fc rgb '{}' fs solid 1 noborder", disc.fill));
  if (!disc.stroke.empty())
    script.add(row, "1:2:3", "circles fs empty border " + paint_line(disc.stroke, disc.width, {}));
}

// Whether DejaVu Sans has it. gnuplot's stand-in for a missing character is as large as the image.
bool has_glyph(char32_t code) {
  constexpr std::pair<char32_t, char32_t> k_covered[] = {
      {0x20, 0x2e9}, {0x300, 0x34f}, {0x384, 0x525}, {0x2010, 0x205f}, {0x2190, 0x22ff}};
  return std::ranges::any_of(k_covered, [&](const auto& range) { return code >= range.first && code <= range.second; });
}

std::string replace_missing(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const Utf8Character character = decode_utf8(text);
    const size_t bytes = std::max<size_t>(1, character.bytes);
    out += has_glyph(character.code) ? text.substr(0, bytes) : "□";
    text.remove_prefix(bytes);
  }
  return out;
}

void add_shape(Script& script, const Label& text) {
  constexpr double k_middle = 0.36;  // of the size: gnuplot centres a label on its height
  const double up = k_middle * text.size, x = text.at.x - (text.is_upright ? 0 : up),
               y = text.at.y - (text.is_upright ? up : 0);
  const char* align = text.align == Align::start ? "left" : text.align == Align::end ? "right" : "center";
  script.labels +=
      fmt::format("set label {} at {:.2f},{:.2f} {}{} front font 'DejaVu Sans{},{:.3g}' textcolor rgb '{}'\n",
                  quote_gnuplot(replace_missing(text.text)), x, y, align, text.is_upright ? "" : " rotate by 90",
                  text.is_bold ? ":Bold" : "", text.size, text.colour);
}

}  // namespace

std::string quote_gnuplot(const std::string& text) {
  std::string quoted = "'";
  for (const char c : printable(text)) quoted += c == '\'' ? "'.\"'\".'" : std::string(1, c);
  return quoted + '\'';
}

std::string render_gnuplot(const Drawing& drawing) {
  constexpr double k_font_scale = 0.75;  // gnuplot's letters are in points of 1/72 inch, at 96 pixels per inch
  Script script;
  for (const Shape& shape : drawing.shapes) std::visit([&](const auto& each) { add_shape(script, each); }, shape);
  return fmt::format(
             "set encoding utf8\n"
             "set terminal pngcairo noenhanced font 'DejaVu Sans,12' fontscale {} background rgb '{}' size "
             "{:.0f},{:.0f}\n"
             "set margins 0,0,0,0\nunset border\nunset tics\nunset key\nset xrange [0:{}]\nset yrange [{}:0]\n",
             k_font_scale * k_png_scale, k_background, drawing.width * k_png_scale, drawing.height * k_png_scale,
             drawing.width, drawing.height) +
         script.blocks + script.labels + "plot -1 notitle" + script.elements + "\n";
}

}  // namespace tprimat::results
