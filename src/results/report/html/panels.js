"use strict";
// What is drawn for each model. A panel is {title, formulas, isKnown(run), describe(runs, panel) -> what the chart
// needs}. It is left out, and named, where no run knows what it would show; a run that does not know it is named under
// the chart.

const mostCurves = 12, mostNames = 6;  // beyond these a chart's legend has letters only

// "A 3 steps, B 5 steps", or once what is the same for all.
function eachOf(runs, tell) {
  const told = runs.map(tell);
  if (runs.length > 1 && new Set(told).size === 1) return `${told[0]} each`;
  return runs.map((run, place) => `${run.letter} ${told[place]}`).join(", ");
}

function known(runs, key) {
  return runs.filter((run) => figure(run, key) !== null);
}

function letters(runs) {
  return runs.map((run) => run.letter).join(", ");
}

function notKnownNote(runs, some) {
  const missing = runs.filter((run) => !some.includes(run));
  return missing.length > 0 ? `Not known: ${letters(missing)}.` : "";
}

// What the sensors said of the power and energy that they did not give.
function tellWhy(runs) {
  return runs.flatMap(
      (run) => run.telemetry.filter((each) => each.energy_valid === false && each.energy_note)
                   .map((each) => `${run.letter}, ${each.source}: ${each.energy_note}.`));
}

function describeBars(key, xTitle, why = () => []) {
  return (runs) => {
    const some = known(runs, key);
    const figures = some.map((run) => figure(run, key));
    const intervals = figures.map((each) => (each.ci95_low === undefined ? null : [each.ci95_low, each.ci95_high]));
    const without = some.filter((_, place) => intervals[place] === null);
    const bars = {
      label: metrics.get(key).title,
      data: figures.map((each) => each.value),
      backgroundColor: some.map((run) => colourOf(run)),
      maxBarThickness: 26,
      order: 1,
      grouped: false
    };
    const tell = (item) => {
      const text = formatFigure(key, figures[item.dataIndex].value), span = intervals[item.dataIndex];
      return span ? `${text}, 95 % interval ${formatNumber(span[0])} to ${formatNumber(span[1])}` :
                    `${text}, no interval`;
    };
    const texts = figures.map(
        (each) => ({value: Math.max(each.value, each.ci95_high ?? each.value), text: formatNumber(each.value)}));
    const anyInterval = without.length < some.length;
    return {
      rows: some.length,
      rowHeight: 34,
      config: barChart(
          some.map(nameOf), anyInterval ? [intervalBars(intervals), bars] : [bars], {xTitle, tooltip: tell, texts}),
      notes: [
        notKnownNote(runs, some), ...why(runs.filter((run) => !some.includes(run))),
        anyInterval && without.length > 0 ? `No interval: ${letters(without)}.` : ""
      ]
    };
  };
}

function describeThroughput(runs) {
  const described = describeBars("tokens_per_second_per_gpu", "tokens/s per device")(runs);
  const pairs = page.groups[runs[0].groupIndex].pairs;
  if (pairs.some((pair) => !pair.comparable))
    described.notes.unshift("Some of these runs are not comparable: see the audit. Bar length is not a verdict.");
  return described;
}

function drawnRuns(runs, member) {
  const some = runs.filter((run) => run.runs.some((each) => each[member]));
  const notes = [notKnownNote(runs, some)];
  if (some.length > mostCurves)
    notes.push(`The first ${mostCurves} of ${some.length} are drawn; filter the table above to choose others.`);
  const drawn = some.slice(0, mostCurves);
  const thinned = drawn.flatMap((run) => run.runs).map((each) => each[member]).filter((series) => series?.recorded);
  if (thinned.length > 0)
    notes.push("Charts of long series show the lowest and highest step of each interval; the figures use all steps.");
  return {drawn, notes};
}

