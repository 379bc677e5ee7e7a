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

function differs(setting, runs) {
  return new Set(runs.map((run) => settingValue(setting, run))).size > 1;
}

function fillSettings(part) {
  const runs = shownOf(part.groupIndex), columns = runs.slice(0, mostSettingColumns);
  const settings = page.groups[part.groupIndex].settings;
  const chosen = part.all ? settings : settings.filter((setting) => differs(setting, columns));
  part.node.hidden = runs.length === 0;
  part.body.replaceChildren(...chosen.map((setting) => settingRow(setting, columns)));
  part.head.replaceChildren(
      make("th", {scope: "col"}, "setting"), ...columns.map((run) => make("th", {scope: "col"}, nameOf(run))));
  const count = `${chosen.length} of ${plural(settings.length, "setting")}${part.all ? "" : " differ"}.`;
  part.note.textContent = columns.length < runs.length ?
      `${count} The first ${columns.length} of ${
          runs.length} runs are shown; filter the table of runs to choose others.` :
      count;
}

function makeSettings(group, groupIndex) {
  const part = {groupIndex, all: false, head: make("tr"), body: make("tbody"), note: make("p", {class: "hint"})};
  const button = makeSwitch("Show what is the same too", (all) => {
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
