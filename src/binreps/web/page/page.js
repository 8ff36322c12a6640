// The page: data come in, are fitted on the server, and decided here, at once, whenever a cost moves.

import { ask, latest } from "./api.js";
import { beliefs, choices, costSliders, fail } from "./controls.js";
import { dataDoor } from "./data.js";
import { rule } from "./decide.js";
import { byId, fill, h } from "./dom.js";
import { offered } from "./offered.js"; // parts of columns, kinds of tables, methods: made by the server
import { showDecisions, showFindings, showFit, showNext, showPlan, showPeople } from "./view.js";

const page = { data: null, fit: null, part: 0 };

const methods = Object.fromEntries(offered.methods.map(({ id, name }) => [id, name]));
const costs = costSliders(moved);
const prior = beliefs(() => refit());
const chosen = choices(offered.methods, () => refit());
const door = dataDoor(offered, loaded);

const loss = () => ({
  false_positive: costs.falsePositive,
  false_negative: costs.falseNegative,
  inconclusive: costs.inconclusive,
});
const settings = () => ({ prior, ...chosen() });
const population = () => page.fit.populations[page.part];
const about = () => ({ cells: page.data.cells, ...settings(), loss: loss() });
const patient = () => ({ n: Number(byId("explain-n").value), s: Number(byId("explain-s").value) });

function loaded(data) {
  page.data = data;
  page.part = 0;
  byId("work").hidden = data === null;
  if (data === null) return;
  const most = Math.max(...data.cells.n, 1);
  byId("explain-n").value = Math.min(most, 20);
  byId("explain-s").value = Math.round(Math.min(most, 20) / 3);
  refit();
}

// The costs are no part of the fit: they stay here.
const refit = latest(30, async (signal) => {
  if (!page.data) return;
  byId("results").setAttribute("aria-busy", "true");
  try {
    page.fit = await ask("/api/fit", { cells: page.data.cells, ...settings() }, signal);
    fail(null);
    showPopulations();
    redrawFit();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    fail(error);
  } finally {
    if (!signal.aborted) byId("results").setAttribute("aria-busy", "false");
  }
});

function showPopulations() {
  const several = page.fit.populations.length > 1;
  byId("populations").hidden = !several;
  fill("population", page.fit.populations.map((one, i) => h("option", { value: i, selected: i === page.part }, one.name ?? "")));
}

function redrawFit() {
  showFit(page.fit, page.part, page.data.notes, methods);
  redraw();
  followUp();
}

function redraw() {
  if (!page.fit) return;
  const best = rule(costs);
  showDecisions(population(), best, patient());
  showPeople(page.data, population(), best);
}

let waiting = null;

// A cost moved: redraw with the next frame, and measure how long the user waits for it.
function moved(event) {
  const start = event.timeStamp;
  if (waiting === null) {
    waiting = start;
    requestAnimationFrame(() => {
      const since = waiting;
      waiting = null;
      redraw();
      requestAnimationFrame(() => performance.measure("slider to page", { start: since, end: performance.now() }));
    });
  }
  followUp();
}

// What the server is asked once the hand rests.
const followUp = () => [explain, lines, check, next, figures].forEach((one) => one());

const quietly = (work) => async (signal) => {
  if (!page.fit) return;
  try {
    await work(signal);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    fail(error);
  }
};

const explain = latest(150, quietly(async (signal) => {
  const asked = { ...about(), ...patient(), new: true, population: population().name };
  try {
    byId("sentence").textContent = (await ask("/api/explain", asked, signal)).sentence;
  } catch (error) {
    if (error.name === "AbortError") throw error;
    byId("sentence").textContent = error.message;
  }
}));

const lines = latest(200, quietly(async (signal) => {
  const asked = { name: door.file().name, ...door.how(), ...settings(), loss: loss() };
  const answer = await ask("/api/lines", asked, signal);
  byId("command").textContent = answer.command;
  byId("python").textContent = answer.python;
}));

