// How data come in: the example, a file, pasted rows or typed counts. All of them become a file, so that there
// is one road: its columns are guessed, shown and can be corrected.

import { get, upload } from "./api.js";
import { byId, fill, h, tell } from "./dom.js";
import { plural } from "./words.js";

const TYPED = { kind: "cells", columns: { n: "n", s: "s", weight: "individuals" } };
const FIRST_COUNTS = [[4, 0, 50], [4, 1, 18], [4, 2, 6], [4, 3, 9], [4, 4, 17]];

// `offered` is what the server says of parts and kinds.
export function dataDoor(offered, onCells) {
  const state = { sent: null, described: null, kind: null, columns: {}, other: {}, labels: {} };
  const titles = Object.fromEntries(offered.parts.map((part) => [part.id, part.title]));
  const kinds = Object.fromEntries(offered.kinds.map((kind) => [kind.id, kind]));
  const others = offered.parts.filter((part) => !part.counts && !part.label);
  const labels = offered.parts.filter((part) => part.label);

  // What the server needs to read the file; also what it needs to read it again for the report.
  const how = () => {
    const columns = { ...state.labels, ...state.other };
    for (const part of kinds[state.kind]?.parts ?? []) if (state.columns[part]) columns[part] = state.columns[part];
    return { columns };
  };

  async function open(file, { other = {}, kind, columns } = {}) {
    busy(true);
    tell("problem", null);
    try {
      const sent = upload(file, state.sent?.id());
      const described = await sent.describe();
      const { guess } = described;
      Object.assign(state, { sent, described, other, labels: {}, kind: kind ?? guess?.kind ?? "long", columns: { ...(columns ?? guess?.columns) } });
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
      const counted = await (await state.sent.about("/api/counts", how())).json();
      const seen = counted.cells.weight.reduce((sum, weight) => sum + weight, 0);
      fill("source", h("strong", {}, counted.name), `: ${plural(seen, "individual")}, ${kinds[state.kind].title}.`);
      onCells(counted);
    } catch (error) {
      tell("problem", error.message);
      byId("columns").open = true;
      onCells(null);
    } finally {
      busy(false);
    }
  }

  function showRoles() {
    const names = state.described.columns.map((column) => column.name);
    const options = (chosen) => [h("option", { value: "" }, "–"),
      ...names.map((name) => h("option", { value: name, selected: name === chosen }, name))];
    const choice = (part, title, chosen, set) => h("div", {}, h("label", { for: `part-${part}` }, title),
      h("select", { id: `part-${part}`, onchange: (event) => { set(event.target.value || undefined); count(); } }, options(chosen)));
    const label = ({ id, title }) => h("div", {}, h("label", { for: `label-${id}` }, title),
      h("input", { id: `label-${id}`, type: "text", value: state.labels[id] ?? "",
        onchange: (event) => { state.labels[id] = event.target.value || undefined; count(); } }));
    const choices = h("div", {}, h("label", { for: "kind" }, "The file has"),
      h("select", { id: "kind", onchange: (event) => { state.kind = event.target.value; showRoles(); count(); } },
        offered.kinds.map(({ id, title }) => h("option", { value: id, selected: id === state.kind }, title))));
    const parts = kinds[state.kind].parts.map((part) => part === "replicates" ? ticks(names, part, state.columns)
      : choice(part, titles[part], single(state.columns[part]), (name) => { state.columns[part] = name; }));
    const more = others.map(({ id, title }) => id === "covariates" ? ticks(names, id, state.other)
      : choice(id, title, state.other[id], (name) => { state.other[id] = name; }));
    const worded = kinds[state.kind].parts.some((part) => part === "result" || part === "replicates");
    fill("roles", choices, parts, more, worded ? labels.map(label) : []);
    showSample();
  }

  // A box for each column; those that are ticked are kept under the part's name.
  function ticks(names, part, kept) {
    const chosen = new Set(kept[part] ?? []);
    const change = (name) => (event) => {
      if (event.target.checked) chosen.add(name);
      else chosen.delete(name);
      kept[part] = names.filter((each) => chosen.has(each));
      count();
    };
    return h("fieldset", { class: "ticks" }, h("legend", {}, titles[part]), names.map((name) =>
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
  return { file: () => state.sent.file, about: (path, request) => state.sent.about(path, request), how };
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