// A curve per run, repetitions included.
function curvesOf(participants, member, withWarmup) {
  const curves = [];
  for (const participant of participants)
    participant.runs.forEach((run, repetition) => {
      const warmup = withWarmup ? run.last_warmup_step ?? 0 : 0, short = participants.length > mostNames;
      if (run[member]) curves.push(curve({participant, repetition, short, warmup, data: points(run[member])}));
    });
  return curves;
}

// Lowest and highest of the steady steps: the first step of a run takes many times as long, and would flatten the rest.
function steadyRange(runs) {
  let low = Infinity, high = -Infinity;
  for (const run of runs.flatMap((each) => each.runs))
    for (const {x, y} of run.step_times ? points(run.step_times) : [])
      if (y !== null && x > (run.last_warmup_step ?? 0)) low = Math.min(low, y), high = Math.max(high, y);
  if (low > high) return null;
  const margin = Math.max(0.08 * (high - low), 0.01 * high);
  return [Math.max(0, low - margin), high + margin];
}

// A constant series gets an axis of a few percent around it: Chart.js alone would draw it from -1 to 1.
function seriesRange(runs, member) {
  let low = Infinity, high = -Infinity;
  for (const {y} of runs.flatMap((each) => each.runs).flatMap((run) => (run[member] ? points(run[member]) : [])))
    if (y !== null) low = Math.min(low, y), high = Math.max(high, y);
  if (low > high) return null;
  const size = Math.max(Math.abs(low), Math.abs(high));
  if (high - low > 0.01 * size) return null;
  return size === 0 ? [0, 1] : [low - 0.02 * size, high + 0.02 * size];
}

function cutNote(participants, range) {
  const above = [];
  for (const {letter, runs} of participants)
    for (const run of runs)
      for (const {x, y} of run.step_times ? points(run.step_times) : [])
        if (y > range[1]) above.push({x, y, letter});
  if (above.length === 0) return "";
  const {x, y, letter} = above.reduce((a, b) => (b.y > a.y ? b : a));
  return `Above the axis: ${plural(above.length, "step")}, the longest ${formatNumber(y)} s (${letter}, step ${x}).`;
}

function outliersOf(run) {
  const outliers = new Set(run.outliers ?? []);
  return run.step_times ? points(run.step_times).filter(({x}) => outliers.has(x)) : [];
}

function outlierMarks(participants) {
  const all = participants.map((participant) => ({participant, data: participant.runs.flatMap(outliersOf)}));
  return all.filter((each) => each.data.length > 0);
}

// Steps whose time is not that of a training step alone, and which therefore count for no figure.
function labelledNote(participants) {
  const told = [];
  for (const {letter, runs} of participants) {
    const labels = runs.flatMap((run) => run.labelled ?? []).map((each) => each.label);
    const count = (label) => labels.filter((each) => each === label).length;
    if (labels.length > 0)
      told.push(`${letter} ${[...new Set(labels)].map((each) => `${count(each)} ${each}`).join(", ")}`);
  }
  return told.length > 0 ? `Left out of the figures besides: ${told.join("; ")}.` : "";
}

const stepTooltip = {
  title: (item) => `step ${item.parsed.x}`,
  label: (item) => `${formatNumber(item.parsed.y)} s`
};

function describeStepTimes(runs, panel) {
  const {drawn, notes} = drawnRuns(runs, "step_times");
  const range = steadyRange(drawn), whole = panel.whole || !range;
  const marked = outlierMarks(drawn);
  const bands = drawn.map(
      (run) => ({until: Math.max(0, ...run.runs.map((each) => each.last_warmup_step ?? 0)), colour: colourOf(run)}));
  const counts = eachOf(drawn, (run) => plural(run.runs[0].warmup.steps_excluded, "step"));
  const outliers = eachOf(
      marked.map((each) => ({letter: each.participant.letter, count: each.data.length})), (each) => String(each.count));
  return {
    config: lineChart(
        [...marked.map(marks), ...curvesOf(drawn, "step_times", true)],
        {xTitle: "step", yTitle: "step time, s", range: whole ? null : range, log: whole, bands, tooltip: stepTooltip}),
    notes: [
      `Shaded and dotted: warm-up, left out of the figures (${counts}).`,
      marked.length > 0 ? `×: outliers, which count (${outliers}).` : "No outliers.", labelledNote(drawn),
      whole ? "" : cutNote(drawn, range), ...notes
    ]
  };
}

