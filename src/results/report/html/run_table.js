"use strict";
// The table of runs: headers sort, filters hide rows, and everything below follows the rows that are left.

const runTable = document.getElementById("run-table");
const runRows = [...runTable.tBodies[0].rows];
const participantOf =
    new Map(participants.map((each) => [document.getElementById(`run-${each.groupIndex}-${each.index}`), each]));
const choices = ["model", "platform", "framework", "strategy"];
const filters = Object.fromEntries([...choices, "text"].map((name) => [name, ""]));

function sortValue(row, column) {
  const cell = row.cells[column];
  if (cell.classList.contains("unknown")) return null;
  return cell.dataset.value === undefined ? cell.textContent.trim() : Number(cell.dataset.value);
}

// What is not known comes last in either direction.
function compareValues(a, b, sign) {
  if (a === null || b === null) return (a === null) - (b === null);
  if (typeof a === "number" && typeof b === "number") return sign * (a - b);
  return sign * String(a).localeCompare(String(b), "en", {numeric: true});
}

function sortBy(header) {
  const metric = metrics.get(header.dataset.key);
  const first = metric?.better === "higher is better" ? "descending" : "ascending";
  const other = first === "ascending" ? "descending" : "ascending";
  const direction = header.getAttribute("aria-sort") === first ? other : first;
  for (const each of runTable.tHead.rows[0].cells) each.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", direction);
  const sign = direction === "ascending" ? 1 : -1;
  const keyed = runRows.map((row, place) => ({row, place, value: sortValue(row, header.cellIndex)}));
  keyed.sort((a, b) => compareValues(a.value, b.value, sign) || a.place - b.place);
  runTable.tBodies[0].append(...keyed.map((each) => each.row));
}

function makeSortable(header) {
  const button = make("button", {type: "button", onclick: () => sortBy(header)});
  button.append(...header.childNodes);
  header.append(button);
  if (metrics.has(header.dataset.key)) header.append(formulaLink(header.dataset.key));
}

function passes(row) {
  for (const name of choices)
    if (filters[name] && row.dataset[name] !== filters[name]) return false;
  const text = row.textContent.toLowerCase();
  return filters.text.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}

function applyFilters() {
  let shown = 0;
  for (const row of runRows) {
    const passed = passes(row);
    row.hidden = !passed;
    participantOf.get(row).shown = passed;
    shown += passed;
  }
  document.getElementById("run-count").textContent =
      shown === runRows.length ? plural(shown, "run") : `${shown} of ${plural(runRows.length, "run")}`;
  announce("runs-changed");
}

function makeChoice(name) {
  const values = [...new Set(runRows.map((row) => row.dataset[name]))].sort();
  if (values.length < 2) return [];
  const options = [make("option", {value: ""}, "all"), ...values.map((value) => make("option", {value}, value))];
  const choice = make("select", {id: `filter-${name}`}, ...options);
  choice.addEventListener("change", () => {
    filters[name] = choice.value;
    applyFilters();
  });
  return [makeLabel(choice, name), choice];
}

function makeSearch() {
  let waiting = 0;
  const field = make("input", {type: "search", id: "filter-text", autocomplete: "off"});
  field.addEventListener("input", () => {
    filters.text = field.value.trim();
    clearTimeout(waiting);
    waiting = setTimeout(applyFilters, 120);
  });
  return [makeLabel(field, "text"), field];
}

function clearFilters() {
  for (const name of Object.keys(filters)) {
    filters[name] = "";
    const field = document.getElementById(`filter-${name}`);
    if (field) field.value = "";
  }
  applyFilters();
}

function makeColumnsButton() {
  return makeSwitch("All columns", (all) => runTable.classList.toggle("all-columns", all));
}

function startRunTable() {
  runTable.classList.add("enhanced");
  for (const header of runTable.tHead.rows[0].cells) makeSortable(header);
  const bar = document.getElementById("filters");
  bar.append(
      ...choices.flatMap(makeChoice), ...makeSearch(),
      make("button", {type: "button", id: "clear-filters", onclick: clearFilters}, "Clear"), makeColumnsButton(),
      make("span", {id: "run-count", role: "status"}));
  bar.hidden = false;
  applyFilters();
}
