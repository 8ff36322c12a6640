// Scenarios that were pinned, and who would get another answer than now.

import { decide, rule } from "./decide.js";
import { byId, fill, h, shares } from "./dom.js";
import { USUAL } from "./settings.js";
import { SIGNS, count, names, percent, plural, short } from "./words.js";

const SAID = {
  falsePositive: (value) => `a false alarm costs ${short(value)}`,
  falseNegative: (value) => `a miss costs ${short(value)}`,
  inconclusive: (value) => `no clear answer costs ${short(value)}`,
  prevalence: (value) => (value ? `prevalence expected at ${percent(value[0])}` : "nothing expected of the prevalence"),
  false_negative: (value) => (value ? `sensitivity expected at ${percent(value[0])}` : "nothing expected of the sensitivity"),
  false_positive: (value) => (value ? `specificity expected at ${percent(value[0])}` : "nothing expected of the specificity"),
  better: (value) => (value ? "better than chance" : "error rates below 50%"),
  method: (value) => `method ${value}`,
  model: (value) => (value ? `model ${value}` : "the usual model"),
  independent: (value) => (value ? "readings independent" : "readings may err together"),
  level: (value) => `intervals of ${Math.round(100 * value)}%`,
  replicates: (value) => (value ? `up to ${value} tests` : "as many tests as anyone had"),
};

// What differs between two settings, in words.
export function difference(settings, other) {
  const words = Object.keys(SAID).filter((name) => JSON.stringify(settings[name]) !== JSON.stringify(other[name])).map((name) => SAID[name](settings[name]));
  const text = words.join("; ");
  return text ? text[0].toUpperCase() + text.slice(1) : "";
}

export function pinBoard(kept) {
  let pins = [];
  let now = null; // { settings, people }

  const answersOf = (people, settings) => {
    const best = rule(settings);
    return people.map((one) => decide(one.score, best));
  };

  function sums(people, answers) {
    const found = { negative: 0, inconclusive: 0, positive: 0 };
    people.forEach((one, i) => { found[answers[i] ?? "undecided"] = (found[answers[i] ?? "undecided"] ?? 0) + one.weight; });
    return found;
  }

  // Who gets another answer there than here.
  function changes(pin, people, answers, there) {
    const moved = people.map((one, i) => ({ one, from: answers[i], to: there[i] })).filter(({ from, to }) => from !== to);
    const total = moved.reduce((sum, { one }) => sum + one.weight, 0);
    if (!total) return h("p", {}, "No answer is different.");
    const groups = {};
    for (const each of moved) (groups[each.to ?? "undecided"] ??= []).push(each);
    return h("div", {}, h("p", {}, h("b", {}, `${plural(total, "answer")} ${total === 1 ? "is" : "are"} different:`)),
      Object.entries(groups).map(([to, list]) => h("p", {}, `${SIGNS[to] ?? "–"} ${to}: ${names(list.map(({ one }) => one.name))}`)));
  }

  function card(title, people, settings, answers, rest) {
    const found = sums(people, answers);
    return [h("h3", {}, title), h("div", { class: "shares", "aria-hidden": "true" }, shares(found, false)),
      h("p", { class: "answers" }, Object.entries(found).map(([answer, number]) => h("span", {}, `${SIGNS[answer] ?? "–"} `, h("span", { class: "hidden-words" }, answer), h("b", {}, count(number))))),
      rest];
  }

  function redraw() {
    if (!now) return;
    const { settings, people } = now;
    const here = answersOf(people, settings);
    const first = h("div", { class: "pin now" }, card("Now", people, settings, here, h("p", { class: "quiet" }, difference(settings, USUAL) || "The usual settings")));
    const others = pins.map((pin, i) => {
      const fitting = pin.people.length === people.length;
      const there = fitting ? answersOf(pin.people, pin.settings) : [];
      return h("div", { class: "pin" }, card(difference(pin.settings, settings) || "The same settings", pin.people, pin.settings, there.length ? there : answersOf(pin.people, pin.settings),
        fitting ? changes(pin, people, here, there) : h("p", {}, "Of another population.")),
      h("div", { class: "buttons" },
        h("button", { type: "button", onclick: () => kept.choose(pin.settings, "pin") }, "Use"),
        h("button", { type: "button", onclick: () => { pins.splice(i, 1); redraw(); byId("pin").focus(); } }, "Remove")));
    });
    fill("pins", first, others, pins.length ? null : h("p", { class: "quiet small" }, "Pin the settings you have, change them, and see who gets another answer."));
  }

  byId("pin").addEventListener("click", () => {
    if (!now) return;
    pins.push({ settings: now.settings, people: now.people.map(({ name, weight, score }) => ({ name, weight, score })) });
    redraw();
  });
  return {
    show: (settings, people) => { now = { settings, people }; redraw(); },
    clear: () => { pins = []; now = null; },
  };
}
