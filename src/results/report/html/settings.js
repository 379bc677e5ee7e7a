"use strict";
// What the runs of a model ran on and were asked for, side by side: first what differs, everything on demand.

const mostSettingColumns = 8;

function settingValue(setting, participant) {
  const place = setting.of ? setting.of[participant.index] : 0;
  return place < 0 ? null : setting.values[place];
}

function settingRow(setting, runs) {
  return make("tr", {}, make("th", {scope: "row", class: "text"}, setting.key), ...runs.map((run) => {
    const value = settingValue(setting, run);
    return value === null ? make("td", {class: "text unknown"}, "not recorded") : make("td", {class: "text"}, value);
  }));
}

// What differs comes first; then what only some of the runs recorded, which may differ or not; then what is the same.
const settingKinds = [
  {title: "differs", isOf: (known) => new Set(known.filter((value) => value !== null)).size > 1},
  {title: "recorded by some of these runs only", isOf: (known) => known.includes(null)},
  {title: "the same", isOf: () => true}
];

function sortSettings(settings, runs) {
  const sorted = settingKinds.map(() => []);
  for (const setting of settings) {
    const known = runs.map((run) => settingValue(setting, run));
    if (known.some((value) => value !== null)) sorted[settingKinds.findIndex((kind) => kind.isOf(known))].push(setting);
  }
  return sorted;
}

function kindRow(kind, count, columns) {
  return make("tr", {class: "kind"}, make("th", {scope: "colgroup", colspan: columns}, `${kind.title}: ${count}`));
}

function fillSettings(part) {
  const runs = shownOf(part.groupIndex), columns = runs.slice(0, mostSettingColumns);
  const sorted = sortSettings(page.groups[part.groupIndex].settings, columns);
  const rows = sorted.flatMap((settings, kind) => {
    const heading = kindRow(settingKinds[kind], settings.length, columns.length + 1);
    return [heading, ...(kind === 0 || part.all ? settings.map((setting) => settingRow(setting, columns)) : [])];
  });
  part.node.hidden = runs.length === 0;
  part.body.replaceChildren(...rows);
  part.head.replaceChildren(
      make("th", {scope: "col"}, "setting"), ...columns.map((run) => make("th", {scope: "col"}, nameOf(run))));
  const cut =
      `The first ${columns.length} of ${runs.length} runs are shown; filter the table of runs to choose others.`;
  part.note.textContent = columns.length < runs.length ? cut : "";
}

function makeSettings(group, groupIndex) {
  const part = {groupIndex, all: false, head: make("tr"), body: make("tbody"), note: make("p", {class: "hint"})};
  const button = makeSwitch("Show all settings", (all) => {
    part.all = all;
    fillSettings(part);
  });
  part.node = make(
      "div", {}, make("h3", {}, group.model), button, part.note,
      make(
          "div", {class: "scroll", tabindex: 0},
          make("table", {class: "settings"}, make("thead", {}, part.head), part.body)));
  return part;
}

function startSettings() {
  const parts = page.groups.map(makeSettings);
  document.getElementById("setting-tables").append(...parts.map((part) => part.node));
  const fill = () => parts.forEach(fillSettings);
  document.addEventListener("runs-changed", fill);
  fill();
}
