// The page: data come in, are fitted on the server, and decided here, at once, whenever a cost moves.

import { ask, follow, latest } from "./api.js";
import { beliefs, choices, costSliders, priorOf, showBeliefs, showChoices, showCosts } from "./controls.js";
import { showCovariates, showTicks } from "./covariates.js";
import { dataDoor } from "./data.js";
import { rule } from "./decide.js";
import { byId, fill, h, tell } from "./dom.js";
import { showJudged } from "./judged.js";
import { showModels, usable } from "./models.js";
import { offered } from "./offered.js"; // parts of columns, words, methods: made by the server
import { answerView, covariateFields, fromScore, fromTable, patientFields, readingFields } from "./patient.js";
import { everyone, peopleTable } from "./people.js";
import { difference, pinBoard } from "./pins.js";
import { USUAL, keeper } from "./settings.js";
import { sourcesPart } from "./sources.js";
import { tools } from "./tools.js";
import { triangle } from "./triangle.js";
import { short } from "./words.js";
import { showCompared, showFindings, showVerdict } from "./verdict.js";
import { showAnswers, showFit, showRisks } from "./view.js";

const PATIENCE = 1000; // milliseconds before a fit shows that it takes longer
const SHOWN = 40; // sources that can be asked about by hand

// `profile` is the typical risk whose answers are shown; `said` and `known` belong to the one patient.
const page = { data: null, fit: null, prior: {}, part: 0, patient: { n: 6, s: 2 }, said: {}, known: null, profile: null, people: [], told: null, checked: null, compared: null };

const names = Object.fromEntries(offered.models.map(({ id, name }) => [id, name]));
const methods = Object.fromEntries(offered.methods.map(({ id, name }) => [id, name]));
const kept = keeper(changed);
const door = dataDoor(offered, loaded);
const cells = triangle(choosePatient);
const fields = patientFields(choosePatient);
const table = peopleTable(explainPerson, () => redraw());
const pins = pinBoard(kept);
const sources = sourcesPart();

const settings = () => kept.now();
const population = () => page.fit.populations[page.part];
const loss = () => ({ false_positive: settings().falsePositive, false_negative: settings().falseNegative, inconclusive: settings().inconclusive });
const model = () => (page.data ? usable(offered.models, settings().model, page.data.cells) : settings().model);
const fitting = () => ({ prior: page.prior, model: model(), independent: settings().independent && model() === "sources", method: model() === "common" ? settings().method : "bayes", level: settings().level, replicates: settings().replicates });
const bySource = () => Boolean(population().sources);
const usesCovariates = () => Boolean(population().odds_ratios?.length);
const decisions = () => population().profiles?.find(({ name }) => name === page.profile)?.decisions ?? population().decisions;
const request = () => ({ ...fitting(), loss: loss() });
const about = () => ({ cells: page.data.cells, ...request() });
const fail = (error) => tell("wrong", error?.message ?? null);
const more = tools({ ready: () => page.fit !== null, about, request, population, people: () => (page.data.individuals ? page.people : []), settings, door, fail });

const OF_COSTS = ["falsePositive", "falseNegative", "inconclusive"];

function loaded(data) {
  Object.assign(page, { data, fit: null, part: 0, said: {}, known: null, profile: null });
  byId("results").classList.add("unfitted");
  const most = Math.min(Math.max(...data.cells.n, 1), 20);
  page.patient = { n: most, s: Math.round(most / 3) };
  fields.show(page.patient);
  readingFields((data.cells.readings?.sources ?? []).slice(0, SHOWN), (said) => { page.said = said; redraw(); explain(); });
  showTicks(door.columns(), door.part, tick);
  pins.clear();
  table.close();
  Object.assign(page, { checked: null, compared: null });
  showChecked();
  showSettings();
  refit();
}

// A covariate was ticked: the file is read again, and a model that uses covariates takes over.
async function tick(parts) {
  await door.reread(parts);
  if (settings().model !== "sources") kept.choose({ model: "" });
}

// A setting has changed: costs decide here, at once; anything else is a new fit.
function changed(now, before) {
  showSettings();
  const costs = OF_COSTS.some((name) => now[name] !== before[name]);
  if (Object.keys(USUAL).some((name) => !OF_COSTS.includes(name) && now[name] !== before[name])) refit();
  else if (costs) soon();
}

function showSettings() {
  const [past, future] = kept.steps();
  byId("undo").disabled = !past;
  byId("redo").disabled = !future;
  showCosts(settings());
  showBeliefs(settings());
  showChoices(settings(), model());
  if (page.data) showModels(offered.models, model(), page.data.cells, settings().independent, kept.choose);
}

