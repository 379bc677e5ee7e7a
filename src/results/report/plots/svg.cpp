#include <fmt/format.h>

#include <pugixml.hpp>
#include <sstream>

#include "report/plots/backends.h"
#include "report/plots/style.h"

namespace tprimat::results {
namespace {

constexpr const char* k_fonts = "DejaVu Sans, Verdana, Noto Sans, Liberation Sans, Arial, sans-serif";

// With two decimals at most.
std::string write_number(double value) {
  std::string text = fmt::format("{:.2f}", value + 0.0);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text == "-0" ? "0" : text;
}

void set(pugi::xml_node node, const char* name, const std::string& value) {
  node.append_attribute(name) = value.c_str();
}
void set(pugi::xml_node node, const char* name, double value) { set(node, name, write_number(value)); }

void set_paint(pugi::xml_node node, const std::string& fill, const std::string& stroke, double width) {
  set(node, "fill", fill.empty() ? "none" : fill);
  if (stroke.empty()) return;
  set(node, "stroke", stroke);
  if (width != 1) set(node, "stroke-width", width);
}

void add_shape(pugi::xml_node parent, const Path& path) {
  std::string commands;
  for (const Place& place : path.places)
    commands += fmt::format("{}{} {}", commands.empty() ? "M" : "L", write_number(place.x), write_number(place.y));
  pugi::xml_node node = parent.append_child("path");
  set(node, "d", commands + (path.is_closed ? "Z" : ""));
  set_paint(node, path.fill, path.stroke, path.width);
  std::string dashes;
  for (const double length : path.dashes) dashes += (dashes.empty() ? "" : " ") + write_number(length);
  if (!dashes.empty()) set(node, "stroke-dasharray", dashes);
}

void add_shape(pugi::xml_node parent, const Disc& disc) {
  pugi::xml_node node = parent.append_child("circle");
  set(node, "cx", disc.centre.x), set(node, "cy", disc.centre.y), set(node, "r", disc.radius);
  set_paint(node, disc.fill, disc.stroke, disc.width);
}

void add_shape(pugi::xml_node parent, const Label& text) {
  pugi::xml_node node = parent.append_child("text");
  set(node, "x", text.at.x), set(node, "y", text.at.y), set(node, "font-size", text.size),
      set(node, "fill", text.colour);
  if (text.align != Align::start) set(node, "text-anchor", text.align == Align::end ? "end" : "middle");
  if (text.is_bold) set(node, "font-weight", "bold");
  if (!text.is_upright)
    set(node, "transform", fmt::format("rotate(-90 {} {})", write_number(text.at.x), write_number(text.at.y)));
  node.text() = text.text.c_str();
}

}  // namespace

std::string render_svg(const Drawing& drawing) {
  pugi::xml_document document;
  pugi::xml_node root = document.append_child("svg");
  set(root, "xmlns", "http://www.w3.org/2000/svg");
  set(root, "width", drawing.width), set(root, "height", drawing.height);
  set(root, "viewBox", fmt::format("0 0 {} {}", write_number(drawing.width), write_number(drawing.height)));
  set(root, "role", "img"), set(root, "font-family", k_fonts);
  root.append_child("title").text() = drawing.title.c_str();
  root.append_child("desc").text() = drawing.description.c_str();
  pugi::xml_node background = root.append_child("rect");
  set(background, "width", "100%"), set(background, "height", "100%"), set(background, "fill", k_background);
  for (const Shape& shape : drawing.shapes) std::visit([&](const auto& each) { add_shape(root, each); }, shape);
  std::ostringstream out;
  document.save(out, "", pugi::format_indent | pugi::format_no_declaration, pugi::encoding_utf8);
  return out.str();
}

}  // namespace tprimat::results
