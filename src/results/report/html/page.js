"use strict";
// Puts panels on the page, draws each when it comes into view, and again when filters or theme change.

const panels = [];

function makePanel(groupIndex, kind) {
  const canvas = make("canvas", {role: "img"});
  const panel = {
    ...kind,
    groupIndex,
    whole: false,
    chart: null,
    stale: true,
    inView: false,
    canvas,
    frame: make("div", {class: "frame"}, canvas),
    notes: make("p", {class: "hint"})
  };
  const heading = make("h4", {}, kind.title, ...kind.formulas.map(formulaLink));
  if (kind.canShowWhole) heading.append(makeWholeButton(panel));
  panel.node = make("figure", {class: kind.wide ? "panel wide" : "panel"}, heading, panel.frame, panel.notes);
  panels.push(panel);
  return panel.node;
}

function makeWholeButton(panel) {
  return makeSwitch("Show all steps, logarithmic", (whole) => {
    panel.whole = whole;
    draw(panel);
  });
}

function draw(panel) {
  panel.stale = false;
  panel.chart?.destroy();
  panel.chart = null;
  if (panel.node.hidden) return;
  const runs = shownOf(panel.groupIndex), described = panel.describe(runs, panel);
  panel.frame.style.height = described.rows ? `${90 + described.rows * described.rowHeight}px` : "";
  panel.notes.textContent = described.notes.filter(Boolean).join(" ");
  panel.canvas.setAttribute(
      "aria-label",
      `${panel.title} of ${runs.map(nameOf).slice(0, 12).join(", ")}. The table of runs lists the figures.`);
  panel.chart = new Chart(panel.canvas, described.config);
}

function drawStale(all = false) {
  for (const panel of panels)
    if (panel.stale && (all || panel.inView)) draw(panel);
}

// A panel that no shown run knows anything for is left out, and named.
function hideUnknown(groupIndex) {
  const runs = shownOf(groupIndex), mine = panels.filter((panel) => panel.groupIndex === groupIndex);
  for (const panel of mine) panel.node.hidden = !runs.some(panel.isKnown);
  const unknown = mine.filter((panel) => panel.node.hidden).map((panel) => panel.title.toLowerCase());
  const part = document.querySelector(`[data-model-panels="${groupIndex}"]`);
  part.hidden = runs.length === 0;
  part.querySelector(".unknown").textContent =
      unknown.length > 0 ? `Not recorded by any of these runs, so not drawn: ${unknown.join(", ")}.` : "";
}

function redraw() {
  for (const panel of panels) panel.stale = true;
  page.groups.forEach((_, groupIndex) => hideUnknown(groupIndex));
  drawStale();
}

function startPanels() {
  const place = document.getElementById("panels");
  page.groups.forEach((group, groupIndex) => {
    place.append(make(
        "div", {"data-model-panels": groupIndex}, make("h3", {}, group.model),
        make("div", {class: "grid"}, ...panelKinds.map((kind) => makePanel(groupIndex, kind))),
        make("p", {class: "hint unknown"})));
  });
  const byNode = new Map(panels.map((panel) => [panel.node, panel]));
  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries) byNode.get(entry.target).inView = entry.isIntersecting;
    drawStale();
  }, {rootMargin: "300px"});
  for (const panel of panels) watcher.observe(panel.node);
  document.getElementById("chart-note").textContent =
      "Charts follow the filters of the table. Each run and its repetitions share one colour.";
}

// Paper is white, and shows everything at once.
function startPrinting() {
  let before;
  addEventListener("beforeprint", () => {
    before = document.documentElement.dataset.theme;
    document.documentElement.dataset.theme = "light";
    document.documentElement.classList.add("printing");
    for (const panel of panels) panel.stale = true;
    drawStale(true);
  });
  addEventListener("afterprint", () => {
    if (before)
      document.documentElement.dataset.theme = before;
    else
      delete document.documentElement.dataset.theme;
    document.documentElement.classList.remove("printing");
    redraw();
  });
}

startTheme();
startCharts();
startPanels();
startRunTable();
startSettings();
startFormulas();
startPrinting();
document.addEventListener("runs-changed", redraw);
document.addEventListener("theme-changed", redraw);
redraw();