function describeDistribution(runs) {
  const some = runs.filter((run) => run.distribution);
  const drawn = some.slice(0, mostCurves);
  const short = drawn.length > mostNames;
  const datasets = drawn.map((participant) => {
    const data = participant.distribution.quantiles.map((x, y) => ({x, y}));
    return {...curve({participant, short, data}), pointRadius: 0};
  });
  const tooltip = {
    title: (item) => nameOf(drawn[item.datasetIndex]),
    label: (item) => `${item.parsed.y} % of the steps take at most ${formatNumber(item.parsed.x)} s`
  };
  return {
    config: lineChart(datasets, {xTitle: "step time, s", yTitle: "steps up to that time, %", range: [0, 100], tooltip}),
    notes: [
      `Steady steps: ${eachOf(drawn, (run) => String(run.distribution.steps))}.`,
      "The steeper the curve, the steadier the run.", notKnownNote(runs, some),
      some.length > drawn.length ? `The first ${mostCurves} of ${some.length} are drawn.` : ""
    ]
  };
}

function describeSeries(member, yTitle) {
  return (runs) => {
    const {drawn, notes} = drawnRuns(runs, member);
    const tooltip = {title: (item) => `step ${item.parsed.x}`, label: (item) => formatNumber(item.parsed.y)};
    const range = seriesRange(drawn, member);
    return {config: lineChart(curvesOf(drawn, member, false), {xTitle: "step", yTitle, range, tooltip}), notes};
  };
}

// Kinds of memory mean different things, so each has its own colour and none is added to another.
const memoryKinds = [
  ["peak_memory_allocated_gb", "allocated by the trainer's tensors"],
  ["peak_memory_reserved_gb", "reserved by its allocator"], ["peak_device_used_gb", "in use as reported by the system"]
];

function knowsMemory(run) {
  return memoryKinds.some(([key]) => figure(run, key) !== null);
}

// Several bars per run, one of each kind that some run knows: {label, colour: place in the palette, valueOf(run)}.
function groupedBars(runs, kinds, {xTitle, unit, thickness}) {
  const bars = kinds.map(
      ({label, colour, valueOf}) =>
          ({label, maxBarThickness: thickness, backgroundColor: paletteColour(colour), data: runs.map(valueOf)}));
  const datasets = bars.filter((each) => each.data.some((value) => value !== null));
  const tooltip = (item) => `${item.dataset.label}: ${formatNumber(item.raw)} ${unit}`;
  return {
    rows: runs.length,
    rowHeight: 22 + 14 * datasets.length,
    config: barChart(runs.map(nameOf), datasets, {xTitle, showLegend: true, tooltip})
  };
}

function describeMemory(runs) {
  const some = runs.filter(knowsMemory);
  const kinds = memoryKinds.map(
      ([key, label], place) => ({label, colour: [5, 0, 4][place], valueOf: (run) => figure(run, key)?.value ?? null}));
  const absent = memoryKinds.map(([key, label]) => [label, some.filter((run) => figure(run, key) === null)])
                     .filter(([, list]) => list.length > 0);
  return {
    ...groupedBars(some, kinds, {xTitle: "peak memory of one device, GB", unit: "GB", thickness: 14}),
    notes: [
      notKnownNote(runs, some),
      ...absent.map(
          ([label, list]) => `Not known, ${label}: ${list.length === some.length ? "of any run" : letters(list)}.`),
      `Measured by: ${eachOf(some, (run) => run.memory_method ?? "not recorded")}.`
    ]
  };
}

