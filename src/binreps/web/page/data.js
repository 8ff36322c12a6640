// How data come in: the example, a file, pasted rows or typed counts. All of them become a file, so that there
// is one road: each column is shown with the part it would play, odd words with a menu, and nothing is computed
// before that is confirmed. Changing it later reads the file again, which the server has kept.

import { get, upload } from "./api.js";
import { byId, fill, h, tell } from "./dom.js";
import { plural } from "./words.js";

const TYPED = { n: "n", s: "s", weight: "individuals" };
const FIRST_COUNTS = [[4, 0, 50], [4, 1, 18], [4, 2, 6], [4, 3, 9], [4, 4, 17]];
const MEANINGS = { positive: "positive", negative: "negative", missing: "no result" };
const OPTIONS = / \((--[a-z]+(, )?)+( [^()]*)?\)/g; // of the command line, in its questions
const RESULT = "result"; // one column of results, or several: the server is told which by their number

// `offered` is what the server says of parts and words.
export function dataDoor(offered, onCells) {
  const state = { sent: null, described: null, parts: {}, words: {} };
  const choices = offered.parts.filter((part) => !part.label && part.id !== "replicates");

  // What the server needs to read the file; also what it needs to read it again for the report.
  const how = () => {
    const columns = {};
    for (const [name, part] of Object.entries(state.parts)) (columns[part] ??= []).push(name);
    if (columns.result?.length > 1) {
      columns.replicates = columns.result;
      delete columns.result;
    }
    for (const { id, many } of choices) {
      if (columns[id] && (!many || columns[id].length === 1)) columns[id] = one(id, columns[id]);
    }
    return { columns: { ...columns, ...labels() }, sheet: state.described.sheet ?? undefined };
  };

  const one = (part, names) => {
    if (names.length > 1) throw new Error(`one column can be “${title(part)}”, and ${names.join(" and ")} are`);
    return names[0];
  };

  const title = (part) => choices.find(({ id }) => id === part)?.title ?? part;

  // Words that were given a meaning join the usual ones of the pairs that the columns use.
  function labels() {
    const asked = oddWords();
    const chosen = (meaning) => asked.filter((word) => state.words[word] === meaning);
    const missing = chosen("missing");
    const found = missing.length ? { missing } : {};
    if (!chosen("positive").length && !chosen("negative").length) return found;
    const pairs = new Set(results().flatMap((column) => column.vocabulary));
    const usual = (i) => [...pairs].flatMap((pair) => offered.vocabularies[pair][i]).filter((word) => !asked.includes(word));
    const both = [[...usual(0), ...chosen("positive")], [...usual(1), ...chosen("negative")]];
    return { ...found, positive: both[0], ...(both[1].length ? { negative: both[1] } : {}) };
  }

  const results = () => state.described.columns.filter((column) => state.parts[column.name] === RESULT);
  const oddWords = () => [...new Set(results().flatMap((column) => Object.keys(column.odd)))];

  async function open(file, { parts, sheet, confirmed = false } = {}) {
    busy(true);
    tell("problem", null);
    onCells(null);
    byId("loaded").hidden = true;
    try {
      const sent = sheet === undefined ? upload(file, state.sent?.id()) : state.sent;
      const described = await sent.describe(sheet);
      Object.assign(state, { sent, described, words: {}, parts: proposed(described, parts) });
      byId("loaded").hidden = false;
      fill("source", h("strong", {}, described.name));
      showStep();
      if (confirmed) await confirm();
      else step(true);
    } catch (error) {
      tell("problem", error.message);
    } finally {
      busy(false);
    }
  }

  // The part of each column, as guessed, or as far as it is clear.
  function proposed(described, more = {}) {
    const columns = { ...(described.guess?.columns ?? described.proposed), ...more };
    const parts = {};
    for (const [part, names] of Object.entries(columns)) {
      for (const name of [names].flat()) parts[name] = part === "replicates" ? RESULT : part;
    }
    return parts;
  }

  async function confirm() {
    const open = oddWords().filter((word) => !state.words[word]);
    if (open.length) {
      tell("problem", `Say what ${open.map((word) => `“${word}”`).join(", ")} ${open.length > 1 ? "mean" : "means"}.`);
      return;
    }
    busy(true);
    tell("problem", null);
    try {
      const counted = await (await state.sent.about("/api/counts", how())).json();
      const seen = counted.cells.weight.reduce((sum, weight) => sum + weight, 0);
      fill("source", h("strong", {}, counted.name), `: ${plural(seen, "individual")}, `, counted.read_as.join("; "), ".");
      step(false);
      onCells(counted);
    } catch (error) {
      tell("problem", error.message);
      step(true);
      onCells(null);
    } finally {
      busy(false);
    }
  }

  function step(shown) {
    byId("reading").hidden = !shown;
    byId("change").hidden = shown;
  }

  function showStep() {
    const { problem, sheets, sheet, columns } = state.described;
    tell("question", problem ? `${problem.replace(OPTIONS, "")}.` : null);
    const options = sheets.map((name) => h("option", { selected: name === sheet }, name));
    fill("sheets", sheets.length < 2 ? [] : [h("label", { for: "sheet" }, "Sheet"), " ",
      h("select", { id: "sheet", onchange: (event) => open(state.sent.file, { sheet: event.target.value }) }, options)]);
    fill("chips", columns.map(chip));
    showWords();
    showSample();
  }

  function chip(column, i) {
    const part = state.parts[column.name] ?? "";
    const box = h("div", { class: `chip ${part && "used"} ${part}`, "data-column": column.name });
    const change = (event) => {
      if (event.target.value) state.parts[column.name] = event.target.value;
      else delete state.parts[column.name];
      box.className = `chip ${event.target.value && "used"} ${event.target.value}`;
      showWords();
    };
    const options = [h("option", { value: "" }, "not used"),
      ...choices.map(({ id, title: text }) => h("option", { value: id, selected: id === part }, text))];
    box.append(h("label", { for: `part-${i}` }, column.name), h("select", { id: `part-${i}`, onchange: change }, options),
      h("small", {}, part ? `holds ${column.holds}` : column.why));
    return box;
  }

  function showWords() {
    const rows = oddWords().map((word, i) => {
      const where = results().filter((column) => column.odd[word]);
      const said = where.map((column) => `${column.odd[word]} in ${column.name}`).join(", ");
      const options = [h("option", { value: "" }, "say what it means"), ...Object.entries(MEANINGS).map(([value, text]) =>
        h("option", { value, selected: state.words[word] === value }, text))];
      return h("div", { class: "word" }, h("label", { for: `word-${i}` }, `“${word}”`),
        h("select", { id: `word-${i}`, "data-word": word, onchange: (event) => { state.words[word] = event.target.value; } }, options),
        h("small", {}, said));
    });
    const known = {};
    for (const column of results()) {
      for (const [word, number] of Object.entries(column.no_result)) known[word] = (known[word] ?? 0) + number;
    }
    const list = Object.entries(known).map(([word, number]) => `“${word}” (${number})`).join(", ");
    fill("odd", rows.length ? h("h3", {}, "Words that are not results") : null, rows,
      list ? h("p", { class: "quiet" }, `Read as no result: ${list}.`) : null);
  }

  function showSample() {
    const { columns } = state.described;
    const rows = Math.max(...columns.map((column) => column.values.length), 0);
    fill("sample", h("thead", {}, h("tr", {}, columns.map((column) => h("th", { scope: "col" }, column.name)))),
      h("tbody", {}, Array.from({ length: rows }, (_, i) =>
        h("tr", {}, columns.map((column) => h("td", {}, column.values[i] ?? ""))))));
  }

  byId("example").addEventListener("click", async () => {
    try {
      const text = await (await get("/api/example.csv")).text();
      const file = new File([text], "screening.csv", { type: "text/csv" });
      await open(file, { parts: { truth: "truth" }, confirmed: true });
    } catch (error) {
      tell("problem", error.message);
    }
  });
  byId("file").addEventListener("change", (event) => {
    if (event.target.files.length) open(event.target.files[0]);
    event.target.value = "";
  });
  byId("use-pasted").addEventListener("click", () => open(new File([byId("pasted").value], "pasted.csv")));
  byId("use-grid").addEventListener("click", () => open(new File([typed()], "counts.csv"), { parts: TYPED, confirmed: true }));
  byId("add-row").addEventListener("click", () => addRow([]));
  byId("confirm").addEventListener("click", confirm);
  byId("change").addEventListener("click", () => { step(true); byId("confirm").focus(); });
  FIRST_COUNTS.forEach(addRow);
  acceptDrops((file) => open(file));
  return { file: () => state.sent.file, about: (path, request) => state.sent.about(path, request), how };
}

const busy = (yes) => byId("data").setAttribute("aria-busy", String(yes));

function addRow(values) {
  const body = byId("grid").tBodies[0];
  const row = body.rows.length + 1;
  body.append(h("tr", {}, ["n", "s", "individuals"].map((name, i) =>
    h("td", {}, h("input", { type: "number", min: 0, step: 1, value: values[i] ?? "", "aria-label": `${name}, row ${row}` })))));
}

// The typed counts as a file; rows without a number of individuals are left out.
function typed() {
  const rows = [...byId("grid").tBodies[0].rows].map((row) => [...row.querySelectorAll("input")].map((input) => input.value));
  return ["n,s,individuals", ...rows.filter((row) => row.some(Boolean)).map((row) => row.join(","))].join("\n");
}

function acceptDrops(open) {
  const place = byId("data");
  const over = (yes) => (event) => {
    event.preventDefault();
    place.classList.toggle("over", yes);
  };
  place.addEventListener("dragover", over(true));
  place.addEventListener("dragleave", over(false));
  place.addEventListener("drop", (event) => {
    over(false)(event);
    if (event.dataTransfer.files.length) open(event.dataTransfer.files[0]);
  });
}
