// The figures that follow the mouse: plain SVG, styled by the style sheet.

import { svg } from "./dom.js";
import { ANSWERS, decide, risks } from "./decide.js";
import { percent, short } from "./words.js";

const H = 240;
const SIDE = { left: 44, right: 16, top: 12, bottom: 44 };

const scale = (low, high, from, to) => (x) => from + ((x - low) / (high - low)) * (to - from);

const path = (points) => points.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(1)},${y.toFixed(1)}`).join("");

function ticks(low, high, wanted = 5) {
  const rough = (high - low) / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((k) => k * power).find((each) => each >= rough);
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k += 1) found.push(k * step);
  return found;
}

function axis(x, low, high, y, title, shown, wanted) {
  const marks = ticks(low, high, wanted).map((value) =>
    svg("g", { transform: `translate(${x(value).toFixed(1)},${y})` },
      svg("line", { class: "axis", y2: 4 }),
      svg("text", { y: 17, "text-anchor": "middle" }, shown(value))));
  const middle = (x(low) + x(high)) / 2;
  return svg("g", {}, svg("line", { class: "axis", x1: x(low), x2: x(high), y1: y, y2: y }), marks,
    svg("text", { class: "title", x: middle, y: y + 36, "text-anchor": "middle" }, title));
}

// Expected cost of each answer against the probability; the cheapest is thick; below, everyone's score.
export function riskLines(costs, cells, width) {
  const W = Math.max(300, Math.min(640, width)); // as wide as its place, so that text keeps its size
  const top = Math.max(costs.inconclusive, Math.min(costs.falsePositive, costs.falseNegative)) * 1.08;
  const x = scale(0, 1, SIDE.left, W - SIDE.right);
  const base = H - SIDE.bottom - 14;
  const y = scale(0, top, base, SIDE.top);
  const ends = [risks(0, costs), risks(1, costs)];
  const clip = svg("clipPath", { id: "risk-clip" },
    svg("rect", { x: SIDE.left, y: SIDE.top, width: W - SIDE.left - SIDE.right, height: base - SIDE.top + 2 }));
  const lines = ANSWERS.map((answer, i) =>
    svg("line", { class: `line ${answer}`, x1: x(0), y1: y(ends[0][i]), x2: x(1), y2: y(ends[1][i]) }));
  const stops = costs.allows ? [0, costs.lower, costs.upper, 1] : [0, costs.lower, costs.lower, 1];
  const thick = ANSWERS.map((answer, i) => {
    const [from, to] = [stops[i], stops[i + 1]];
    if (from === to) return null;
    return svg("line", { class: `line thick ${answer}`, x1: x(from), x2: x(to),
      y1: y(risks(from, costs)[i]), y2: y(risks(to, costs)[i]) });
  });
  const limits = [...new Set([costs.lower, costs.upper])].map((limit, i, all) => {
    const anchor = all.length > 1 && costs.upper - costs.lower < 0.14 ? (i ? "start" : "end") : "middle";
    return svg("g", {},
      svg("line", { class: "limit", x1: x(limit), x2: x(limit), y1: SIDE.top + 6, y2: base + 14 }),
      svg("text", { class: "limit-text", x: x(limit), y: SIDE.top + 2, "text-anchor": anchor }, percent(limit)));
  });
  const scores = cells.filter((cell) => cell.score !== null).map((cell) => {
    const answer = decide(cell.score, costs);
    return svg("line", { class: `rug ${answer}`, x1: x(cell.score), x2: x(cell.score), y1: base + 3, y2: base + 13 });
  });
  const upright = ticks(0, top, 4).map((value) =>
    svg("g", {}, svg("line", { class: "grid", x1: SIDE.left, x2: W - SIDE.right, y1: y(value), y2: y(value) }),
      svg("text", { x: SIDE.left - 6, y: y(value) + 4, "text-anchor": "end" }, short(value))));
  const words = costs.allows
    ? `negative below ${percent(costs.lower)}, positive above ${percent(costs.upper)}, inconclusive between`
    : `negative below ${percent(costs.lower)}, positive from there on, never inconclusive`;
  return svg("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": `Expected cost of each answer: ${words}` },
    clip, upright, svg("g", { "clip-path": "url(#risk-clip)" }, lines, thick), limits, scores,
    axis(x, 0, 1, base + 14, W < 420 ? "Probability (small lines: individuals)" : "Probability of being positive; small lines: the individuals", (v) => `${Math.round(100 * v)}%`));
}

const RATES = {
  prevalence: { title: "Prevalence" },
  false_negative: { title: "Sensitivity", turned: true },
  false_positive: { title: "Specificity", turned: true },
};

// Prior and posterior of one rate, with its mean and interval.
function rateCurve(name, curve) {
  const { title, turned } = RATES[name];
  const turn = (value) => (turned ? 1 - value : value);
  const [lower, upper] = [turn(curve.lower), turn(curve.upper)].sort((a, b) => a - b);
  const estimate = turn(curve.estimate);
  const width = 300;
  const height = 180;
  const ends = [turn(curve.x[0]), turn(curve.x.at(-1))].sort((a, b) => a - b);
  const highest = Math.max(...curve.posterior.slice(1, -1)) * 1.08 || 1;
  const x = scale(...ends, 14, width - 14);
  const base = height - SIDE.bottom;
  const y = (density) => scale(0, highest, base, 10)(Math.min(density, highest));
  const points = (densities) => curve.x.map((value, i) => [x(turn(value)), y(densities[i])]);
  const inside = curve.x.map((value, i) => [turn(value), curve.posterior[i]])
    .filter(([value]) => value >= lower && value <= upper)
    .sort((a, b) => a[0] - b[0]).map(([value, density]) => [x(value), y(density)]);
  const area = inside.length > 1
    ? svg("path", { class: "area", d: `${path([[inside[0][0], base], ...inside, [inside.at(-1)[0], base]])}Z` }) : null;
  const mean = svg("line", { class: "mean", x1: x(estimate), x2: x(estimate), y1: base, y2: 14 });
  const words = `${title} ${percent(estimate)}, interval ${percent(lower)} to ${percent(upper)}`;
  return svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": words },
    area, svg("path", { class: "prior-line", d: path(points(curve.prior)) }),
    svg("path", { class: "posterior-line", d: path(points(curve.posterior)) }), mean,
    axis(x, ...ends, base, title, (value) => `${Number((100 * value).toFixed(3))}%`, 4));
}

export function rateCurves(curves) {
  return Object.keys(RATES).filter((name) => curves[name]).map((name) => rateCurve(name, curves[name]));
}