const refit = latest(30, async (signal) => {
  if (!page.data) return;
  byId("results").setAttribute("aria-busy", "true");
  const stop = new AbortController();
  signal.addEventListener("abort", () => stop.abort());
  const timer = setTimeout(() => working(stop), PATIENCE);
  try {
    const prior = await priorOf(settings(), stop.signal);
    const asked = { cells: page.data.cells, ...fitting(), prior };
    const before = page.fit;
    page.fit = await follow("/api/fit", asked, () => {}, stop.signal);
    page.prior = prior;
    if (before?.model !== page.fit.model) page.checked = null; // it was about another model
    showChecked();
    fail(null);
    showPopulations();
    redrawFit();
  } catch (error) {
    if (signal.aborted) throw error;
    if (error.name === "AbortError") kept.undo(); // stopped by hand: back to what was fitted
    else if (!error.said) fail(error);
  } finally {
    clearTimeout(timer);
    if (!signal.aborted) {
      working(null);
      byId("results").setAttribute("aria-busy", "false");
    }
  }
});

// A fit that takes longer says so, and can be stopped.
function working(stop) {
  byId("working").hidden = stop === null;
  if (stop === null) return;
  const name = offered.models.find(({ id }) => id === model())?.name ?? "";
  fill("working", h("span", {}, `Fitting: ${name.toLowerCase()}`), h("progress", { "aria-label": "Fitting" }),
    h("button", { type: "button", onclick: () => stop.abort() }, "Stop"));
}

function showPopulations() {
  const several = page.fit.populations.length > 1;
  byId("populations").hidden = !several;
  fill("population", page.fit.populations.map((one, i) => h("option", { value: i, selected: i === page.part }, one.name ?? "")));
}

function redrawFit() {
  page.people = everyone(page.data, page.fit, population().name);
  byId("results").classList.remove("unfitted");
  showFit(page.fit, page.part, page.data.notes, methods);
  sources.show(population().sources, door.columns().find(({ name }) => door.part(name) === "source")?.name ?? "source");
  showCovariates(population());
  showWhose();
  redraw();
  followUp();
}

// What can be asked of one patient: s of n, or who said what; and for whom the triangle is.
function showWhose() {
  const profiles = population().profiles ?? [];
  byId("whose").hidden = !profiles.length;
  const one = ({ name, covariates }) => `${name}: ${Object.entries(covariates).map(([key, value]) => `${key} ${typeof value === "number" ? short(value) : value}`).join(", ")}`;
  fill("profile", h("option", { value: "" }, "covariates not known"), profiles.map((profile) => h("option", { value: profile.name, selected: profile.name === page.profile }, one(profile))));
  byId("next-individual").classList.toggle("by-source", bySource());
  page.known = null;
  const { covariates, population: of } = page.data.cells;
  const asked = usesCovariates() ? covariates : bySource() && of ? { population: of } : {};
  covariateFields(asked, (known) => { page.known = known; redraw(); explain(); });
  byId("asked-results").hidden = bySource();
  byId("asked-readings").hidden = !bySource();
  byId("next").hidden = bySource();
}

function redraw() {
  if (!page.fit) return;
  const best = rule(settings());
  cells.show(decisions(), best, page.patient);
  showPatient(best);
  table.show(page.people, best, Boolean(page.data.individuals));
  const sums = { negative: 0, inconclusive: 0, positive: 0 };
  for (const { answer, weight } of page.people) sums[answer ?? "undecided"] = (sums[answer ?? "undecided"] ?? 0) + weight;
  showAnswers(sums);
  showJudged(page.data, page.fit, best);
  pins.show(settings(), page.people);
  showRisks(best, page.people);
  const name = h("b", {}, `Answers for ${page.data.name}`);
  fill("print-title", name, `${new Date().toLocaleDateString("en", { dateStyle: "long" })} · ${difference(settings(), USUAL) || "usual settings"} · binreps ${page.fit.binreps}`);
}

// One patient: at once from the table, in full when the server has answered.
function showPatient(best) {
  const told = page.told?.key === patientKey() ? page.told.answer : null;
  const here = page.known || bySource() ? null : fromTable(decisions(), page.patient, best);
  const answer = told ? { ...here, ...told } : here;
  fill("patient", answerView(answer, best));
  const most = decisions().at(-1)?.n;
  if (page.patient.n > most && !bySource()) {
    byId("patient").append(h("p", { class: "small quiet" }, `Beyond the ${most} tests of the triangle. `,
      page.patient.n <= 50 ? h("button", { type: "button", class: "link", onclick: () => kept.choose({ replicates: page.patient.n }) }, `Extend it to ${page.patient.n}`) : null));
  }
}

// Who the patient is: the covariates that are known, those of the typical risk that is shown, or a population.
function who(known = page.known) {
  if (!usesCovariates()) return { known_covariates: null, population: known?.population ?? population().name };
  const typical = population().profiles?.find(({ name }) => name === page.profile)?.covariates;
  return { known_covariates: known ?? typical ?? null, population: population().name };
}
const patientKey = () => JSON.stringify([page.patient, page.said, who(), loss(), fitting(), population().name]);

function choosePatient(patient) {
  page.patient = patient;
  fields.show(patient);
  if (!page.fit) return;
  redraw();
  explain();
}

let waiting = null;

