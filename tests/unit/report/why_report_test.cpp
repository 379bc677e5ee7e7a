#include "report/why_report.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "report/draw_plot.h"
#include "report/step_timeline.h"
#include "unit/report/sample_ledger.h"

namespace tprimat::results {
namespace {

size_t width_of(const std::string& text) {
  size_t widest = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const auto line = text.substr(begin, end - begin);
    widest =
        std::max(widest, static_cast<size_t>(std::ranges::count_if(line, [](char c) { return (c & 0xC0) != 0x80; })));
    begin = end + 1;
  }
  return widest;
}

size_t count(const std::string& text, std::string_view what) {
  size_t found = 0;
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; ++at) ++found;
  return found;
}

TEST(Why, FitsEightyColumnsAndHasColourOnlyOnRequest) {
  const std::string plain = render_why(sample_ledger(), {}), coloured = render_why(sample_ledger(), {.colour = true});
  EXPECT_LE(width_of(plain), 80u) << plain;
  EXPECT_EQ(plain.find('\033'), std::string::npos);
  EXPECT_NE(coloured.find('\033'), std::string::npos);
}

TEST(Why, FoldsSmallTermsButLosesNone) {
  const Ledger ledger = sample_ledger();
  const std::string text = render_why(ledger, {});
  EXPECT_EQ(text.find("\nclocks"), std::string::npos);
  EXPECT_NE(text.find("Other terms: clocks, work, outliers."), std::string::npos) << text;
  EXPECT_NE(render_why(ledger, {.all = true}).find("\nclocks"), std::string::npos);
}

TEST(Why, NamesTheLargestTermsFirst) {
  const Ledger ledger = sample_ledger();
  const auto terms = largest_terms(ledger, 2);
  ASSERT_EQ(terms.size(), 2u);
  EXPECT_EQ(terms[0]->cause, Cause::products);
  EXPECT_EQ(terms[1]->cause, Cause::attention);
}

TEST(Why, NamesNoCauseWhereNoneStandsOut) {
  Ledger ledger = sample_ledger();
  for (LedgerTerm& term : ledger.terms) term.sentence.clear();
  EXPECT_NE(render_why(ledger, {}).find("No cause is named"), std::string::npos);
  ledger.resolved = false;
  EXPECT_NE(describe_remainder(ledger).find("Not resolved"), std::string::npos);
}

TEST(Why, HasNoShareWithoutAGap) {
  Ledger ledger = sample_ledger();
  ledger.gap_seconds = 0;
  EXPECT_FALSE(share_of_gap(ledger, 1));
  EXPECT_NE(describe_gap(ledger).find("same time"), std::string::npos);
  EXPECT_EQ(render_why(ledger, {}).find("inf"), std::string::npos);
}

// A's step and the drawn terms are B's step.
TEST(Why, WaterfallCloses) {
  const Picture picture = plot_why(sample_ledger());
  const std::vector<Bar>& bars = picture.sections.at(0).panels.at(0).bars;
  ASSERT_GE(bars.size(), 6u);
  EXPECT_DOUBLE_EQ(bars[1].from, bars[0].value);
  for (size_t i = 2; i + 1 < bars.size(); ++i) EXPECT_DOUBLE_EQ(bars[i].from, bars[i - 1].value);
  EXPECT_NEAR(bars[bars.size() - 2].value, bars.back().value, 1e-9);
  const std::string svg = render_svg(picture);
  EXPECT_EQ(count(svg, "fill=\"#d55e00\""), 3u) << "slower: products, attention, launch gaps";
  EXPECT_EQ(count(svg, "fill=\"#009e73\""), 1u) << "faster";
}

// The bars have the figures of the table, and screen readers hear the axis.
TEST(Why, WaterfallHasTheFiguresOfTheTable) {
  const std::string svg = render_svg(plot_why(sample_ledger()));
  EXPECT_NE(svg.find(">+1.840<"), std::string::npos) << svg;
  EXPECT_NE(svg.find(" time per step, ms: A 47.151, matrix products +4.094"), std::string::npos) << svg;
}