const peakKinds = [
  ["catalogue", "vendor's stated peak"], ["measured", "achievable: measured peak"],
  ["config", "peak stated in the configuration"]
];

function knowsRoof(run) {
  return figure(run, "tflops_per_gpu") !== null || Object.keys(run.peaks).length > 0;
}

// The roof is drawn; where a training stands under it from left to right takes the bytes it moves, which no run
// records.
function describeRoofline(runs) {
  const some = runs.filter(knowsRoof);
  const teraflops = (peak) => (peak ? peak.flops_per_second / 1e12 : null);
  const peaks = peakKinds.map(
      ([kind, label], place) => ({label, colour: [7, 5, 4][place], valueOf: (run) => teraflops(run.peaks[kind])}));
  const achieved = {label: "achieved", colour: 0, valueOf: (run) => figure(run, "tflops_per_gpu")?.value ?? null};
  return {
    ...groupedBars(some, [...peaks, achieved], {xTitle: "TFLOP/s of one device", unit: "TFLOP/s", thickness: 12}),
    notes: rooflineNotes(runs, some)
  };
}

function tellPeak(run) {
  const [kind] = ["measured", "config", "catalogue"].filter((each) => run.peaks[each]);
  if (!kind) return "no peak of this device is known";
  const {flops_per_second: roof, memory_bytes_per_second: bandwidth, id} = run.peaks[kind];
  if (!bandwidth) return id;
  const ridge = `${formatNumber(roof / bandwidth)} FLOP per byte`;
  return `${id}, memory ${formatNumber(bandwidth / 1e9)} GB/s, so that the roof is flat from ${ridge}`;
}

function rooflineNotes(runs, some) {
  const byPeak = new Map();
  for (const run of some) {
    const peak = tellPeak(run);
    byPeak.set(peak, [...(byPeak.get(peak) ?? []), run.letter]);
  }
  return [
    `${[...byPeak].map(([peak, list]) => `${list.join(", ")}: ${peak}`).join("; ")}.`,
    notKnownNote(runs, known(runs, "tflops_per_gpu")).replace("Not known", "Achieved not known"),
    "The bytes moved per step are not recorded, so the arithmetic intensity is unknown."
  ];
}

function barPanel(title, key, xTitle, why) {
  return {
    title,
    formulas: [key],
    isKnown: (run) => figure(run, key) !== null,
    describe: describeBars(key, xTitle, why)
  };
}

function seriesPanel(title, formulas, member, yTitle) {
  return {title, formulas, isKnown: hasSeries(member), describe: describeSeries(member, yTitle)};
}

function hasSeries(member) {
  return (run) => run.runs.some((each) => each[member]);
}

const panelKinds = [
  {...barPanel("Throughput", "tokens_per_second_per_gpu"), wide: true, describe: describeThroughput},
  {
    title: "Step times",
    formulas: ["mean_step_time"],
    wide: true,
    canShowWhole: true,
    isKnown: hasSeries("step_times"),
    describe: describeStepTimes
  },
  {
    title: "Distribution of step times",
    formulas: ["median_step_time", "p95_step_time", "step_time_cv"],
    isKnown: (run) => run.distribution !== null,
    describe: describeDistribution
  },
  seriesPanel("Loss", ["final_loss"], "loss_values", "loss, nats per token"),
  {title: "Memory", formulas: memoryKinds.map(([key]) => key), isKnown: knowsMemory, describe: describeMemory},
  {title: "Under the roof", formulas: ["tflops_per_gpu", "mfu"], isKnown: knowsRoof, describe: describeRoofline},
  barPanel("Power", "mean_power", "mean power, W"),
  barPanel("Energy", "joules_per_token", "energy per token, J", tellWhy),
  barPanel("Cost", "usd_per_1e12_tokens", "cost of 1e12 tokens, USD"),
  seriesPanel("Learning rate", [], "learning_rates", "learning rate"),
];
