"use strict";
// How Chart.js draws here: colours, axes, the shaded warm-up. What is drawn is in panels.js.

// Okabe and Ito's palette for colour-blind readers; its yellow, unreadable on white, is grey. The dark one is the same
// hues, lighter. Beyond eight runs dashes tell them apart.
const lightPalette = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#B87A00", "#2A93C9", "#111111", "#767676"];
const darkPalette = ["#4DA6E0", "#F0823C", "#2BC49A", "#E39BC4", "#F2B632", "#8AD3F7", "#FFFFFF", "#A0A0A0"];
const dashes = [[], [7, 3], [2, 3], [9, 3, 2, 3]];
const pointStyles = ["circle", "rect", "triangle", "rectRot"];

function paletteColour(place) {
  const palette = isDark() ? darkPalette : lightPalette;
  return palette[place % palette.length];
}

function colourOf(participant) {
  return paletteColour(participant.index);
}

function dashOf(participant) {
  return dashes[Math.floor(participant.index / lightPalette.length) % dashes.length];
}

function pointOf(participant) {
  return pointStyles[participant.index % pointStyles.length];
}

function nameOf(participant) {
  return `${participant.letter}  ${participant.label}`;
}

// Steps up to `until` lie on a ground of their run's colour.
const warmupShade = {
  id: "warmupShade",
  beforeDatasetsDraw(chart, _, options) {
    const {ctx, chartArea: area, scales} = chart;
    for (const band of options.bands ?? []) {
      const right = Math.min(area.right, scales.x.getPixelForValue(band.until + 0.5));
      if (right <= area.left) continue;
      ctx.save();
      ctx.globalAlpha = options.strength;
      ctx.fillStyle = band.colour;
      ctx.fillRect(area.left, area.top, right - area.left, area.bottom - area.top);
      ctx.restore();
    }
  },
};

// The figure itself at the end of its bar.
const barTexts = {
  id: "barTexts",
  afterDatasetsDraw(chart, _, options) {
    const {ctx} = chart;
    ctx.save();
    ctx.fillStyle = options.colour;
    ctx.font = "12px system-ui, sans-serif";
    ctx.textBaseline = "middle";
    (options.texts ?? []).forEach(({value, text}, row) => {
      ctx.fillText(text, chart.scales.x.getPixelForValue(value) + 8, chart.scales.y.getPixelForValue(row));
    });
    ctx.restore();
  },
};

function startCharts() {
  Chart.register(warmupShade, barTexts);
  Chart.defaults.animation = false;
  Chart.defaults.maintainAspectRatio = false;
  Chart.defaults.font.family = "system-ui, sans-serif";
  Chart.defaults.plugins.tooltip.mode = "nearest";
  Chart.defaults.plugins.legend.labels.boxHeight = 8;
}

function axis(title, more = {}) {
  const ink = themeColour("ink");
  return {
    title: {display: Boolean(title), text: title, color: ink},
    ticks: {color: ink, ...more.ticks},
    grid: {color: themeColour("line"), borderColor: themeColour("faint"), ...more.grid},
    ...more.scale
  };
}

// A run's name hides and shows all that is drawn of it.
function toggleRun(_, item, {chart}) {
  const run = chart.data.datasets[item.datasetIndex].run, visible = !chart.isDatasetVisible(item.datasetIndex);
  chart.data.datasets.forEach((dataset, place) => {
    if (dataset.run === run) chart.setDatasetVisibility(place, visible);
  });
  chart.update();
}

function legend(shown = true, more = {}) {
  return {
    display: shown,
    position: "bottom",
    ...more,
    labels: {color: themeColour("ink"), usePointStyle: true, filter: (item) => !item.text.startsWith("_")}
  };
}

// Digits that tell a tick from the next, `step` away: an axis from 2.98e-4 to 3.02e-4 needs three.
function digitsOfTicks(value, step) {
  if (value === 0 || !(step > 0)) return 6;
  const digits = Math.floor(Math.log10(Math.abs(value)) + 1e-9) - Math.floor(Math.log10(step) + 1e-9) + 1;
  return Math.min(15, Math.max(3, digits + 1));
}