TEST(Why, IndentsTheFurtherLinesOfAnItem) {
  const std::string text = render_why(sample_ledger(), {});
  EXPECT_NE(text.find("\n1. Matrix products"), std::string::npos) << text;
  EXPECT_NE(text.find("\n   alone 3.1 ms."), std::string::npos) << text;
}

TEST(Why, PageHoldsNoMarkupOfItsInput) {
  const std::string page = render_why_page(sample_ledger(), {});
  EXPECT_NE(page.find("&lt;script&gt;"), std::string::npos);
  EXPECT_EQ(page.find("<script> "), std::string::npos);
  EXPECT_EQ(page.find("{terms}"), std::string::npos);
}

TEST(Why, PageHasAColourForEveryClass) {
  const std::string page = render_why_page(sample_ledger(), {});
  for (const auto& [kernel_class, name] : EnumNames<logs::KernelClass>::values)
    EXPECT_NE(page.find(fmt::format("\"{}\": [", name)), std::string::npos) << name;
}

logs::Trace make_trace() {
  logs::Trace trace;
  trace.names = {"gemm_a", "copy_b", "aten::mm", "ProfilerStep#3"};
  trace.marks = {{3, {}, {0, 1000000}}, {4, {}, {1000000, 3000000}}, {5, {}, {3000000, 4500000}}};
  for (int64_t i = 0; i < 5000; ++i)
    trace.events.push_back({.span = {3000000 + i * 300, 3000000 + i * 300 + 200}, .stream = 7});
  trace.events.push_back({.span = {4490000, 4600000}, .name = 1, .stream = 8, .launched = 4480000});
  trace.host_events.push_back({.span = {3100000, 3400000}, .name = 2, .phase = logs::Phase::forward, .layer = 0});
  trace.host_events.push_back({.span = {3200000, 3300000}, .name = 2, .phase = logs::Phase::forward, .layer = 0});
  trace.host_events.push_back({.span = {3500000, 3600000}, .name = 2, .phase = logs::Phase::forward, .layer = 1});
  return trace;
}

const TimelineLane* find_lane(const StepTimeline& timeline, const std::string& title) {
  for (const TimelineLane& lane : timeline.lanes)
    if (lane.title == title) return &lane;
  return nullptr;
}

TEST(StepTimeline, ShowsTheMedianStepUntilItsWorkEnds) {
  const auto timeline = draw_step(make_trace());
  ASSERT_TRUE(timeline);
  EXPECT_EQ(timeline->step, 5);
  EXPECT_DOUBLE_EQ(timeline->marked, 1500);
  EXPECT_DOUBLE_EQ(timeline->length, 1600) << "a copy that the step launched ends later";
  for (const char* title : {"phases", "layers", "host thread 0", "GPU 0 stream 7", "GPU 0 stream 8"})
    EXPECT_NE(find_lane(*timeline, title), nullptr) << title;
  EXPECT_EQ(find_lane(*timeline, "layers")->spans.size(), 2u);
}

TEST(StepTimeline, JoinsWhatIsTooShortToBeSeen) {
  const auto timeline = draw_step(make_trace());
  const TimelineLane* lane = find_lane(*timeline, "GPU 0 stream 7");
  ASSERT_NE(lane, nullptr);
  EXPECT_LE(lane->spans.size(), static_cast<size_t>(k_max_spans_of_lane));
  int64_t events = 0;
  for (const TimelineSpan& span : lane->spans) events += span.events;
  EXPECT_EQ(events, 5000) << "none is lost";
}

TEST(StepTimeline, HostThreadShowsTheInnermostEvent) {
  const auto timeline = draw_step(make_trace());
  const TimelineLane* lane = find_lane(*timeline, "host thread 0");
  ASSERT_NE(lane, nullptr);
  ASSERT_EQ(lane->spans.size(), 4u);
  EXPECT_DOUBLE_EQ(lane->spans[1].begin, 200);
  EXPECT_DOUBLE_EQ(lane->spans[1].length, 100);
}

TEST(StepTimeline, NeedsAStep) {
  logs::Trace trace = make_trace();
  trace.marks.clear(), trace.events.clear();
  EXPECT_FALSE(draw_step(trace));
}

}  // namespace
}  // namespace tprimat::results
