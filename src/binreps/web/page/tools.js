// What is asked for now and then: whom to measure again, a plan, the figures, and what to take away.

import { ask, follow, latest } from "./api.js";
import { byId, fill, fillTable, h, mark, pill } from "./dom.js";
import { chance, count, names, plural, short } from "./words.js";

// `page` gives: about() (a request on the present fit), population(), people(), settings(), door.
export function tools(page) {
  const quietly = (work) => async (signal) => {
    if (!page.ready()) return;
    try {
      await work(signal);
    } catch (error) {
      if (error.name === "AbortError") throw error;
      page.fail(error);
    }
  };

  const next = latest(300, quietly(async (signal) => {
    if (!byId("next").open) return;
    const [cost, budget] = ["replicate-cost", "budget"].map((id) => Number(byId(id).value));
    const costBad = byId("replicate-cost").value !== "" && cost >= 0 ? null : "The cost of a test must be 0 or more; the last answer stays.";
    const bad = costBad ?? (Number.isInteger(budget) && budget >= 0 ? null : "The tests to spend must be a whole number, 0 or more; the last answer stays.");
    mark(byId("budget"), costBad ? null : bad);
    if (!mark(byId("replicate-cost"), costBad, "next-bad") || !mark(byId("budget"), bad)) return;
    const answer = await ask("/api/next", { ...page.about(), cost_per_replicate: cost, budget, population: page.population().name }, signal);
    byId("next-words").textContent = answer.replicates
      ? `Measure ${plural(answer.replicates, "individual")} once more, then look again:` : "It pays for nobody at this cost.";
    const rows = answer.rows.filter((row) => row.measure).sort((a, b) => a.rank - b.rank);
    const columns = { measure: "individuals to measure", n: "tests", s: "positive", decision: "answer now", worth: "worth of a test", who: "who" };
    const who = ({ n, s, measure }) => names(page.people().filter((one) => one.n === n && one.s === s).map(({ name }) => name).slice(0, measure));
    fillTable("next-table", rows, columns, (value, name, row) => ({ decision: () => pill(value), worth: () => short(value), who: () => who(row) }[name] ?? (() => value))());
  }));

  const lines = latest(200, quietly(async (signal) => {
    const answer = await ask("/api/lines", { name: page.door.file().name, ...page.door.how(), ...page.request() }, signal);
    byId("command").textContent = answer.command;
    byId("python").textContent = answer.python;
  }));

  const figures = latest(400, quietly(async (signal) => {
    if (!byId("figures").open) return;
    await vega();
    const answer = await ask("/api/figures", page.about(), signal);
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    const drawn = await Promise.all(answer.figures.map(async (figure) => {
      const place = h("div", { role: "img", "aria-label": figure.caption });
      const spec = { ...figure.spec, config: answer.themes[dark ? "dark" : "light"] };
      await window.vegaEmbed(place, spec, { ast: true, renderer: "svg", actions: false });
      return h("figure", {}, place, h("figcaption", {}, figure.caption));
    }));
    if (!signal.aborted) fill("figure-list", drawn);
  }));

  let planning = null;

  async function plan() {
    const rates = page.population().headline;
    const asked = {
      prevalence: rates.prevalence.estimate,
      false_positive: 1 - rates.specificity.estimate,
      false_negative: 1 - rates.sensitivity.estimate,
      prevalence_width: Number(byId("plan-width").value),
      cost_per_individual: Number(byId("plan-individual").value),
      cost_per_replicate: Number(byId("plan-replicate").value),
      better_than_chance: page.settings().better,
      level: page.settings().level,
    };
    planning = new AbortController();
    const bar = byId("plan-progress");
    busy(true);
    byId("plan-words").textContent = "Simulating studies …";
    try {
      showPlan(await follow("/api/plan", asked, ({ done, total }) => { bar.value = total ? done / total : 0; }, planning.signal));
    } catch (error) {
      byId("plan-words").textContent = error.name === "AbortError" ? "Stopped." : error.message;
    }
    busy(false);
  }

  function busy(yes) {
    byId("plan-find").disabled = yes;
    for (const id of ["plan-stop", "plan-progress"]) byId(id).hidden = !yes;
    byId("plan-progress").value = 0;
  }

  async function download(path, name, more = {}) {
    byId("said").textContent = `Making ${name} …`;
    try {
      save(await (await page.door.about(path, { ...page.door.how(), ...page.request(), ...more })).blob(), name);
      byId("said").textContent = `${name} is among your downloads.`;
    } catch (error) {
      byId("said").textContent = error.message;
    }
  }

  async function copy(text, place) {
    try {
      await navigator.clipboard.writeText(text);
      byId("said").textContent = "Copied.";
    } catch {
      if (place) getSelection().selectAllChildren(place);
      byId("said").textContent = place ? "Selected: copy it with the keyboard." : text;
    }
  }

  byId("plan-find").addEventListener("click", plan);
  byId("plan-stop").addEventListener("click", () => planning.abort());
  for (const id of ["get-report", "top-report"]) byId(id).addEventListener("click", () => download("/api/report", "report.html", { title: byId("report-title").value, author: byId("report-author").value }));
  byId("get-card").addEventListener("click", () => download("/api/card", "card.html", { population: page.population().name, title: byId("report-title").value || page.door.file().name.replace(/\.[^.]*$/, "") }));
  byId("get-scores").addEventListener("click", () => download("/api/scores", "scores.csv"));
  byId("get-summary").addEventListener("click", () => download("/api/summary", "summary.json"));
  byId("get-data").addEventListener("click", () => save(page.door.file(), page.door.file().name));
  byId("copy-link").addEventListener("click", () => copy(location.href, null));
  byId("print").addEventListener("click", () => print());
  for (const id of ["command", "python"]) byId(`copy-${id}`).addEventListener("click", () => copy(byId(id).textContent, byId(id)));
  for (const id of ["replicate-cost", "budget"]) byId(id).addEventListener("input", next);
  byId("next").addEventListener("toggle", next);
  byId("figures").addEventListener("toggle", figures);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", figures);
  return { again: () => [lines, next, figures].forEach((one) => one()) };
}

function showPlan(answer) {
  byId("plan-words").textContent = answer.sentence;
  const columns = { individuals: "individuals", replicates: "tests each", tests: "tests", cost: "cost", probability: "chance of the goal", reached: "reached" };
  const there = Object.fromEntries(Object.entries(columns).filter(([name]) => answer.rows.length && name in answer.rows[0]));
  fillTable("plan-table", answer.rows, there, (value, name) => (name === "probability" ? chance(value) : typeof value === "number" ? count(value) : value));
}

function save(blob, name) {
  const address = URL.createObjectURL(blob);
  h("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

let vegaLoaded = null;

// The drawing library is large and only needed here.
function vega() {
  vegaLoaded ??= new Promise((resolve, reject) => {
    const script = h("script", { src: "/page/vega.js", onload: resolve, onerror: () => reject(new Error("the figures cannot be drawn")) });
    document.head.append(script);
  });
  return vegaLoaded;
}
