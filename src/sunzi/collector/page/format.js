// Numbers, times and privacy parameters as text.

const grouped = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const rounded = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 3 });
export const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
export const clockSeconds = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
export const day = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });
export const month = new Intl.DateTimeFormat("en-GB", { month: "short", year: "numeric" });
export const dayAndClock = new Intl.DateTimeFormat("en-GB", {
  day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit",
});

/**
 * @param {Intl.DateTimeFormat} format
 * @param {number} seconds since 1970
 */
export const atSecond = (format, seconds) => format.format(new Date(seconds * 1000));

/** @param {string} text */
const minus = (text) => text.replace("-", "−");

/** @param {number} number */
export const whole = (number) => minus(grouped.format(Math.round(number) || 0)); // "|| 0" turns −0 into 0

/**
 * @param {number} number
 * @param {string} noun whose plural takes an s
 */
export const counted = (number, noun) => `${whole(number)} ${noun}${number === 1 ? "" : "s"}`;

/**
 * @param {number} share
 * @param {number} decimals
 */
export function percent(share, decimals) {
  const text = (100 * share).toFixed(decimals);
  return minus(Number(text) === 0 ? (0).toFixed(decimals) : text);
}

/**
 * A change, with its sign.
 * @param {number} share
 * @param {number} decimals
 */
export function signedPercent(share, decimals) {
  const text = percent(share, decimals);
  return share > 0 ? `+${text}` : text;
}

/**
 * The number of decimals at which a percentage shows two digits of the typical error.
 * @param {number[]} standardErrors
 */
export function decimalsFor(standardErrors) {
  const typical = [...standardErrors].sort((a, b) => a - b)[Math.floor(standardErrors.length / 2)] * 100;
  return typical > 0 ? Math.min(8, Math.max(0, 1 - Math.floor(Math.log10(typical)))) : 2;
}

/** @param {string} epsilon a number or fraction, such as "1/2" */
function toNumber(epsilon) {
  const [numerator, denominator = "1"] = epsilon.split("/");
  return Number(numerator) / Number(denominator);
}

/**
 * The exact fraction if it is short, else rounded; the plan file has it in full.
 * @param {string} epsilon
 */
export function epsilonInShort(epsilon) {
  return epsilon.length <= 6 ? `ε = ${epsilon}` : `ε ≈ ${Number(toNumber(epsilon).toPrecision(4))}`;
}

/**
 * What ε guarantees, in the same words as on the command line.
 * @param {string} epsilon
 */
export function epsilonInWords(epsilon) {
  const factor = Math.exp(toNumber(epsilon));
  const times = factor < 1e15 ? rounded.format(factor) : `e^${epsilon}`;
  return `Any report is at most ${times} times as likely under one value as under any other.`;
}

/**
 * What one report reveals: the success of the best guess with the report and without it.
 * @param {{ attackability: number, guessed: string, choices: number }} status
 */
export function guessInWords({ attackability, guessed, choices }) {
  const informed = attackability > 0.999 ? "over 99.9" : rounded.format(100 * attackability);
  const blind = rounded.format(100 / choices);
  return `Someone who sees a report guesses ${guessed} correctly ${informed}\u00a0% of the time, compared with `
    + `${blind}\u00a0% without it, if all values are equally likely.`;
}
