// What the user has chosen: one value that controls change, the address keeps (without any data), and undo
// brings back.

export const USUAL = {
  falsePositive: 1, falseNegative: 1, inconclusive: 0.25,
  prevalence: null, false_negative: null, false_positive: null, // [expected, surprising], once it was moved
  model: "", independent: false, better: false, method: "bayes", level: 0.9, replicates: null,
};

const CLOSE = 800; // milliseconds in which moves of one control are one step of undo

const positive = (text) => (Number(text) > 0 && Number(text) < Infinity ? Number(text) : undefined);
const pair = (text) => {
  const both = text.split(",").map(Number);
  return both.length === 2 && both.every((share) => share > 0 && share < 1) ? both : undefined;
};
const READ = {
  falsePositive: positive, falseNegative: positive, inconclusive: positive,
  prevalence: pair, false_negative: pair, false_positive: pair,
  independent: (text) => text === "true",
  better: (text) => text === "true",
  model: (text) => text,
  method: (text) => text,
  level: (text) => (Number(text) > 0 && Number(text) < 1 ? Number(text) : undefined),
  replicates: (text) => (Number.isInteger(Number(text)) && Number(text) >= 1 && Number(text) <= 50 ? Number(text) : undefined),
};

const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);

// The settings that differ from the usual ones, as the part of an address behind #.
export function toFragment(settings) {
  const kept = Object.keys(USUAL).filter((name) => !same(settings[name], USUAL[name]));
  return new URLSearchParams(kept.map((name) => [name, String(settings[name])])).toString();
}

export function fromFragment(text) {
  const found = { ...USUAL };
  for (const [name, value] of new URLSearchParams(text)) {
    const read = READ[name]?.(value);
    if (read !== undefined) found[name] = read;
  }
  return found;
}

// `onChange(now, before)` is called whenever something changed.
export function keeper(onChange) {
  let now = fromFragment(location.hash.slice(1));
  let last = { kind: null, time: 0 };
  const past = [];
  const future = [];

  function become(next) {
    const before = now;
    now = next;
    const fragment = toFragment(now);
    history.replaceState(null, "", fragment ? `#${fragment}` : location.pathname + location.search);
    onChange(now, before);
  }

  function choose(patch, kind = Object.keys(patch).join()) {
    const next = { ...now, ...patch };
    if (same(next, now)) return;
    const time = performance.now();
    if (kind !== last.kind || time - last.time > CLOSE) past.push(now);
    last = { kind, time };
    future.length = 0;
    become(next);
  }

  function step(from, to) {
    if (!from.length) return;
    to.push(now);
    last = { kind: null, time: 0 };
    become(from.pop());
  }

  // An address that was pasted; an anchor within the page is none, and the settings go back in its place.
  window.addEventListener("hashchange", () => {
    const text = location.hash.slice(1);
    if (text.includes("=")) choose(fromFragment(text), "address");
    else become(now);
  });

  return {
    now: () => now,
    choose,
    undo: () => step(past, future),
    redo: () => step(future, past),
    steps: () => [past.length, future.length],
  };
}
