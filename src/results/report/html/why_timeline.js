"use strict";
// The timelines: a canvas per side, one scale for both, zoomed and moved together.

const laneHeight = 24, laneGap = 4, axisHeight = 22, titleWidth = 150;
const timelines = [];
const longest = Math.max(1, ...page.timelines.map((side) => side.length));
const view = {begin: 0, end: longest};  // us

function formatTime(microseconds) {
  return microseconds >= 100 ? `${(microseconds / 1e3).toFixed(3)} ms` : `${microseconds.toFixed(1)} µs`;
}

function placeOf(time, width) {
  return titleWidth + (time - view.begin) / (view.end - view.begin) * (width - titleWidth);
}

function timeAt(x, width) {
  return view.begin + (x - titleWidth) / (width - titleWidth) * (view.end - view.begin);
}

// A round distance between ticks, of which at most ten are seen.
function chooseTick() {
  const rough = (view.end - view.begin) / 10, power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((factor) => factor * power).find((tick) => tick >= rough);
}

function drawAxis(context, width, height) {
  const tick = chooseTick();
  context.fillStyle = themeColour("faint");
  context.strokeStyle = themeColour("line");
  context.textAlign = "center";
  for (let time = Math.ceil(view.begin / tick) * tick; time <= view.end; time += tick) {
    const x = Math.round(placeOf(time, width)) + 0.5;
    context.beginPath();
    context.moveTo(x, 0);
    context.lineTo(x, height - axisHeight);
    context.stroke();
    context.fillText(`${Number((time / 1e3).toPrecision(6))} ms`, Math.min(x, width - 28), height - 6);
  }
}

function drawLane(context, side, lane, top, width) {
  context.fillStyle = themeColour("ink");
  context.textAlign = "left";
  context.fillText(lane.title, 0, top + laneHeight * 0.68, titleWidth - 8);
  context.save();
  context.beginPath();
  context.rect(titleWidth, top, width - titleWidth, laneHeight);
  context.clip();
  for (const [begin, length, group, name] of lane.spans) {
    if (begin > view.end || begin + length < view.begin) continue;
    const left = placeOf(begin, width), wide = Math.max(0.7, placeOf(begin + length, width) - left);
    context.fillStyle = groupColour(side.groups[group]);
    context.fillRect(left, top, wide, laneHeight);
    if (wide > 60) drawName(context, lane, side, {name, group}, left, wide, top);
  }
  context.restore();
}

// Bands state their kind, other spans their name, as far as it fits.
function drawName(context, lane, side, span, left, wide, top) {
  const begin = Math.max(left, titleWidth);
  const letters = Math.floor((wide - (begin - left) - 8) / 6.2);
  const text = lane.title === "phases" ? side.groups[span.group] : side.names[span.name];
  if (letters < 6) return;
  context.fillStyle = textColour(groupColour(side.groups[span.group]));
  context.fillText(text.slice(0, letters), begin + 4, top + laneHeight * 0.68);
}

function drawTimeline(timeline) {
  const {canvas, side} = timeline;
  const ratio = devicePixelRatio || 1, width = canvas.clientWidth;
  const height = side.lanes.length * (laneHeight + laneGap) + axisHeight;
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  canvas.style.setProperty("height", `${height}px`);
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  context.font = "12px system-ui, sans-serif";
  drawAxis(context, width, height);
  side.lanes.forEach((lane, index) => drawLane(context, side, lane, index * (laneHeight + laneGap), width));
  context.fillStyle = themeColour("bad");  // where the step's mark ends
  const end = placeOf(side.marked, width);
  if (end >= titleWidth && end <= width) context.fillRect(end, 0, 1.5, height - axisHeight);
}

function drawTimelines() {
  timelines.forEach(drawTimeline);
}

function setView(begin, end) {
  const length = Math.min(Math.max(end - begin, 1), longest);
  view.begin = Math.min(Math.max(begin, 0), longest - length);
  view.end = view.begin + length;
  drawTimelines();
}

