"use strict";
// What the page holds: a step of each side. Everything that a file said reaches the page as text, never as markup.

const page = JSON.parse(document.getElementById("page-data").textContent);

// Of each group of events, in light and in dark. Related groups have related colours.
const groupColours = {
  "matmul": ["#0072B2", "#4DA6E0"], "attention": ["#5E3C99", "#B79CE8"], "convolution": ["#2A93C9", "#8AD3F7"],
  "norm": ["#009E73", "#2BC49A"], "softmax": ["#7A9A01", "#B5D334"], "elementwise": ["#66A61E", "#8FD14F"],
  "optimizer": ["#B87A00", "#F2B632"], "collective": ["#D55E00", "#F0823C"], "copy": ["#CC79A7", "#E39BC4"],
  "reduction": ["#1F78B4", "#6FB1E0"], "embedding": ["#E7298A", "#F27FB8"],
  "other": ["#767676", "#A0A0A0"], "runtime call": ["#A6761D", "#D9A94A"], "Python": ["#B0B7BF", "#5A626B"],
  "data": ["#B3261E", "#FF8A80"], "forward": ["#56B4E9", "#2F7FB0"], "recompute": ["#E6AB02", "#B98A02"],
  "backward": ["#1B9E77", "#157A5C"], "evaluation": ["#984EA3", "#C68AD0"], "checkpoint": ["#A65628", "#D28B63"],
  "even layer": ["#8DA0CB", "#6F84B5"], "odd layer": ["#C5CFE6", "#46557D"],
};

function groupColour(group) {
  const pair = groupColours[group] ?? groupColours.other;
  return pair[isDark() ? 1 : 0];
}

// Black or white, whichever is easier to read on that colour.
function textColour(background) {
  const [red, green, blue] = [1, 3, 5].map((at) => parseInt(background.slice(at, at + 2), 16));
  return 0.299 * red + 0.587 * green + 0.114 * blue > 140 ? "#000" : "#fff";
}