// 12000 -> "12 000", 2.5 -> "2.5", 0.0003 -> "3e-4": an axis shows round numbers, without zeros at their end.
function tickText(value, step = 0) {
  const size = Math.abs(value), rounded = Number(value.toPrecision(digitsOfTicks(value, step)));
  if (size !== 0 && (size < 1e-3 || size >= 1e9)) return rounded.toExponential();
  return rounded.toString().replace(/\B(?=(\d{3})+(?!\d))(?<!\.\d*)/g, "\u202f");
}

function numberTicks() {
  const text = (value, _, ticks) => tickText(value, ticks.length > 1 ? Math.abs(ticks[1].value - ticks[0].value) : 0);
  return {callback: text, includeBounds: false, maxRotation: 0};
}

function logTicks() {
  return {callback: (value) => ([1, 2, 5].includes(Number(value.toExponential()[0])) ? tickText(value) : null)};
}

function points(series) {
  return series.y.map((y, place) => ({x: series.x ? series.x[place] : place + 1, y}));
}

// One curve: {participant, data, warmup: last step of it}
function curve({participant, data, warmup = 0, repetition = 0, short = false}) {
  const colour = colourOf(participant), dash = dashOf(participant),
        name = short ? participant.letter : nameOf(participant);
  return {
    type: "line",
    label: repetition > 0 ? `_${name}` : name,
    run: participant.letter,
    data,
    borderColor: colour,
    backgroundColor: colour,
    borderWidth: repetition > 0 ? 0.8 : 1.6,
    borderDash: dash,
    parsing: false,
    pointStyle: pointOf(participant),
    pointRadius: data.length <= 60 ? 2.2 : 0,
    pointHitRadius: 6,
    segment: warmup > 0 ? {borderDash: (line) => (line.p0.parsed.x <= warmup ? [2, 3] : dash)} : undefined,
  };
}

function marks({participant, data}) {
  const colour = colourOf(participant);
  return {
    type: "scatter",
    label: `_outlier of ${nameOf(participant)}`,
    run: participant.letter,
    data,
    borderColor: colour,
    borderWidth: 2,
    backgroundColor: "transparent",
    pointStyle: "crossRot",
    pointRadius: 5,
    parsing: false
  };
}

// Curves over `xTitle`; `range` limits the y axis, `log` makes it logarithmic.
function lineChart(datasets, {xTitle, yTitle, range = null, log = false, bands = [], tooltip}) {
  const yScale = {type: log ? "logarithmic" : "linear", ...(range ? {min: range[0], max: range[1]} : {})};
  return {
    type: "line",
    data: {datasets},
    options: {
      interaction: {mode: "nearest", intersect: false},
      scales: {
        x: axis(xTitle, {scale: {type: "linear"}, ticks: numberTicks(), grid: {display: false}}),
        y: axis(yTitle, {scale: yScale, ticks: log ? logTicks() : numberTicks()})
      },
      plugins: {
        legend: legend(true, {onClick: toggleRun}),
        warmupShade: {bands, strength: Math.min(0.16, 0.4 / Math.max(1, bands.length))},
        decimation: {enabled: true, algorithm: "min-max"},
        tooltip: {
          callbacks: {
            title: (items) => items.map((item) => tooltip.title(item))[0],
            label: (item) => `${item.dataset.label.replace(/^_/, "")}: ${tooltip.label(item)}`
          }
        }
      },
    },
  };
}

// Bars to the right, one row per participant.
function barChart(labels, datasets, {xTitle, showLegend = false, tooltip, texts = []}) {
  return {
    type: "bar",
    data: {labels, datasets},
    options: {
      indexAxis: "y",
      layout: {padding: {right: texts.length > 0 ? 64 : 0}},
      scales: {
        x: axis(xTitle, {scale: {beginAtZero: true}, ticks: numberTicks()}),
        y: axis("", {grid: {display: false}, ticks: {autoSkip: false}})
      },
      plugins: {
        legend: legend(showLegend),
        barTexts: {texts, colour: themeColour("ink")},
        tooltip: {callbacks: {label: tooltip}}
      },
    },
  };
}

// The 95 % intervals, drawn over the bars as thin floating ones.
function intervalBars(intervals) {
  const ink = themeColour("ink");
  return {
    label: "_95 % interval",
    data: intervals,
    backgroundColor: ink,
    borderColor: ink,
    borderWidth: 1,
    barThickness: 3,
    grouped: false,
    order: 0,
    minBarLength: 2
  };
}
