// How data come in: the example, a file, pasted rows or typed counts. All of them become a file, so that there
// is one road: its columns are guessed, shown and can be corrected.

import { get, send } from "./api.js";
import { byId, fill, h, tell } from "./dom.js";
import { plural } from "./words.js";

const PARTS = {
  individual: "Individual",
  result: "Result",
  replicates: "Results, one column per replicate",
  n: "Number of replicates n",
  s: "Number of positives s",
  weight: "Number of individuals",
};
const NEEDED = {
  long: ["individual", "result"],
  wide: ["individual", "replicates"],
  counted: ["individual", "n", "s"],
  cells: ["n", "s", "weight"],
};
const OTHER = {
  known: "Known status (informs the fit)",
  truth: "True status (only judges)",
  population: "Population (same test)",
};
const TYPED = { kind: "cells", columns: { n: "n", s: "s", weight: "individuals" } };
const FIRST_COUNTS = [[4, 0, 50], [4, 1, 18], [4, 2, 6], [4, 3, 9], [4, 4, 17]];

export function dataDoor(onCells) {
  const state = { file: null, described: null, kind: null, columns: {}, other: {}, labels: {} };

  // What the server needs to read the file; also what it needs to read it again for the report.
  const how = () => {
    const columns = { ...state.labels };
    for (const part of NEEDED[state.kind] ?? []) if (state.columns[part]) columns[part] = state.columns[part];
    return { columns, ...state.other };
  };

  async function open(file, { other = {}, kind, columns } = {}) {
    busy(true);
    tell("problem", null);
    try {
      const described = await (await send("/api/columns", file)).json();
      const { guess } = described;
      Object.assign(state, { file, described, other, labels: {}, kind: kind ?? guess?.kind ?? "long", columns: { ...(columns ?? guess?.columns) } });
      byId("loaded").hidden = false;
      byId("columns").open = Boolean(described.problem);
      showRoles();
      if (described.problem && !columns) {
        tell("problem", `${described.problem}. Name the columns below.`);
        fill("source", described.name);
        onCells(null);
      } else await count();
    } catch (error) {
      tell("problem", error.message);
    } finally {
      busy(false);
    }
  }

  async function count() {
    busy(true);
    tell("problem", null);
    try {
      const counted = await (await send("/api/counts", state.file, how())).json();
      const seen = counted.cells.weight.reduce((sum, weight) => sum + weight, 0);
      fill("source", h("strong", {}, counted.name), `: ${plural(seen, "individual")}, ${state.described.kinds[state.kind]}.`);
      onCells({ ...counted, notes: [...statusNotes(), ...counted.notes] });
    } catch (error) {
      tell("problem", error.message);
      byId("columns").open = true;
      onCells(null);
    } finally {
      busy(false);
    }
  }

  // A column that looks like a status is mentioned until it has a part.
  const statusNotes = () => (state.other.known || state.other.truth ? [] : (state.described.guess?.notes ?? []));

  function showRoles() {
    const names = state.described.columns.map((column) => column.name);
    const options = (chosen) => [h("option", { value: "" }, "–"),
      ...names.map((name) => h("option", { value: name, selected: name === chosen }, name))];
    const choice = (part, title, chosen, set) => h("div", {}, h("label", { for: `part-${part}` }, title),
      h("select", { id: `part-${part}`, onchange: (event) => { set(event.target.value || undefined); count(); } }, options(chosen)));
    const label = (part, title) => h("div", {}, h("label", { for: `label-${part}` }, title),
      h("input", { id: `label-${part}`, type: "text", value: state.labels[part] ?? "",
        onchange: (event) => { state.labels[part] = event.target.value || undefined; count(); } }));
    const kinds = h("div", {}, h("label", { for: "kind" }, "The file has"),
      h("select", { id: "kind", onchange: (event) => { state.kind = event.target.value; showRoles(); count(); } },
        Object.entries(state.described.kinds).map(([kind, words]) =>
          h("option", { value: kind, selected: kind === state.kind }, words))));
    const parts = NEEDED[state.kind].map((part) => part === "replicates" ? ticks(names)
      : choice(part, PARTS[part], single(state.columns[part]), (name) => { state.columns[part] = name; }));
    const others = Object.entries(OTHER).map(([part, title]) =>
      choice(part, title, state.other[part], (name) => { state.other[part] = name; }));
    const labels = state.kind === "long" || state.kind === "wide"
      ? [label("positive", "Word for positive, if unusual"), label("negative", "Word for negative, if unusual")] : [];
    fill("roles", kinds, parts, others, labels);
    showSample();
  }

  function ticks(names) {
    const chosen = new Set(state.columns.replicates ?? []);
    const change = (name) => (event) => {
      if (event.target.checked) chosen.add(name);
      else chosen.delete(name);
      state.columns.replicates = names.filter((each) => chosen.has(each));
      count();
    };
    return h("fieldset", { class: "ticks" }, h("legend", {}, PARTS.replicates), names.map((name) =>
      h("label", {}, h("input", { type: "checkbox", checked: chosen.has(name), onchange: change(name) }), " ", name)));
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
      await open(new File([text], "screening.csv", { type: "text/csv" }), { other: { truth: "truth" } });
    } catch (error) {
      tell("problem", error.message);
    }
  });
  byId("file").addEventListener("change", (event) => {
    if (event.target.files.length) open(event.target.files[0]);
    event.target.value = "";
  });
  byId("use-pasted").addEventListener("click", () => open(new File([byId("pasted").value], "pasted.csv")));
  byId("use-grid").addEventListener("click", () => open(new File([typed()], "counts.csv"), TYPED));
  byId("add-row").addEventListener("click", () => addRow([]));
  FIRST_COUNTS.forEach(addRow);
  acceptDrops(open);
  return { file: () => state.file, how };
}

const single = (value) => (Array.isArray(value) ? value[0] : value);

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
