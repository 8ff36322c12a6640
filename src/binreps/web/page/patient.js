// One patient: the chance, the answer, the next step and why. At once from the table of answers where it has the
// result; in the server's words as soon as they come.

import { decide, risks } from "./decide.js";
import { byId, h, mark, pill, styled } from "./dom.js";
import { SIGNS, chance, short } from "./words.js";

const ANSWERS = ["negative", "inconclusive", "positive"];

// What the table of answers alone tells. The chance of a positive next test is the one at which the chance of being
// positive stays what it is, on average.
export function fromTable(rows, { n, s }, best) {
  const at = (m, k) => rows.find((row) => row.n === m && row.s === k);
  const now = at(n, s);
  if (!now) return null;
  const [down, up] = [at(n + 1, s)?.probability, at(n + 1, s + 1)?.probability];
  const p = now.probability;
  const likely = up > down ? Math.min(1, Math.max(0, (p - down) / (up - down))) : null;
  const branches = likely === null ? [] : [
    { result: "negative", likelihood: 1 - likely, probability: down, decision: decide(down, best) },
    { result: "positive", likelihood: likely, probability: up, decision: decide(up, best) },
  ];
  return { ...fromScore({ score: p, lower: now.lower, upper: now.upper }, best), next: branches.length ? { branches } : null };
}

// What a chance alone tells.
export const fromScore = ({ score, lower, upper }, best) =>
  ({ probability: score, lower, upper, decision: decide(score, best), costs: risks(score, best) });

export function answerView(answer, best) {
  if (!answer || answer.probability === null) return [h("p", { class: "quiet" }, answer?.sentence ?? "…")];
  return [
    h("p", { class: "big-answer" }, h("b", {}, chance(answer.probability)), pill(answer.decision)),
    h("p", { class: "small quiet" }, "chance of being truly positive",
      typeof answer.lower === "number" ? `, ${chance(answer.lower)} to ${chance(answer.upper)}` : null),
    scale(answer, best),
    answer.next ? nextStep(answer.next) : null,
    h("h3", {}, "Why this answer"),
    answer.reasons?.length ? h("ul", { class: "small" }, answer.reasons.map((reason) => h("li", {}, reason))) : null,
    h("p", { class: "small" }, (!answer.reasons?.length && answer.sentence) || "It costs least on average."),
    why(answer),
    answer.basis ? h("p", { class: "small quiet basis" }, `Rests on ${answer.basis}.`) : null,
  ].filter(Boolean);
}

function nextStep({ sentence, branches, path }) {
  return h("div", {}, h("h3", {}, sentence ?? "If tested once more"),
    h("div", { class: "branches" }, branches.map((one) => h("div", {},
      h("span", {}, `If ${one.result} `, h("span", { class: "quiet" }, `${chance(one.likelihood)} likely`)),
      pill(one.decision), h("span", { class: "quiet" }, chance(one.probability))))),
    path ? h("p", { class: "small quiet" }, path) : null);
}

// Where the chance lies among the answers.
function scale({ probability, lower, upper }, best) {
  const share = (x) => `${100 * x}%`;
  const [low, high] = [best.lower, best.upper].map(share);
  const limits = best.allows ? [best.lower, best.upper] : [best.lower];
  const ground = best.allows
    ? `linear-gradient(90deg, var(--negative) 0 ${low}, var(--inconclusive) ${low} ${high}, var(--positive) ${high})`
    : `linear-gradient(90deg, var(--negative) 0 ${low}, var(--positive) ${low})`;
  return styled(h("div", { class: "scale", "aria-hidden": "true" },
    typeof lower === "number" ? styled(h("u"), { left: share(lower), width: share(upper - lower) }) : null,
    styled(h("i"), { left: share(probability) }),
    limits.map((limit) => styled(h("span", {}, chance(limit)), { left: share(limit) }))), { background: ground });
}

function why({ costs, decision }) {
  const most = Math.max(...costs);
  return h("div", { class: "why" }, ANSWERS.map((answer, i) => h("div", { class: answer === decision ? "best" : "" },
    h("span", {}, `${SIGNS[answer]} ${answer}`),
    styled(h("u", { class: answer }), { width: `${(100 * costs[i]) / most}%` }), h("em", {}, short(costs[i])))));
}

// The two numbers that say what one patient's tests were.
export function patientFields(onPatient) {
  const [s, n] = [byId("patient-s"), byId("patient-n")];
  const whole = (input) => input.value !== "" && Number.isInteger(Number(input.value));
  function check() {
    if (!whole(n) || Number(n.value) < 1) return [n, "At least 1 test, a whole number."];
    if (!whole(s) || Number(s.value) < 0) return [s, "A whole number of positive tests, 0 or more."];
    if (Number(s.value) > Number(n.value)) return [s, `At most ${n.value}: only ${n.value} ${n.value === "1" ? "test was" : "tests were"} done.`];
    return Number(n.value) > 1_000_000 ? [n, "At most 1,000,000 tests."] : [null, null];
  }
  function typed() {
    for (const input of [s, n]) mark(input, null);
    const [where, bad] = check();
    if (where) mark(where, `${bad} The last answer stays.`);
    else onPatient({ n: Number(n.value), s: Number(s.value) });
  }
  for (const input of [s, n]) input.addEventListener("input", typed);
  return {
    show: (patient) => {
      if (document.activeElement !== s && document.activeElement !== n) [s.value, n.value] = [patient.s, patient.n];
      if (Number(s.value) === patient.s && Number(n.value) === patient.n) for (const input of [s, n]) mark(input, null);
    },
  };
}

// Who said what about one patient, where sources differ.
export function readingFields(sources, onSaid) {
  const said = {};
  const fields = sources.map((name, i) => {
    const change = (event) => {
      if (event.target.value === "") delete said[name];
      else said[name] = Number(event.target.value);
      onSaid({ ...said });
    };
    return h("div", {}, h("label", { for: `said-${i}` }, name), h("select", { id: `said-${i}`, "data-source": name, onchange: change },
      [["", "not asked"], ["1", "said yes"], ["0", "said no"]].map(([value, text]) => h("option", { value }, text))));
  });
  byId("asked-readings").replaceChildren(...fields);
}

// What else is known of one patient, where the model uses it; empty for what is not.
export function covariateFields(covariates, onKnown) {
  const known = {};
  const fields = Object.entries(covariates ?? {}).map(([name, values], i) => {
    const number = values.every((value) => typeof value === "number");
    const change = (event) => {
      const { value } = event.target;
      if (value === "") delete known[name];
      else known[name] = number ? Number(value) : value;
      onKnown(Object.keys(known).length === Object.keys(covariates).length ? { ...known } : null);
    };
    const attributes = { id: `known-${i}`, "data-known": name, oninput: change };
    const levels = [...new Set(values)].sort().map((level) => h("option", { value: level }, String(level)));
    return h("div", {}, h("label", { for: `known-${i}` }, name), number ? h("input", { type: "number", step: "any", placeholder: "not known", ...attributes })
      : h("select", attributes, h("option", { value: "" }, "not known"), levels));
  });
  byId("asked-covariates").replaceChildren(...fields);
  byId("asked-covariates").hidden = !fields.length;
}
