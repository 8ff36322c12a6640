// Covariates: columns that could be some, to be ticked; what they do to the odds; prevalence along a number.

import { byId, fill, h, svg } from "./dom.js";
import { percent, short } from "./words.js";

const UNFIT = ["result", "individual", "n", "s", "weight", "known", "truth", "population", "source", "time", "batch", "status"];

// Columns that play no other part; those that look like identifiers are left out.
const couldBe = (columns, part) => columns.filter(({ name, part: guessed }) =>
  part(name) === "covariates" || (!UNFIT.includes(part(name)) && !UNFIT.includes(guessed)));

export function showTicks(columns, part, onTick) {
  const found = couldBe(columns, part);
  fill("covariate-ticks", found.length ? [h("p", { class: "small quiet" }, "What else may tell who is positive:"), found.map(({ name }, i) => {
    const tick = h("input", { type: "checkbox", id: `covariate-${i}`, checked: part(name) === "covariates", "data-covariate": name });
    tick.addEventListener("change", () => onTick({ [name]: tick.checked ? "covariates" : null }));
    return h("label", { class: "tick", for: `covariate-${i}` }, tick, " ", name);
  })] : null);
}

export function showCovariates(population) {
  const rows = population.odds_ratios;
  byId("covariate-part").hidden = !rows?.length;
  if (!rows?.length) return;
  byId("odds-words").textContent = "Odds ratios with their intervals: right of 1 it makes being positive likelier, left of 1 less likely.";
  fill("odds", forest(rows));
  fill("curves-by", h("div", { class: "curves" }, Object.entries(population.prevalence_curves ?? {}).map(([name, points]) => curve(name, points))));
}

const title = (row) => `${row.covariate}${row.per && row.per !== 1 ? ` (per ${short(row.per)})` : ""}`;

function forest(rows) {
  const [W, LEFT, RIGHT, ROW] = [640, 190, 150, 34];
  const height = rows.length * ROW + 40;
  const ends = rows.flatMap((row) => [row.lower, row.upper]).filter((value) => value > 0);
  const low = Math.min(0.8, ...ends) / 1.1;
  const high = Math.max(1.25, ...ends) * 1.1;
  const x = (value) => LEFT + ((Math.log(value) - Math.log(low)) / (Math.log(high) - Math.log(low))) * (W - LEFT - RIGHT);
  const marks = [0.01, 0.1, 0.2, 0.5, 1, 2, 5, 10, 100].filter((value) => value >= low && value <= high);
  const lines = marks.map((value) => svg("g", {}, svg("line", { class: value === 1 ? "limit" : "grid", x1: x(value), x2: x(value), y1: 4, y2: height - 34 }),
    svg("text", { x: x(value), y: height - 18, "text-anchor": "middle" }, short(value))));
  const each = rows.map((row, i) => {
    const y = i * ROW + 20;
    return svg("g", {}, svg("text", { x: LEFT - 12, y: y + 4, "text-anchor": "end", class: "title" }, title(row).slice(0, 26)),
      svg("line", { class: "interval", x1: x(row.lower), x2: x(row.upper), y1: y, y2: y }), svg("circle", { class: "point", cx: x(row.estimate), cy: y, r: 5 }),
      svg("text", { x: W - RIGHT + 12, y: y + 4 }, `${short(row.estimate)} (${short(row.lower)} to ${short(row.upper)})`));
  });
  const words = rows.map((row) => `${title(row)}: ${short(row.estimate)}, ${short(row.lower)} to ${short(row.upper)}`).join("; ");
  return svg("svg", { viewBox: `0 0 ${W} ${height}`, role: "img", "aria-label": `Odds ratios. ${words}` }, lines, each);
}

// Prevalence against a number, the others average, with its band.
function curve(name, points) {
  const [W, H, LEFT, BOTTOM] = [320, 190, 40, 40];
  const xs = points.map((point) => point.x);
  const [low, high] = [xs[0], xs.at(-1)];
  const top = Math.max(...points.map((point) => point.upper)) * 1.05;
  const x = (value) => LEFT + ((value - low) / (high - low || 1)) * (W - LEFT - 10);
  const y = (value) => H - BOTTOM - (value / top) * (H - BOTTOM - 10);
  const path = (pairs) => pairs.map(([a, b], i) => `${i ? "L" : "M"}${x(a).toFixed(1)},${y(b).toFixed(1)}`).join("");
  const upper = points.map((point, i) => [xs[i], point.upper]);
  const lower = points.map((point, i) => [xs[i], point.lower]).reverse();
  const middle = points.map((point, i) => [xs[i], point.prevalence]);
  const ticks = [low, (low + high) / 2, high];
  return svg("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": `Prevalence from ${percent(middle[0][1])} at ${name} ${short(low)} to ${percent(middle.at(-1)[1])} at ${short(high)}` },
    svg("path", { class: "area", d: `${path([...upper, ...lower])}Z` }), svg("path", { class: "estimate-line", d: path(middle) }),
    svg("line", { class: "axis", x1: LEFT, x2: W - 10, y1: y(0), y2: y(0) }),
    ticks.map((value) => svg("text", { x: x(value), y: H - BOTTOM + 16, "text-anchor": "middle" }, short(value))),
    [0, top / 1.05].map((value) => svg("text", { x: LEFT - 5, y: y(value) + 4, "text-anchor": "end" }, `${Math.round(100 * value)}%`)),
    svg("text", { class: "title", x: (LEFT + W) / 2, y: H - 6, "text-anchor": "middle" }, `Prevalence by ${name}`));
}
