#include "report/plots/style.h"

#include <fmt/format.h>

#include <array>
#include <numbers>

namespace tprimat::results {
namespace {

// Okabe and Ito's palette for colour-blind readers. Its yellow, unreadable on white, is replaced by grey, and its
// orange and sky blue are darker, for a contrast of 3 on white. Dashes and marks differ as well, so that the picture
// survives a black-and-white printer.
constexpr std::array k_colours = {0x0072b2, 0xd55e00, 0x009e73, 0xcc79a7, 0xb87a00, 0x3f9bd1, 0x000000, 0x7f7f7f};

const std::array<std::vector<double>, 4> k_dashes = {{{}, {7, 3}, {7, 3, 1.5, 3}, {2.5, 2.5}}};

// Corners of the marks that are no discs, as angle of the first and their number.
struct Corners {
  int count;
  double turn;  // degrees
};
constexpr std::array<Corners, 4> k_corners = {{{0, 0}, {4, 45}, {3, -90}, {4, 0}}};

int code_of(const Look& look) { return look.is_grey ? 0x8c8c8c : k_colours[look.index % k_colours.size()]; }

}  // namespace

std::string colour_of(const Look& look) { return fmt::format("#{:06x}", code_of(look)); }

std::vector<double> dashes_of(const Look& look) {
  return look.is_grey ? std::vector<double>{} : k_dashes[look.index % k_dashes.size()];
}

Shape draw_mark(const Look& look, Place at, double radius, bool is_hollow) {
  const std::string colour = colour_of(look);
  const bool hollow = is_hollow || look.index / k_colours.size() % 2 == 1;
  const std::string fill = hollow ? k_background : colour;
  const Corners& corners = k_corners[look.index % k_corners.size()];
  if (corners.count == 0) return Disc{at, radius, fill, colour, 1.3};
  Path path{.is_closed = true, .fill = fill, .stroke = colour, .width = 1.3};
  const double size = radius * (corners.count == 3 ? 1.35 : 1.2);  // of about the same area
  for (int i = 0; i < corners.count; ++i) {
    const double angle = (corners.turn + 360.0 * i / corners.count) * std::numbers::pi / 180;
    path.places.push_back({at.x + size * std::cos(angle), at.y + size * std::sin(angle)});
  }
  return path;
}

void draw_sample(Drawing& drawing, const Look& look, Place from, double length, bool is_dotted) {
  Path line{.places = {from, {from.x + length, from.y}}, .stroke = colour_of(look), .width = 2};
  line.dashes = is_dotted ? std::vector<double>{2, 3} : dashes_of(look);
  drawing.shapes.emplace_back(std::move(line));
  if (!look.is_grey) drawing.shapes.push_back(draw_mark(look, {from.x + length / 2, from.y}, 3.6, false));
}

}  // namespace tprimat::results