function zoom(timeline, event) {
  event.preventDefault();
  const at = timeAt(event.offsetX, timeline.canvas.clientWidth), factor = event.deltaY > 0 ? 1.25 : 0.8;
  setView(at - (at - view.begin) * factor, at + (view.end - at) * factor);
}

function spanAt(timeline, event) {
  const lane = timeline.side.lanes[Math.floor(event.offsetY / (laneHeight + laneGap))];
  const time = timeAt(event.offsetX, timeline.canvas.clientWidth);
  const span = lane?.spans.find(([begin, length]) => begin <= time && time < begin + length);
  return span && event.offsetX >= titleWidth ? {lane, span} : null;
}

function showSpan(timeline, event) {
  const found = spanAt(timeline, event);
  const text = document.getElementById("timeline-text");
  if (!found) return void (text.textContent = "");
  const [begin, length, group, name, events] = found.span;
  const what = [timeline.side.names[name], timeline.side.groups[group]].filter((part) => part !== "").join(", ");
  const count = events > 1 ? `; ${events} events, the longest is named` : "";
  text.textContent = `${timeline.side.label}, ${found.lane.title}: ${what}; ${formatTime(length)} from ` +
      `${formatTime(begin)}${count}`;
}

function listen(timeline) {
  const {canvas} = timeline;
  let held = null;
  canvas.addEventListener("wheel", (event) => zoom(timeline, event), {passive: false});
  canvas.addEventListener("dblclick", () => setView(0, longest));
  canvas.addEventListener("pointerdown", (event) => {
    held = event.offsetX;
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointerup", () => held = null);
  canvas.addEventListener("pointermove", (event) => {
    if (held === null) return showSpan(timeline, event);
    const moved = timeAt(held, canvas.clientWidth) - timeAt(event.offsetX, canvas.clientWidth);
    held = event.offsetX;
    setView(view.begin + moved, view.end + moved);
  });
  canvas.addEventListener("keydown", (event) => moveByKey(event));
}

function moveByKey(event) {
  const length = view.end - view.begin, middle = view.begin + length / 2;
  if (event.key.endsWith("Left")) setView(view.begin - length / 5, view.end - length / 5);
  if (event.key.endsWith("Right")) setView(view.begin + length / 5, view.end + length / 5);
  if (event.key === "+") setView(middle - length * 0.4, middle + length * 0.4);
  if (event.key === "-") setView(middle - length * 0.625, middle + length * 0.625);
  if (event.key === "0") setView(0, longest);
}

// The groups that occur, with their colours.
function drawKey() {
  const key = document.getElementById("timeline-key");
  key.replaceChildren();
  const groups = new Set(page.timelines.flatMap((side) => side.groups));
  for (const group of groups) {
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    const square = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    for (const [name, value] of [["width", "100%"], ["height", "100%"], ["fill", groupColour(group)]])
      square.setAttribute(name, value);
    svg.append(square);
    const entry = document.createElement("span");
    entry.append(svg, group.replace("_", " and "));
    key.append(entry);
  }
}

function startTimelines() {
  const place = document.getElementById("timelines");
  if (page.timelines.length === 0) {
    place.textContent = "Neither side has a trace with steps.";
    return;
  }
  document.getElementById("timeline-hint").hidden = false;
  for (const side of page.timelines) {
    const title = document.createElement("h3"), canvas = document.createElement("canvas");
    title.textContent = `${side.label}, step ${side.step}: ${formatTime(side.marked)}`;
    canvas.tabIndex = 0;
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", `Timeline of ${side.label}; the cursor keys move, + and - zoom, 0 shows all`);
    place.append(title, canvas);
    timelines.push({side, canvas});
    listen(timelines.at(-1));
  }
}

function redraw() {
  drawKey();
  drawTimelines();
}

startTheme();
startTimelines();
document.addEventListener("theme-changed", redraw);
addEventListener("resize", drawTimelines);
redraw();
