#include "report/plots/backends.h"
#include "text/json.h"

namespace tprimat::results {
namespace embedded {
extern const std::string_view draw_py;
}

namespace {

Json pair_of(const Place& place) { return Json::array({place.x, place.y}); }

Json shape_of(const Path& path) {
  Json places = Json::array(), dashes = Json::array();
  for (const Place& place : path.places) places.push_back(pair_of(place));
  for (const double length : path.dashes) dashes.push_back(length);
  return {{"places", places},      {"is_closed", path.is_closed}, {"fill", path.fill},
          {"stroke", path.stroke}, {"width", path.width},         {"dashes", dashes}};
}

Json shape_of(const Disc& disc) {
  return {{"centre", pair_of(disc.centre)},
          {"radius", disc.radius},
          {"fill", disc.fill},
          {"stroke", disc.stroke},
          {"width", disc.width}};
}

Json shape_of(const Label& text) {
  const char* align = text.align == Align::start ? "left" : text.align == Align::end ? "right" : "center";
  return {{"at", pair_of(text.at)},       {"text", text.text}, {"size", text.size},
          {"colour", text.colour},        {"align", align},    {"is_bold", text.is_bold},
          {"is_upright", text.is_upright}};
}

}  // namespace

std::string_view matplotlib_script() { return embedded::draw_py; }

std::string render_shapes(const Drawing& drawing) {
  Json shapes = Json::array();
  for (const Shape& shape : drawing.shapes)
    shapes.push_back(std::visit([](const auto& each) { return shape_of(each); }, shape));
  return print_json({{"width", drawing.width}, {"height", drawing.height}, {"scale", k_png_scale}, {"shapes", shapes}});
}

}  // namespace tprimat::results