// A cost moved: redraw with the next frame, and measure how long the user waits for it.
function soon() {
  if (!page.fit || waiting !== null) return;
  waiting = performance.now();
  requestAnimationFrame(() => {
    const since = moved ?? waiting;
    [waiting, moved] = [null, null];
    redraw();
    requestAnimationFrame(() => performance.measure("slider to page", { start: since, end: performance.now() }));
  });
  followUp();
}

let moved = null;

// What the server is asked once the hand rests.
function followUp() {
  for (const one of [explain, check]) one();
  more.again();
  table.again();
}

const explain = latest(150, async (signal) => {
  if (!page.fit) return;
  const key = patientKey();
  let answer;
  if (bySource() && !page.known && byId("asked-covariates").childElementCount) {
    page.told = { key, answer: { probability: null, sentence: "Say what else is known of the patient: the chance depends on it." } };
    showPatient(rule(settings()));
    return;
  }
  try {
    answer = await ask("/api/explain", { ...about(), ...page.patient, said: page.said, ...who(), new: true }, signal);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    answer = { probability: null, sentence: error.message };
  }
  if (!page.fit || key !== patientKey()) return;
  page.told = { key, answer };
  showPatient(rule(settings()));
});

// What explains the answer of someone in the data; the element is filled when the server answers.
function explainPerson(person, place = h("div", { role: "status" }, "…")) {
  const asked = { ...about(), n: person.n, s: person.s, ...toldOf(person.cell), new: false };
  ask("/api/explain", asked).then((answer) => place.replaceChildren(...answerView({ ...fromScore(person, rule(settings())), ...answer }, rule(settings()))), (error) => place.replaceChildren(error.message));
  return place;
}

// Who said what of someone, and who they are, by the cell that they belong to.
function toldOf(cell) {
  const { readings, covariates, population: of } = page.data.cells;
  const said = {};
  if (bySource()) readings.cell.forEach((one, i) => { if (one === cell) said[readings.sources[readings.source[i]]] = [readings.yes[i] + readings.no[i], readings.yes[i]]; });
  const known = usesCovariates() ? Object.fromEntries(Object.entries(covariates).map(([name, values]) => [name, values[cell]])) : null;
  return { said, ...who(known ?? (bySource() && of ? { population: of[cell] } : {})) };
}

const act = {
  choose: (patch) => kept.choose(patch, "action"),
  columns: () => { byId("change").click(); byId("data").scrollIntoView(); },
  expect: () => { showSheet(true); byId("expect").open = true; byId("expect").scrollIntoView(); byId("expect").querySelector("summary").focus(); },
};

// The settings of a phone, which lie below the answers.
function showSheet(open) {
  document.body.classList.toggle("settings-open", open);
  byId("dock-settings").setAttribute("aria-expanded", String(open));
  byId("dock-settings").textContent = open ? "Done" : "Settings";
}

// The model that is used, as the server names it.
const used = () => (model() === "common" && settings().better ? "better-than-chance" : model());

const check = latest(300, async (signal) => {
  if (!page.fit) return;
  try {
    page.checked = await ask("/api/check", about(), signal);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    fail(error);
    return;
  }
  showFindings(page.checked.findings, names, act);
  showChecked();
  compare();
});

function showChecked() {
  showVerdict(page.checked?.verdict, page.compared, used(), names, act);
  showCompared(page.compared, used(), names, act);
}

// Which model describes the data best; asked once the answers are there, as it takes seconds.
const compare = latest(500, async (signal) => {
  if (!page.fit) return;
  const { cells } = page.data;
  try {
    const prior = { ...page.prior, better_than_chance: false };
    page.compared = await follow("/api/compare", { cells, prior, independent: settings().independent, loss: loss() }, () => {}, signal);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    page.compared = null; // what cannot be compared is fitted all the same
  }
  if (page.data.cells === cells) showChecked();
});

costSliders(kept, (event) => { moved ??= event.timeStamp; });
beliefs(kept);
choices(offered.methods, kept);
showSettings();

byId("undo").addEventListener("click", kept.undo);
byId("redo").addEventListener("click", kept.redo);
document.addEventListener("keydown", (event) => {
  const typing = event.target.matches?.("textarea, input:not([type=range], [type=checkbox], [type=radio])");
  if (typing || !(event.ctrlKey || event.metaKey) || !["z", "y"].includes(event.key.toLowerCase())) return;
  event.preventDefault();
  if (event.key.toLowerCase() === "y" || event.shiftKey) kept.redo();
  else kept.undo();
});
byId("population").addEventListener("change", (event) => { page.part = Number(event.target.value); pins.clear(); redrawFit(); });
byId("profile").addEventListener("change", (event) => { page.profile = event.target.value || null; redraw(); explain(); });
byId("more-rates").addEventListener("toggle", () => redraw());
byId("dock-settings").addEventListener("click", () => {
  showSheet(!document.body.classList.contains("settings-open"));
  if (document.body.classList.contains("settings-open")) byId("controls").querySelector("summary").focus();
});
document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); byId("results").focus(); });
window.addEventListener("resize", () => page.fit && showRisks(rule(settings()), page.people));