const check = latest(300, quietly(async (signal) => showFindings((await ask("/api/check", about(), signal)).findings)));

const next = latest(300, quietly(async (signal) => {
  if (!byId("next").open) return;
  const asked = { cost_per_replicate: Number(byId("replicate-cost").value), budget: Number(byId("budget").value) };
  showNext(await ask("/api/next", { ...about(), ...asked, population: population().name }, signal));
}));

const figures = latest(400, quietly(async (signal) => {
  if (!byId("figures").open) return;
  await vega();
  const answer = await ask("/api/figures", about(), signal);
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const drawn = await Promise.all(answer.figures.map(async (figure) => {
    const place = h("div", { role: "img", "aria-label": figure.caption });
    const spec = { ...figure.spec, config: answer.themes[dark ? "dark" : "light"] };
    await window.vegaEmbed(place, spec, { ast: true, renderer: "svg", actions: false });
    return h("figure", {}, place, h("figcaption", {}, figure.caption));
  }));
  if (!signal.aborted) fill("figure-list", drawn);
}));

async function plan() {
  const rates = Object.fromEntries(population().rates.map((row) => [row.rate, row[population().interval_by]]));
  const asked = {
    prevalence: rates.prevalence,
    false_positive: rates["false-positive"],
    false_negative: rates["false-negative"],
    prevalence_width: Number(byId("plan-width").value),
    cost_per_individual: Number(byId("plan-individual").value),
    cost_per_replicate: Number(byId("plan-replicate").value),
    better_than_chance: Boolean(prior.better_than_chance),
    level: settings().level,
  };
  byId("plan-words").textContent = "Simulating studies …";
  byId("plan-find").disabled = true;
  try {
    showPlan(await ask("/api/plan", asked));
  } catch (error) {
    byId("plan-words").textContent = error.message;
  }
  byId("plan-find").disabled = false;
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

async function download(path, name) {
  byId("said").textContent = `Making ${name} …`;
  try {
    const request = { ...door.how(), ...settings(), loss: loss() };
    save(await (await door.about(path, request)).blob(), name);
    byId("said").textContent = `${name} is among your downloads.`;
  } catch (error) {
    byId("said").textContent = error.message;
  }
}

function save(blob, name) {
  const address = URL.createObjectURL(blob);
  h("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

async function copy(id) {
  try {
    await navigator.clipboard.writeText(byId(id).textContent);
    byId("said").textContent = "Copied.";
  } catch {
    getSelection().selectAllChildren(byId(id));
    byId("said").textContent = "Selected: copy it with the keyboard.";
  }
}

byId("get-report").addEventListener("click", () => download("/api/report", "report.html"));
byId("get-scores").addEventListener("click", () => download("/api/scores", "scores.csv"));
byId("get-summary").addEventListener("click", () => download("/api/summary", "summary.json"));
byId("get-data").addEventListener("click", () => save(door.file(), door.file().name));
byId("plan-find").addEventListener("click", plan);
byId("copy-command").addEventListener("click", () => copy("command"));
byId("copy-python").addEventListener("click", () => copy("python"));
byId("population").addEventListener("change", (event) => { page.part = Number(event.target.value); redrawFit(); });
for (const id of ["search", "only"]) byId(id).addEventListener("input", redraw);
for (const id of ["explain-n", "explain-s"]) byId(id).addEventListener("input", () => { redraw(); explain(); });
for (const id of ["replicate-cost", "budget"]) byId(id).addEventListener("input", next);
byId("next").addEventListener("toggle", next);
window.addEventListener("resize", redraw);
byId("figures").addEventListener("toggle", figures);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", figures);
byId("lattice").addEventListener("click", (event) => {
  const cell = event.target.closest("td[data-n]");
  if (!cell) return;
  byId("explain-n").value = cell.dataset.n;
  byId("explain-s").value = cell.dataset.s;
  redraw();
  explain();
});
