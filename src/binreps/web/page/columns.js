// Which column plays which part, and what odd words mean: proposed, corrected by the user, and told the server.

import { byId, fill, h, tell } from "./dom.js";

const MEANINGS = { positive: "positive", negative: "negative", missing: "no result" };
const OPTIONS = / \((--[a-z]+(, )?)+( [^()]*)?\)/g; // of the command line, in its questions
const RESULT = "result"; // one column of results, or several: the server is told which by their number

export function columnChooser(offered, onSheet) {
  const state = { described: null, parts: {}, words: {} };
  const choices = offered.parts.filter((part) => !part.label && part.id !== "replicates");
  const title = (part) => choices.find(({ id }) => id === part)?.title ?? part;

  // What the server needs to read the file.
  function how() {
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
  }

  const one = (part, names) => {
    if (names.length > 1) throw new Error(`one column can be “${title(part)}”, and ${names.join(" and ")} are`);
    return names[0];
  };

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

  // The part of each column, as guessed, or as far as it is clear.
  function propose(described, more = {}) {
    const columns = { ...(described.guess?.columns ?? described.proposed), ...more };
    const parts = {};
    for (const [part, names] of Object.entries(columns)) {
      for (const name of [names].flat()) parts[name] = part === "replicates" ? RESULT : part;
    }
    Object.assign(state, { described, parts, words: {} });
    return chosen();
  }

  const chosen = () => ({ parts: { ...state.parts }, words: { ...state.words } });

  function restore(described, { parts, words }) {
    Object.assign(state, { described, parts: { ...parts }, words: { ...words } });
  }

  function give(parts) {
    for (const [name, part] of Object.entries(parts)) {
      if (part) state.parts[name] = part;
      else delete state.parts[name];
    }
  }

  function show() {
    const { problem, sheets, sheet, columns } = state.described;
    tell("question", problem ? `${problem.replace(OPTIONS, "")}.` : null);
    const options = sheets.map((name) => h("option", { selected: name === sheet }, name));
    fill("sheets", sheets.length < 2 ? [] : [h("label", { for: "sheet" }, "Sheet"), " ",
      h("select", { id: "sheet", onchange: (event) => onSheet(event.target.value) }, options)]);
    fill("columns", columns.map(chip));
    showWords();
    showSample();
  }

  function chip(column, i) {
    const part = state.parts[column.name] ?? "";
    const box = h("div", { class: `column ${part && "used"} ${part}`, "data-column": column.name });
    const change = (event) => {
      give({ [column.name]: event.target.value });
      box.className = `column ${event.target.value && "used"} ${event.target.value}`;
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

  // What is open before it can be read, in a sentence.
  function openWords() {
    const open = oddWords().filter((word) => !state.words[word]);
    if (open.length) return `Say what ${open.map((word) => `“${word}”`).join(", ")} ${open.length > 1 ? "mean" : "means"}.`;
    try {
      how();
    } catch (error) {
      return error.message;
    }
    return null;
  }

  function tags() {
    return state.described.columns.filter(({ name }) => state.parts[name]).map(({ name }) =>
      h("span", { class: `tag ${state.parts[name]}` }, `${title(state.parts[name]).replace(/ \(.*/, "").toLowerCase()} `, h("b", {}, name)));
  }

  return { propose, chosen, restore, give, show, how, openWords, tags };
}
