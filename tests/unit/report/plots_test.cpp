#include <gtest/gtest.h>

#include <algorithm>
#include <pugixml.hpp>
#include <set>

#include "report/plots/axis.h"
#include "report/plots/backends.h"
#include "report/plots/layout.h"
#include "report/plots/text_width.h"
#include "text/format.h"
#include "unit/report/sample_pictures.h"

namespace tprimat::results {
namespace {

// Nothing but shapes and texts, and no attribute that loads or runs anything.
struct StrictReader : pugi::xml_tree_walker {
  bool for_each(pugi::xml_node& node) override {
    static const std::set<std::string> elements = {"svg", "title", "desc", "rect", "path", "circle", "text"};
    if (node.type() == pugi::node_pcdata) return true;
    EXPECT_EQ(node.type(), pugi::node_element);
    EXPECT_TRUE(elements.contains(node.name())) << node.name();
    for (const pugi::xml_attribute each : node.attributes()) {
      const std::string name = each.name(), value = each.value();
      EXPECT_FALSE(name.starts_with("on") || name.ends_with("href") || name == "style" || name == "id") << name;
      EXPECT_EQ(value.find("url("), std::string::npos) << value;
      for (const char* number : {"nan", "inf", "e+"}) EXPECT_EQ(value.find(number), std::string::npos) << value;
    }
    return true;
  }
};

TEST(Svg, IsXmlOfShapesAndTextsAlone) {
  for (const Picture& picture : sample_pictures()) {
    const std::string svg = render_svg(lay_out(picture));
    pugi::xml_document document;
    const auto parsed = document.load_buffer(svg.data(), svg.size(), pugi::parse_full);
    ASSERT_TRUE(parsed) << parsed.description() << ": " << svg.substr(0, 300);
    StrictReader reader;
    document.traverse(reader);
  }
}

TEST(Svg, SaysWhatItShows) {
  pugi::xml_document document;
  document.load_string(render_svg(lay_out(picture_of(sample_runs(2)))).c_str());
  EXPECT_STREQ(document.child("svg").attribute("role").value(), "img");
  EXPECT_STREQ(document.child("svg").child("title").text().get(), "llama");
  const std::string description = document.child("svg").child("desc").text().get();
  EXPECT_TRUE(description.starts_with("NVIDIA NeMo is ")) << description;
  EXPECT_NE(description.find("; tokens/s per device: A  NVIDIA NeMo "), std::string::npos) << description;
}

TEST(Svg, KeepsHostileNamesAsText) {
  const std::string svg = render_svg(lay_out(hostile_picture()));
  EXPECT_EQ(svg.find("<script"), std::string::npos);
  EXPECT_NE(svg.find("&lt;script&gt;alert(1)"), std::string::npos);
  EXPECT_EQ(svg.find('\x01'), std::string::npos);
}

TEST(Svg, IsTheSameForTheSameInput) {
  EXPECT_EQ(render_svg(lay_out(hostile_picture())), render_svg(lay_out(hostile_picture())));
  EXPECT_NE(render_svg(lay_out(hostile_picture())), render_svg(lay_out(damaged_picture())));
}

struct Extent {
  double left, top, right, bottom;
};

// Of the letters, less a little, so that lines may touch.
Extent extent_of(const Label& label) {
  const double width = text_width(label.text, label.size, label.is_bold);
  const double from = label.align == Align::start ? 0 : label.align == Align::end ? -width : -width / 2;
  const double above = 0.7 * label.size;
  if (label.is_upright) return {label.at.x + from, label.at.y - above, label.at.x + from + width, label.at.y};
  return {label.at.x - above, label.at.y - from - width, label.at.x, label.at.y - from};
}

bool overlap(const Extent& a, const Extent& b) {
  constexpr double k_tolerance = 0.5;
  return a.left + k_tolerance < b.right && b.left + k_tolerance < a.right && a.top + k_tolerance < b.bottom &&
         b.top + k_tolerance < a.bottom;
}

TEST(Layout, KeepsTextsApartAndInsideThePicture) {
  for (const Picture& picture : sample_pictures()) {
    const Drawing drawing = lay_out(picture);
    std::vector<std::pair<Extent, std::string>> labels;
    for (const Shape& shape : drawing.shapes)
      if (const Label* label = std::get_if<Label>(&shape)) labels.emplace_back(extent_of(*label), label->text);
    for (size_t i = 0; i < labels.size(); ++i) {
      const auto& [extent, text] = labels[i];
      EXPECT_TRUE(extent.left >= 0 && extent.top >= 0) << text;
      EXPECT_TRUE(extent.right <= drawing.width && extent.bottom <= drawing.height) << text;
      for (size_t k = 0; k < i; ++k)
        EXPECT_FALSE(overlap(extent, labels[k].first)) << text << " on " << labels[k].second;
    }
  }
}

TEST(Layout, KeepsMarksInsideThePicture) {
  for (const Picture& picture : sample_pictures()) {
    const Drawing drawing = lay_out(picture);
    std::vector<Place> places;
    for (const Shape& shape : drawing.shapes)
      if (const Path* path = std::get_if<Path>(&shape))
        places.insert(places.end(), path->places.begin(), path->places.end());
    for (const Place& place : places)
      EXPECT_TRUE(place.x >= 0 && place.x <= drawing.width && place.y >= 0 && place.y <= drawing.height)
          << place.x << ' ' << place.y;
  }
}

std::vector<std::string> tick_labels(const Drawing& drawing) {
  std::vector<std::string> labels;
  for (const Shape& shape : drawing.shapes)
    if (const Label* label = std::get_if<Label>(&shape); label && label->align == Align::end)
      labels.push_back(label->text);
  return labels;
}

TEST(Layout, LabelsOfTicksStandInFull) {
  for (const LoadedRuns& runs : {sample_runs(2), sample_runs(80), sample_runs(2, 1)}) {
    const std::vector<std::string> labels = tick_labels(lay_out(picture_of(runs)));
    EXPECT_GE(labels.size(), 12u);
    for (const std::string& label : labels) EXPECT_EQ(label.find("…"), std::string::npos) << label;
  }
}

TEST(Plots, SayWhatIsNotRecorded) {
  size_t messages = 0;
  const Picture empty = empty_picture();
  for (const Panel& panel : empty.sections[0].panels) messages += panel.message == "not recorded" ? 1 : 0;
  EXPECT_EQ(messages, 5u);
  const Panel losses = damaged_picture().sections[0].panels[2];
  EXPECT_EQ(losses.note, "not recorded: A");
}

TEST(AxisTicks, OfDecadesAreRoundAndShort) {
  const auto fits = [](const AxisTicks& ticks) { return ticks.at.size() <= 7; };
  const Axis axis{.scale = Scale::logarithmic};
  EXPECT_EQ(join(choose_ticks(axis, {90, 1e6}, fits).labels, " "), "100 1k 10k 100k 1M");
  EXPECT_EQ(join(choose_ticks(axis, {0.9, 21}, fits).labels, " "), "1 2 5 10 20");
  EXPECT_EQ(choose_ticks(axis, {1e-20, 1e20}, fits).at.size(), 5u);
}

TEST(AxisTicks, OfStepsAreWhole) {
  const auto fits = [](const AxisTicks&) { return true; };
  EXPECT_EQ(join(choose_ticks({.is_whole = true}, {0.5, 2.5}, fits).labels, " "), "1 2");
}

TEST(TextWidth, CutsAndWrapsAtTheWidth) {
  EXPECT_EQ(fit_text("short", 12, 100), "short");
  EXPECT_EQ(fit_text("加速器加速器", 10, 45), "加速器…");
  for (const double width : {0.0, 5.0, 30.0, 80.0})
    EXPECT_LE(text_width(fit_text("a much longer name", 12, width), 12), width);
  const auto lines = wrap_text("one two three four five six seven", 12, 70, 2);
  ASSERT_EQ(lines.size(), 2u);
  for (const std::string& line : lines) EXPECT_LE(text_width(line, 12), 70) << line;
  EXPECT_TRUE(lines[1].ends_with("…")) << lines[1];
}

}  // namespace
}  // namespace tprimat::results
