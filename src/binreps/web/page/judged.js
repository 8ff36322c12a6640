// The answers against a truth, where the data have one: the truth informed nothing.

import { ANSWERS, decide } from "./decide.js";
import { byId, fill, h, pill } from "./dom.js";
import { count, percent, plural } from "./words.js";

export function showJudged(data, fit, best) {
  const { truth, weight } = data.cells;
  byId("judged").hidden = !truth;
  if (!truth) return;
  const table = { 0: { negative: 0, inconclusive: 0, positive: 0 }, 1: { negative: 0, inconclusive: 0, positive: 0 } };
  truth.forEach((status, i) => {
    const answer = decide(fit.scores.score[i], best);
    if (status !== null && answer) table[Number(status)][answer] += weight[i];
  });
  const total = (status) => ANSWERS.reduce((sum, answer) => sum + table[status][answer], 0);
  const row = (status, title) => h("tr", {}, h("th", { scope: "row" }, title), ANSWERS.map((answer) => h("td", {}, count(table[status][answer]))), h("td", {}, count(total(status))));
  const clear = { 0: total(0) - table[0].inconclusive, 1: total(1) - table[1].inconclusive };
  const right = table[0].negative + table[1].positive;
  const open = table[0].inconclusive + table[1].inconclusive;
  fill("judged-words",
    h("p", {}, `Of ${plural(clear[0] + clear[1], "clear answer")} ${count(right)} (${percent(right / (clear[0] + clear[1]))}) were right; ${plural(open, "individual")} got no clear answer.`),
    h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Answers by truth" }, h("table", { class: "confusion" },
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Truth"), ANSWERS.map((answer) => h("th", { scope: "col" }, pill(answer))), h("th", { scope: "col" }, "all"))),
      h("tbody", {}, row(1, "truly positive"), row(0, "truly negative")))),
    h("p", { class: "small quiet" }, `Of the truly positive with a clear answer ${share(table[1].positive, clear[1])} were found; of the truly negative ${share(table[0].negative, clear[0])} were cleared. The truth judges; it informed no estimate.`));
}

const share = (part, whole) => (whole ? percent(part / whole) : "none");
