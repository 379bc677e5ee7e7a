"use strict";
// Each formula with the numbers of the runs that are shown. A link to a formula opens it.

function formulaRow(participant, key) {
  const own = figure(participant, key);
  const result = own === null ? "not known" : formatFigure(key, own.value);
  return make(
      "tr", {}, make("th", {scope: "row", class: "text"}, `${participant.model}: ${nameOf(participant)}`),
      make("td", {class: own === null ? "num unknown" : "num"}, result),
      make("td", {class: "text"}, participant.derivations[key] ?? ""));
}

function fillFormula(details) {
  const key = details.dataset.metric;
  details.querySelector(".scroll")?.remove();
  if (!details.open) return;
  details.append(make(
      "div", {class: "scroll", tabindex: 0},
      make(
          "table", {},
          make(
              "thead", {},
              make("tr", {}, ...["run", "figure", "derived as"].map((text) => make("th", {scope: "col"}, text)))),
          make("tbody", {}, ...participants.filter((each) => each.shown).map((each) => formulaRow(each, key))))));
}

function openNamedFormula() {
  const details = location.hash.startsWith("#formula-") ? document.getElementById(location.hash.slice(1)) : null;
  if (!details) return;
  details.open = true;
  details.scrollIntoView();
}

function startFormulas() {
  const all = [...document.querySelectorAll("details.formula")];
  for (const details of all) details.addEventListener("toggle", () => fillFormula(details));
  document.addEventListener("runs-changed", () => all.filter((details) => details.open).forEach(fillFormula));
  addEventListener("hashchange", openNamedFormula);
  openNamedFormula();
}
