// How data come in: an example, a file, pasted rows or typed counts. All of them become a file, so that there is
// one road: each column is shown with the part it would play, odd words with a menu, and nothing is computed
// before that is confirmed. What was read before stays until then. Changing it later reads the file again, which
// the server has kept.

import { get, upload } from "./api.js";
import { columnChooser } from "./columns.js";
import { byId, fill, h, tell } from "./dom.js";
import { count, plural } from "./words.js";

const TYPED = { n: "n", s: "s", weight: "individuals" };
const FIRST_COUNTS = [[4, 0, 50], [4, 1, 18], [4, 2, 6], [4, 3, 9], [4, 4, 17]];
const EXAMPLES = { screening: { truth: "truth" }, readers: { truth: "truth" }, wells: {} };
const PATIENCE = 300; // milliseconds before a wait is shown

// `offered` is what the server says of parts and words; `onCells` takes what was counted.
export function dataDoor(offered, onCells) {
  let current = null; // what the answers below are about
  let draft = null; // what is being read
  let stale = null; // a file that the server need not keep any longer
  let running = null;
  const chooser = columnChooser(offered, (sheet) => describe(draft.sent, { sheet }));

  async function open(file, options = {}) {
    await describe(upload(file, stale), options);
  }

  async function describe(sent, { parts, sheet, confirmed = false } = {}) {
    tell("problem", null);
    await patiently(`Reading ${sent.file.name}`, "Looking at its columns.", async (signal) => {
      const described = await sent.describe(sheet, signal);
      draft = { sent, described, confirmed, chosen: chooser.propose(described, parts) };
    });
    if (draft?.sent !== sent) return;
    if (confirmed) await confirm();
    else showReading(true);
  }

  async function confirm() {
    const open = chooser.openWords();
    if (open) {
      tell("misread", open);
      return;
    }
    let counted = null;
    await patiently(`Reading ${draft.sent.file.name}`, "Counting results per individual.", async (signal) => {
      counted = await (await draft.sent.about("/api/counts", chooser.how(), signal)).json();
    });
    if (!counted) return;
    if (current && current.sent !== draft.sent) stale = current.sent.id();
    current = { ...draft, chosen: chooser.chosen(), how: chooser.how(), counted, confirmed: true };
    const fresh = byId("work").hidden;
    showCurrent();
    if (fresh) scrollTo(0, 0);
    onCells(counted);
  }

  // A wait that says what is done, can be stopped, and shows nothing while it is short.
  async function patiently(title, step, work) {
    running?.abort();
    const mine = new AbortController();
    running = mine;
    const timer = setTimeout(() => waiting(title, step, mine), PATIENCE);
    try {
      await work(mine.signal);
    } catch (error) {
      if (error.name !== "AbortError") refused(error);
    } finally {
      clearTimeout(timer);
      if (running === mine) waiting(null);
    }
  }

  function waiting(title, step, mine) {
    byId("loading").hidden = title === null;
    byId("start").setAttribute("aria-busy", String(title !== null));
    if (title === null) return;
    fill("loading", h("b", {}, title), h("progress", { "aria-label": title }), h("p", { class: "small quiet" }, `${step} The file stays on this machine.`),
      [2, 3, 4, 5].map((cells) => h("div", { class: "skeleton", "aria-hidden": "true" }, Array.from({ length: cells }, () => h("i")))),
      h("p", {}, h("button", { type: "button", onclick: () => mine.abort() }, "Stop")));
  }

  function refused(error) {
    const inReading = !byId("data").hidden && !draft?.confirmed;
    tell(inReading || (draft && draft.sent === current?.sent) ? "misread" : "problem", error.message);
    if (inReading) step(true);
  }

  // The steps: the empty page, how a file is read, the answers.
  function showReading(shown) {
    byId("start").hidden = true;
    byId("data").hidden = false;
    byId("work").hidden = draft?.sent !== current?.sent || current === null;
    tell("misread", null);
    fill("source", h("strong", {}, draft.described.name));
    fill("facts");
    fill("parts");
    chooser.show();
    step(shown);
    byId("confirm").focus({ preventScroll: true });
  }

  function showCurrent() {
    draft = { ...current, confirmed: false };
    chooser.restore(current.described, current.chosen);
    byId("start").hidden = true;
    byId("data").hidden = false;
    byId("work").hidden = false;
    document.body.classList.add("loaded");
    byId("new-file").textContent = "New data";
    facts();
    step(false);
  }

  function facts() {
    const { cells, missing, read_as: readAs, name } = current.counted;
    const sum = (value) => cells.weight.reduce((total, weight, i) => total + weight * value(i), 0);
    const gaps = missing ? [plural(missing, "gap")] : [];
    fill("source", h("strong", {}, name));
    fill("facts", [plural(sum(() => 1), "individual"), plural(sum((i) => cells.n[i]), "test"), `${count(sum((i) => cells.s[i]))} positive`, ...gaps].join(" · "));
    fill("parts", chooser.tags(), readAs.slice(1).map((words) => h("span", { class: "small quiet" }, words)));
  }

  function showStart(problem = null) {
    byId("start").hidden = false;
    byId("data").hidden = true;
    byId("work").hidden = true;
    byId("new-file").textContent = "Back to the answers";
    tell("problem", problem);
    scrollTo(0, 0);
  }

  function cancel() {
    if (current) showCurrent();
    else showStart();
  }

  function step(shown) {
    byId("reading").hidden = !shown;
    byId("change").hidden = shown;
    byId("change").setAttribute("aria-expanded", String(shown));
  }

  for (const button of document.querySelectorAll("[data-example]")) {
    button.addEventListener("click", async () => {
      const { example } = button.dataset;
      try {
        const text = await (await get(`/api/examples/${example}.csv`)).text();
        await open(new File([text], `${example}.csv`, { type: "text/csv" }), { parts: EXAMPLES[example], confirmed: true });
      } catch (error) {
        tell("problem", error.message);
      }
    });
  }
  byId("file").addEventListener("change", (event) => {
    if (event.target.files.length) open(event.target.files[0]);
    event.target.value = "";
  });
  byId("use-pasted").addEventListener("click", () => open(new File([byId("pasted").value], "pasted.csv")));
  byId("use-grid").addEventListener("click", () => open(new File([typed()], "counts.csv"), { parts: TYPED, confirmed: true }));
  byId("add-row").addEventListener("click", () => addRow([]));
  byId("confirm").addEventListener("click", confirm);
  byId("cancel-read").addEventListener("click", cancel);
  byId("change").addEventListener("click", () => showReading(true));
  byId("new-file").addEventListener("click", () => (byId("start").hidden ? showStart() : cancel()));
  FIRST_COUNTS.forEach(addRow);
  acceptDrops((file) => open(file));
  return {
    file: () => current.sent.file,
    about: (path, request, signal) => current.sent.about(path, request, signal),
    how: () => current.how,
    columns: () => current.described.columns,
    part: (name) => current.chosen.parts[name],
    // Other parts for some columns, and what was read is read again.
    reread: (parts) => { chooser.give(parts); return confirm(); },
  };
}

function addRow(values) {
  const body = byId("grid").tBodies[0];
  const row = body.rows.length + 1;
  body.append(h("tr", {}, ["n", "s", "individuals"].map((name, i) =>
    h("td", {}, h("input", { type: "number", min: 0, step: 1, value: values[i] ?? "", "aria-label": `${name}, row ${row}` })))));
}

// The typed counts as a file; rows without any number are left out.
function typed() {
  const rows = [...byId("grid").tBodies[0].rows].map((row) => [...row.querySelectorAll("input")].map((input) => input.value));
  return ["n,s,individuals", ...rows.filter((row) => row.some(Boolean)).map((row) => row.join(","))].join("\n");
}

// A file can be dropped anywhere on the page.
function acceptDrops(open) {
  const over = (yes) => (event) => {
    event.preventDefault();
    document.body.classList.toggle("over", yes);
  };
  document.addEventListener("dragover", over(true));
  document.addEventListener("dragleave", over(false));
  document.addEventListener("drop", (event) => {
    over(false)(event);
    if (event.dataTransfer.files.length) open(event.dataTransfer.files[0]);
  });
}
