// Which model: one list from the server, with the reason where one cannot be chosen.

import { byId, fill, h } from "./dom.js";

const LACKING = {
  population: "needs a column of populations",
  source: "needs a column that says who or what gave each result, or one column per reader",
  covariates: "tick below what else may tell who is positive",
};

// What the data have besides results.
export const partsOf = (cells) => [...(cells.population ? ["population"] : []), ...(cells.readings ? ["source"] : []), ...(cells.covariates ? ["covariates"] : [])];

// The model that is used: the one chosen if the data allow it, else what the columns speak of. Sources are only
// used where they are chosen: that takes seconds.
export function usable(offered, chosen, cells) {
  const have = partsOf(cells);
  const model = offered.find(({ id }) => id === chosen && id !== "auto");
  if (model && (!model.needs || have.includes(model.needs))) return chosen;
  return have.includes("population") ? "populations" : have.includes("covariates") ? "covariates" : "common";
}

export function showModels(offered, used, cells, independent, choose) {
  const have = partsOf(cells);
  const listed = offered.filter(({ id }) => id !== "auto" && id !== "better-than-chance");
  fill("models", h("fieldset", { class: "models" }, h("legend", { class: "small quiet" }, "What is assumed"), listed.map(({ id, name, says, needs }) => {
    const can = !needs || have.includes(needs);
    const input = h("input", { type: "radio", name: "model", id: `model-${id}`, value: id, checked: id === used, disabled: !can });
    input.addEventListener("change", () => choose({ model: id }));
    return h("label", { class: `tick${can ? "" : " off"}`, for: `model-${id}` }, input, " ", name, h("span", { class: "small quiet" }, can ? says : LACKING[needs]));
  })));
  const tick = h("input", { type: "checkbox", id: "independent", checked: independent });
  tick.addEventListener("change", () => choose({ independent: tick.checked }));
  if (used === "sources") byId("models").append(h("label", { class: "tick", for: "independent" }, tick, " Readings are independent", h("span", { class: "small quiet" }, "Unticked, readings of the same individual may err together, and each counts as a part of one.")));
  byId("model-now").textContent = listed.find(({ id }) => id === used)?.name ?? "";
}
