// Numbers as people read them; the rules are those of the report.

export function percent(share) {
  if (share === null || share === undefined) return "undefined";
  if (share === 0 || share === 1) return `${100 * share}%`;
  if (share > 0.9995) return "above 99.9%";
  if (share < 1e-5) return "below 0.001%";
  return share >= 0.001 ? `${(100 * share).toFixed(1)}%` : `${Number((100 * share).toPrecision(2))}%`;
}

export function chance(share) {
  if (share === null || share === undefined) return "–";
  if (share > 0 && share < 5e-4) return "<0.001";
  return share > 0.9995 && share < 1 ? ">0.999" : share.toFixed(3);
}

export const short = (value) => String(Number(value.toPrecision(3)));

export const count = (number) => number.toLocaleString("en");

export const plural = (number, noun) => `${count(number)} ${noun}${number === 1 ? "" : "s"}`;
