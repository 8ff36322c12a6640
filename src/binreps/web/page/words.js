// Numbers as people read them; the rules are those of the report.

const SPACE = "\u202f"; // narrow, and never a line break

export const SIGNS = { negative: "−", inconclusive: "?", positive: "+" };

// A rate, with a decimal.
export function percent(share) {
  if (share === null || share === undefined) return "undefined";
  if (share === 0 || share === 1) return `${100 * share}%`;
  if (share > 0.9995) return "above 99.9%";
  if (share < 1e-5) return "below 0.001%";
  return share >= 0.001 ? `${(100 * share).toFixed(1)}%` : `${Number((100 * share).toPrecision(2))}%`;
}

// The chance of one individual: whole percents, a decimal near 0 and 1, never 0 or 100 by rounding.
export function chance(share) {
  if (share === null || share === undefined) return "–";
  if (share === 0 || share === 1) return `${100 * share}${SPACE}%`;
  if (share < 0.0005) return `<0.1${SPACE}%`;
  if (share > 0.9994) return `>99.9${SPACE}%`;
  return `${(100 * share).toFixed(share < 0.0095 || share > 0.9905 ? 1 : 0)}${SPACE}%`;
}

export const short = (value) => String(Number(value.toPrecision(3)));

export const count = (number) => number.toLocaleString("en");

export const plural = (number, noun) => `${count(number)} ${noun}${number === 1 ? "" : "s"}`;

// The first few names, and how many more there are.
export function names(list, most = 6) {
  const more = list.length - most;
  return more > 0 ? `${list.slice(0, most).join(", ")} and ${count(more)} more` : list.join(", ");
}
