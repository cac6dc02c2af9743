// Numbers, times and ε as words.

const grouped = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
export const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
export const clockSeconds = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
export const day = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });
export const month = new Intl.DateTimeFormat("en-GB", { month: "short", year: "numeric" });
export const dayAndClock = new Intl.DateTimeFormat("en-GB", {
  day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit",
});

export const atSecond = (format, seconds) => format.format(new Date(seconds * 1000));
const minus = (text) => text.replace("-", "−");
export const whole = (number) => minus(grouped.format(Math.round(number) || 0)); // "|| 0" because −0 is written "-0"
export const counted = (number, noun) => `${whole(number)} ${noun}${number === 1 ? "" : "s"}`;

export function percent(share, decimals) {
  const text = (100 * share).toFixed(decimals);
  return minus(Number(text) === 0 ? (0).toFixed(decimals) : text);
}

/** Decimals of a percentage that show two digits of the typical error. */
export function decimalsFor(standardErrors) {
  const typical = [...standardErrors].sort((a, b) => a - b)[Math.floor(standardErrors.length / 2)] * 100;
  return typical > 0 ? Math.min(8, Math.max(0, 1 - Math.floor(Math.log10(typical)))) : 2;
}

function epsilonAsNumber(text) {
  const [numerator, denominator = "1"] = text.split("/");
  return Number(numerator) / Number(denominator);
}

/** The exact fraction, unless it is long; its file has it in full. */
export function epsilonInShort(text) {
  return text.length <= 6 ? `ε = ${text}` : `ε ≈ ${Number(epsilonAsNumber(text).toPrecision(4))}`;
}

export function epsilonInWords(text) {
  const factor = Math.exp(epsilonAsNumber(text));
  const times = factor < 1e15 ? Number(factor.toPrecision(3)).toLocaleString("en-US") : `e^${text}`;
  return `Whatever a user sent, no value makes that report more than ${times} times as likely as another.`;
}
