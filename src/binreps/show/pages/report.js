"use strict";
const key = (cell) => cell.dataset.value ?? cell.textContent.trim().replace(/[,%<>\u202f]/g, "");

for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  for (const button of table.querySelectorAll("th button")) {
    const head = button.parentElement;
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending", column = head.cellIndex;
      const ordered = [...body.rows].sort((a, b) => {
        const [x, y] = [a, b].map((row) => key(row.cells[column]));
        const both = x !== "" && y !== "" && !isNaN(x) && !isNaN(y);
        return (up ? 1 : -1) * (both ? x - y : x.localeCompare(y, undefined, { numeric: true }));
      });
      for (const other of table.querySelectorAll("th")) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      body.append(...ordered);
    });
  }
}

const box = document.getElementById("search");
if (box) {
  const answer = document.getElementById("answer") ?? { value: "", addEventListener() {} };
  const found = document.getElementById("found");
  const rows = [...document.querySelectorAll("#individuals tbody tr")];
  const texts = new Map(rows.map((row) => [row, row.textContent.toLowerCase()]));
  const filter = () => {
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const right = !answer.value || row.dataset.answer === answer.value;
      row.hidden = !(right && words.every((word) => texts.get(row).includes(word)));
      shown += !row.hidden;
    }
    found.textContent = words.length || answer.value ? `${shown} of ${rows.length}` : "";
  };
  box.addEventListener("input", filter);
  answer.addEventListener("input", filter);
}
