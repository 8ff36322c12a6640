// From probabilities to answers, as the library does it: the thresholds are the same to the last bit, so that
// moving a cost needs no server.

export const ANSWERS = ["negative", "inconclusive", "positive"];

const TIE = 4 * Number.EPSILON;

// A number as m · 2^e with whole m.
function exact(x) {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, x);
  const bits = view.getBigUint64(0);
  const exponent = Number((bits >> 52n) & 0x7ffn);
  const fraction = bits & 0xfffffffffffffn;
  return exponent ? [fraction | 0x10000000000000n, exponent - 1075] : [fraction, -1074];
}

// The numbers, multiplied by one power of 2 that makes all of them whole.
function whole(numbers) {
  const parts = numbers.map(exact);
  const least = Math.min(...parts.map(([, exponent]) => exponent));
  return parts.map(([m, exponent]) => m << BigInt(exponent - least));
}

// The double nearest to a quotient below 1: enough bits, and the last one says whether something was cut off.
// Where rounding would reach an end, the number beside it.
function quotient(above, below) {
  const shift = Math.max(0, 80 + below.toString(2).length - above.toString(2).length);
  const scaled = above << BigInt(shift);
  const rest = scaled % below === 0n ? 0n : 1n;
  const nearest = Number((scaled / below) | rest) * 2 ** -Math.min(shift, 1000) * 2 ** -Math.max(0, shift - 1000);
  return Math.min(Math.max(nearest, Number.MIN_VALUE), 1 - Number.EPSILON / 2);
}

export function rule({ falsePositive, falseNegative, inconclusive }) {
  const [a, b, c] = whole([inconclusive, falsePositive, falseNegative]);
  const allows = a * c + a * b < b * c;
  const [lower, upper] = allows
    ? [quotient(a, c), quotient(b - a, b)]
    : [quotient(b, b + c), quotient(b, b + c)];
  return { lower, upper, allows, falsePositive, falseNegative, inconclusive };
}

// How far a score is above a threshold; 0 if only rounding tells them apart.
function against(score, threshold) {
  const gap = score - threshold;
  const tie = TIE * Math.min(1, 1e6 * threshold);
  return Math.abs(gap) <= tie && score < 1 ? 0 : gap;
}

export function decide(score, costs) {
  if (score === null) return null;
  if (!costs.allows) return against(score, costs.upper) >= 0 ? "positive" : "negative";
  if (against(score, costs.lower) < 0) return "negative";
  return against(score, costs.upper) > 0 ? "positive" : "inconclusive";
}

// Expected costs of the three answers.
export function risks(score, { falsePositive, falseNegative, inconclusive }) {
  return [
    score * falseNegative,
    (1 - score) * inconclusive + score * inconclusive,
    (1 - score) * falsePositive,
  ];
}

// How many individuals get each answer.
export function totals(cells, costs) {
  const count = { negative: 0, inconclusive: 0, positive: 0 };
  for (const cell of cells) {
    const answer = decide(cell.score, costs) ?? "undecided";
    count[answer] = (count[answer] ?? 0) + cell.weight;
  }
  return count;
}
