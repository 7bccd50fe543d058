// Numbers and times as the pages of the service write them.

const MONTHS = [
  ...["January", "February", "March", "April", "May", "June"],
  ...["July", "August", "September", "October", "November", "December"],
];

/** The colour of a competitor who has none. */
export const NO_COLOR = "000000";

/** A total, given as text of digits or a BigInt, in the notation of its unity: with a real minus, and from five digits
 * on in groups. `number_text` of page.py writes the same. */
export function numberText(number, { decimals, time } = {}) {
  const size = String(number).replace("-", "");
  const text = time ? clockText(BigInt(size), time === "ms" ? 1000n : 1n) : decimalText(size, decimals ?? 0);
  return String(number).startsWith("-") ? `\u2212${text}` : text;
}

function decimalText(digits, decimals) {
  const padded = decimals ? digits.padStart(decimals + 1, "0") : digits;
  const whole = padded.slice(0, padded.length - decimals);
  const grouped = whole.length > 4 ? whole.replace(/\B(?=(\d{3})+$)/g, "\u202f") : whole;
  return decimals ? `${grouped}.${padded.slice(-decimals)}` : grouped;
}

/** Hours, minutes and seconds of a number of seconds or milliseconds: `second` of them are a second. */
function clockText(size, second) {
  const [minutes, seconds] = [size / second / 60n, (size / second) % 60n];
  const rest = String(size % second).padStart(3, "0").replace(/0+$/, "");
  const two = (number) => String(number).padStart(2, "0");
  const whole = minutes < 60n ? String(minutes) : `${minutes / 60n}:${two(minutes % 60n)}`;
  return `${whole}:${two(seconds)}${rest && `.${rest}`}`;
}

/** A moment in UTC. */
export function timeText(date) {
  const two = (number) => String(number).padStart(2, "0");
  const day = `${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]} ${date.getUTCFullYear()}`;
  return `${day}, ${two(date.getUTCHours())}:${two(date.getUTCMinutes())} UTC`;
}

/** The same moment by the clock of the reader, if that differs: to be read after it. */
export function localText(date) {
  if (date.getTimezoneOffset() === 0) return "";
  const two = (number) => String(number).padStart(2, "0");
  const sameDay = date.getDate() === date.getUTCDate();
  const day = sameDay ? "" : `${date.getDate()} ${MONTHS[date.getMonth()]}, `;
  return ` (${day}${two(date.getHours())}:${two(date.getMinutes())} your time)`;
}

/** A day in UTC. */
export function dateText(date) {
  return timeText(date).split(",")[0];
}

/** A day in UTC, in short. */
export function dayText(date) {
  return `${date.getUTCDate()} ${MONTHS[date.getUTCMonth()].slice(0, 3)} ${date.getUTCFullYear()}`;
}
