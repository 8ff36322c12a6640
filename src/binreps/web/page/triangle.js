// The triangle: each test moves one row down, left if negative, right if positive. Its cells are buttons, made
// once for a number of rows and then only repainted, so that the keyboard keeps its place.

import { decide } from "./decide.js";
import { byId, fill, h, pill } from "./dom.js";
import { SIGNS, chance, percent } from "./words.js";

const LONG = 8; // rows from which the patient stands below

export function triangle(onChoose) {
  const cells = new Map(); // "n,s" → the button
  let rows = [];
  let chosen = { n: 0, s: 0 };

  const key = (n, s) => `${n},${s}`;

  function build() {
    const most = rows.at(-1)?.n ?? 1;
    cells.clear();
    const lines = [];
    for (const { n, s } of rows) {
      const cell = h("button", { type: "button", "data-n": n, "data-s": s, tabindex: -1 }, h("b"), h("span"));
      cells.set(key(n, s), cell);
      (lines[n] ??= h("div")).append(cell);
    }
    fill("triangle", lines.filter(Boolean));
    byId("triangle").style.setProperty("--cells", most + 1);
    byId("next-individual").classList.toggle("long", most >= LONG);
  }

  function paint(best) {
    const now = rows.find(({ n, s }) => n === chosen.n && s === chosen.s);
    const open = now && decide(now.probability, best) === "inconclusive";
    for (const row of rows) {
      const answer = decide(row.probability, best);
      const here = row === now;
      const next = open && row.n === chosen.n + 1 && (row.s === chosen.s || row.s === chosen.s + 1);
      const cell = cells.get(key(row.n, row.s));
      cell.className = `${answer ?? "undecided"}${next ? " successor" : ""}`;
      cell.firstChild.textContent = chance(row.probability);
      cell.lastChild.textContent = `${SIGNS[answer] ?? "–"} ${row.s} of ${row.n}`;
      cell.setAttribute("aria-pressed", String(here));
      cell.setAttribute("aria-label", `${row.s} positive of ${row.n}: ${chance(row.probability)}, ${answer ?? "undecided"}`);
      cell.tabIndex = here || (!now && row === rows[0]) ? 0 : -1;
    }
  }

  function show(next, best, patient) {
    const rebuilt = next.length !== rows.length || next.some((row, i) => row.n !== rows[i].n || row.s !== rows[i].s);
    [rows, chosen] = [next, patient];
    if (rebuilt) build();
    paint(best);
    fill("legend", legend(best));
  }

  // Where a key leads from a cell; nothing beyond the edges.
  const MOVES = {
    ArrowLeft: (n, s) => [n, s - 1], ArrowRight: (n, s) => [n, s + 1],
    ArrowUp: (n, s) => [n - 1, Math.min(s, n - 1)], ArrowDown: (n, s) => [n + 1, s],
    "-": (n, s) => [n + 1, s], "+": (n, s) => [n + 1, s + 1], "=": (n, s) => [n + 1, s + 1],
    Home: (n) => [n, 0], End: (n) => [n, n],
  };

  function go(n, s) {
    const cell = cells.get(key(n, s));
    if (!cell) return;
    cell.focus();
    onChoose({ n, s });
  }

  byId("triangle").addEventListener("click", (event) => {
    const cell = event.target.closest("button");
    if (cell) go(Number(cell.dataset.n), Number(cell.dataset.s));
  });
  byId("triangle").addEventListener("keydown", (event) => {
    const cell = event.target.closest("button");
    const move = MOVES[event.key];
    if (!cell || !move || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    go(...move(Number(cell.dataset.n), Number(cell.dataset.s)));
  });
  return { show };
}

function legend(best) {
  const [low, high] = [best.lower, best.upper].map(percent);
  const words = best.allows ? { negative: `below ${low}`, inconclusive: `${low} to ${high}`, positive: `above ${high}` }
    : { negative: `below ${low}`, positive: `from ${low}` };
  return Object.entries(words).map(([answer, text]) => h("span", {}, pill(answer), " ", text));
}
