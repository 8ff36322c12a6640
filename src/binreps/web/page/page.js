// The page: data come in, are fitted on the server, and decided here, at once, whenever a cost moves.

import { ask, latest } from "./api.js";
import { beliefs, choices, costSliders, priorOf, showBeliefs, showChoices, showCosts } from "./controls.js";
import { dataDoor } from "./data.js";
import { rule } from "./decide.js";
import { byId, fill, h, tell } from "./dom.js";
import { showJudged } from "./judged.js";
import { offered } from "./offered.js"; // parts of columns, words, methods: made by the server
import { answerView, fromScore, fromTable, patientFields } from "./patient.js";
import { everyone, peopleTable } from "./people.js";
import { difference, pinBoard } from "./pins.js";
import { USUAL, keeper } from "./settings.js";
import { tools } from "./tools.js";
import { triangle } from "./triangle.js";
import { showAnswers, showFindings, showFit, showRisks, showVerdict } from "./view.js";

const page = { data: null, fit: null, fitted: null, prior: {}, part: 0, patient: { n: 6, s: 2 }, people: [], told: null };

const methods = Object.fromEntries(offered.methods.map(({ id, name }) => [id, name]));
const kept = keeper(changed);
const door = dataDoor(offered, loaded);
const cells = triangle(choosePatient);
const fields = patientFields(choosePatient);
const table = peopleTable(explainPerson, () => redraw());
const pins = pinBoard(kept);

const settings = () => kept.now();
const population = () => page.fit.populations[page.part];
const loss = () => ({ false_positive: settings().falsePositive, false_negative: settings().falseNegative, inconclusive: settings().inconclusive });
const fitting = () => ({ prior: page.prior, method: settings().method, level: settings().level, replicates: settings().replicates });
const request = () => ({ ...fitting(), loss: loss() });
const about = () => ({ cells: page.data.cells, ...request() });
const fail = (error) => tell("wrong", error?.message ?? null);
const more = tools({ ready: () => page.fit !== null, about, request, population, settings, door, fail });

const OF_COSTS = ["falsePositive", "falseNegative", "inconclusive"];

function loaded(data) {
  Object.assign(page, { data, fit: null, part: 0 });
  const most = Math.min(Math.max(...data.cells.n, 1), 20);
  page.patient = { n: most, s: Math.round(most / 3) };
  fields.show(page.patient);
  pins.clear();
  table.close();
  showVerdict(null);
  refit();
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
  showChoices(settings(), methods);
}

const refit = latest(30, async (signal) => {
  if (!page.data) return;
  byId("results").setAttribute("aria-busy", "true");
  try {
    const prior = await priorOf(settings(), signal);
    const asked = { cells: page.data.cells, ...fitting(), prior };
    page.fit = await ask("/api/fit", asked, signal);
    page.prior = prior;
    fail(null);
    showPopulations();
    redrawFit();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    if (!error.said) fail(error);
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
  page.people = everyone(page.data, page.fit, population().name);
  showFit(page.fit, page.part, page.data.notes, methods);
  redraw();
  followUp();
}

function redraw() {
  if (!page.fit) return;
  const best = rule(settings());
  cells.show(population().decisions, best, page.patient);
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
  const here = fromTable(population().decisions, page.patient, best);
  const answer = told ? { ...here, ...told } : here;
  fill("patient", answerView(answer, best));
  const most = population().decisions.at(-1).n;
  if (page.patient.n > most) {
    byId("patient").append(h("p", { class: "small quiet" }, `Beyond the ${most} tests of the triangle. `,
      page.patient.n <= 50 ? h("button", { type: "button", class: "link", onclick: () => kept.choose({ replicates: page.patient.n }) }, `Extend it to ${page.patient.n}`) : null));
  }
}

const patientKey = () => JSON.stringify([page.patient, loss(), population().name]);

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
  try {
    answer = await ask("/api/explain", { ...about(), ...page.patient, new: true, population: population().name }, signal);
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
  const asked = { ...about(), n: person.n, s: person.s, new: false, population: population().name };
  ask("/api/explain", asked).then((answer) => place.replaceChildren(...answerView({ ...fromScore(person, rule(settings())), ...answer }, rule(settings()))), (error) => place.replaceChildren(error.message));
  return place;
}

const check = latest(300, async (signal) => {
  if (!page.fit) return;
  try {
    const { findings } = await ask("/api/check", about(), signal);
    showFindings(findings);
    verdict(findings);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    fail(error);
  }
});

function verdict(findings) {
  const warning = findings.find((one) => one.severity === "warning");
  const show = h("button", { type: "button", onclick: () => { byId("checks-title").scrollIntoView(); byId("checks-title").focus(); } }, "What I can do");
  if (warning) showVerdict("read", warning.sentence, show);
  else showVerdict("good", "Nothing found speaks against these answers.");
}

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
byId("more-rates").addEventListener("toggle", () => redraw());
byId("dock-settings").addEventListener("click", () => {
  const open = document.body.classList.toggle("settings-open");
  byId("dock-settings").setAttribute("aria-expanded", String(open));
  byId("dock-settings").textContent = open ? "Done" : "Settings";
  if (open) byId("controls").querySelector("summary").focus();
});
document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); byId("results").focus(); });
window.addEventListener("resize", () => page.fit && showRisks(rule(settings()), page.people));
