"use strict";
// Light, dark, or as the system has it. Charts take their colours from the same variables as the text.

const themes = ["as the system", "light", "dark"];
const themeButton = document.getElementById("theme");

function announce(name) {
  document.dispatchEvent(new CustomEvent(name));
}

function themeColour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

function storedTheme() {
  try {
    return localStorage.getItem("tprimat-theme") ?? themes[0];
  } catch {
    return themes[0];  // a viewer that stores nothing
  }
}

function applyTheme(theme) {
  const root = document.documentElement;
  if (theme === "light" || theme === "dark")
    root.dataset.theme = theme;
  else
    delete root.dataset.theme;
  themeButton.textContent = `Theme: ${theme}`;
  themeButton.dataset.current = theme;
  announce("theme-changed");
}

function nextTheme() {
  const next = themes[(themes.indexOf(themeButton.dataset.current) + 1) % themes.length];
  try {
    localStorage.setItem("tprimat-theme", next);
  } catch {
    // It lasts until the page is closed.
  }
  applyTheme(next);
}

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

function startTheme() {
  themeButton.hidden = false;
  themeButton.addEventListener("click", nextTheme);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => announce("theme-changed"));
  applyTheme(themes.includes(storedTheme()) ? storedTheme() : themes[0]);
}
