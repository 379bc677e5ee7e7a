"use strict";
// What the page holds: the comparison as `tprimat compare --json` prints it, with the series of every run. Everything
// that a file said reaches the page as text of a node, never as markup.

const page = JSON.parse(document.getElementById("page-data").textContent);
const metrics = new Map(page.metrics.map((metric) => [metric.key, metric]));

// Every participant once, in the order of the page; `shown` follows the filters.
const participants = page.groups.flatMap(
    (group, groupIndex) => group.contenders.map(
        (contender, index) => ({...contender, groupIndex, index, model: group.model, shown: true})));

// tag, {property: value}, children: strings become text.
function make(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on"))
      node.addEventListener(name.slice(2), value);
    else
      node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

// A button that stays pressed; `change` is told whether it is.
function makeSwitch(text, change) {
  const button = make("button", {type: "button", "aria-pressed": "false"}, text);
  button.addEventListener("click", () => {
    const pressed = button.getAttribute("aria-pressed") === "false";
    button.setAttribute("aria-pressed", pressed);
    change(pressed);
  });
  return button;
}

function makeLabel(field, text) {
  const label = make("label", {}, text);
  label.htmlFor = field.id;
  return label;
}

function figure(participant, key) {
  return participant.figures[key] ?? null;
}

// 13425.1 -> "13 425", 1.60231 -> "1.602": four significant digits at least, thousands apart by a narrow space.
function formatNumber(value) {
  if (value === null || !Number.isFinite(value)) return "not known";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e9)) return value.toExponential(3);
  const decimals = size >= 1000 || size === 0 ? 0 : Math.max(0, 3 - Math.floor(Math.log10(size)));
  return value.toFixed(decimals).replace(/\B(?=(\d{3})+(?!\d))(?<!\.\d*)/g, "\u202f");
}

// In the unit of the axis; a fraction is shown in percent.
function formatFigure(key, value) {
  if (metrics.get(key).format === "percent") return `${formatNumber(value * 100)} %`;
  const unit = metrics.get(key).unit;
  return unit ? `${formatNumber(value)} ${unit}` : formatNumber(value);
}

function shownOf(groupIndex) {
  return participants.filter((participant) => participant.groupIndex === groupIndex && participant.shown);
}

function formulaLink(key) {
  const {title, formula} = metrics.get(key);
  const link = make("a", {href: `#formula-${key}`, class: "formula-link", title: formula}, "ƒ");
  link.setAttribute("aria-label", `Formula of ${title}`);
  return link;
}

function plural(count, word) {
  return `${count} ${word}${count === 1 ? "" : "s"}`;
}
