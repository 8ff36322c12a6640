// Who reads how: each source's two error rates with their intervals, and who to talk to.

import { byId, fill, h, svg } from "./dom.js";
import { names, percent } from "./words.js";

const [W, H, LEFT, BOTTOM, TOP, RIGHT] = [460, 430, 56, 46, 12, 16];

const COLUMNS = {
  source: { title: "Source", value: (row) => row.source, up: true },
  false_positive: { title: "False positives", value: (row) => row.false_positive },
  false_negative: { title: "False negatives", value: (row) => row.false_negative },
  readings: { title: "Readings", value: (row) => row.readings },
  word: { title: "Reading", value: (row) => row.word },
};

// In a word how a source reads: the fit's verdict, or that nothing is wrong.
function judged(rows) {
  const best = Math.min(...rows.map((row) => row.false_positive + row.false_negative));
  const fine = (row) => (row.false_positive + row.false_negative === best ? "most accurate" : "as others");
  return rows.map((row) => ({ ...row, word: row.verdict || fine(row), retrain: row.verdict !== "" }));
}

export function sourcesPart() {
  let rows = [];
  let sort = { by: "readings", up: false };

  function show(found, title) {
    byId("sources").hidden = !found;
    if (!found) return;
    rows = judged(found);
    COLUMNS.source.title = title[0].toUpperCase() + title.slice(1);
    byId("sources-words").textContent = sentence(rows);
    fill("sources-picture", picture(rows));
    table();
  }

  function table() {
    const { value } = COLUMNS[sort.by];
    const compare = (a, b) => (typeof value(a) === "string" ? value(a).localeCompare(value(b), "en", { numeric: true }) : value(a) - value(b));
    rows.sort((a, b) => (sort.up ? 1 : -1) * compare(a, b));
    const head = Object.entries(COLUMNS).map(([id, { title, up }]) => {
      const here = sort.by === id;
      const press = () => {
        sort = { by: id, up: here ? !sort.up : Boolean(up) };
        table();
        byId("sources-table").querySelector(`th[data-column=${id}] button`).focus();
      };
      return h("th", { scope: "col", "data-column": id, "aria-sort": here ? (sort.up ? "ascending" : "descending") : null }, h("button", { type: "button", onclick: press }, title));
    });
    fill("sources-table", h("thead", {}, h("tr", {}, head)), h("tbody", {}, rows.map((row) => h("tr", {},
      h("td", {}, h("b", {}, row.source)), rate(row, "false_positive"), rate(row, "false_negative"), h("td", {}, row.readings),
      h("td", {}, h("span", { class: `reading-word${row.retrain ? " retrain" : ""}` }, row.word))))));
  }

  return { show };
}

const rate = (row, name) => h("td", {}, percent(row[name]), h("br"), h("span", { class: "small quiet" }, `${percent(row[`${name}_lower`])} to ${percent(row[`${name}_upper`])}`));

function sentence(rows) {
  const those = (word) => rows.filter((row) => row.word === word).map((row) => String(row.source)).sort();
  const verb = (list, one, several) => `${names(list, 4)} ${list.length === 1 ? one : several}`;
  const parts = [["calls too much", "calls too much", "call too much"], ["calls too little", "calls too little", "call too little"], ["errs often", "errs often both ways", "err often both ways"], ["says the opposite", "says the opposite", "say the opposite"], ["says nothing", "tells nothing", "tell nothing"]]
    .map(([word, one, several]) => [those(word), one, several]).filter(([list]) => list.length).map((each) => verb(...each));
  return parts.length ? `${parts.join(", ")}. These are the ones to talk to.` : "Nobody stands out: all read about equally well, as far as the data tell.";
}

// False positives to the right, false negatives upwards; beyond the dashed line nothing is learned from a reading.
function picture(rows) {
  const most = Math.min(1, Math.max(0.2, ...rows.flatMap((row) => [row.false_positive_upper, row.false_negative_upper])) * 1.06);
  const x = (value) => LEFT + (value / most) * (W - LEFT - RIGHT);
  const y = (value) => H - BOTTOM - (value / most) * (H - BOTTOM - TOP);
  const step = most > 0.6 ? 0.2 : most > 0.3 ? 0.1 : 0.05;
  const marks = Array.from({ length: Math.floor(most / step + 1e-9) + 1 }, (_, i) => i * step);
  const grid = marks.map((value) => svg("g", {},
    svg("line", { class: "grid", x1: x(value), x2: x(value), y1: y(0), y2: y(most) }), svg("line", { class: "grid", x1: x(0), x2: x(most), y1: y(value), y2: y(value) }),
    svg("text", { x: x(value), y: H - BOTTOM + 16, "text-anchor": "middle" }, percent0(value)), svg("text", { x: LEFT - 6, y: y(value) + 4, "text-anchor": "end" }, percent0(value))));
  const beyond = most <= 0.5 ? null : svg("g", {}, svg("path", { class: "beyond", d: `M${x(1 - most)},${y(most)}L${x(most)},${y(1 - most)}L${x(most)},${y(most)}Z` }),
    svg("line", { class: "diagonal", x1: x(1 - most), y1: y(most), x2: x(most), y2: y(1 - most) }));
  const total = Math.max(...rows.map((row) => row.readings));
  const each = [...rows].sort((a, b) => b.readings - a.readings).map((row) => mark(row, x, y, total, rows.length));
  return svg("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": `False positives against false negatives. ${sentence(rows)} The table has the numbers.` },
    beyond, grid, each,
    svg("text", { class: "title", x: (LEFT + W - RIGHT) / 2, y: H - 8, "text-anchor": "middle" }, "False positives: negatives called positive"),
    svg("text", { class: "title", x: 0, y: 0, "text-anchor": "middle", transform: `translate(14 ${(TOP + H - BOTTOM) / 2}) rotate(-90)` }, "False negatives: positives missed"));
}

function mark(row, x, y, total, many) {
  const [cx, cy] = [x(row.false_positive), y(row.false_negative)];
  const r = (many > 30 ? 3 : 5) + (many > 30 ? 6 : 8) * Math.sqrt(row.readings / total);
  const words = `${row.source}: ${percent(row.false_positive)} false positives, ${percent(row.false_negative)} false negatives, ${row.readings} readings, ${row.word}`;
  return svg("g", { class: `source-mark${row.retrain ? " retrain" : ""}` }, svg("title", {}, words),
    svg("line", { x1: x(row.false_positive_lower), x2: x(row.false_positive_upper), y1: cy, y2: cy }),
    svg("line", { x1: cx, x2: cx, y1: y(row.false_negative_lower), y2: y(row.false_negative_upper) }),
    svg("circle", { cx, cy, r }), many <= 12 ? svg("text", { x: cx, y: cy + 4, "text-anchor": "middle" }, String(row.source).slice(0, 1)) : null);
}

const percent0 = (value) => `${Math.round(100 * value)}%`;
