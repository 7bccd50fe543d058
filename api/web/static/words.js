// Words, numbers and times as the pages of a board write them (words.py).

const language = document.documentElement.lang;
const { default: WORDS } = await import(`./words.${language}.js`); // of words.json, made by the service
const MONTHS = WORDS.months.split("|");
const LOCALE = language === "en" ? "en-GB" : language;
const zone = known(document.body.dataset.zone ?? "UTC"); // of the tournament
const CLOCK = new Intl.DateTimeFormat("en-GB", {
  ...{ timeZone: zone, year: "numeric", month: "numeric", day: "numeric" },
  ...{ hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23", timeZoneName: "longOffset" },
});
const SHORT_DAY = new Intl.DateTimeFormat(LOCALE, { timeZone: zone, day: "numeric", month: "short", year: "numeric" });
const LOCAL_DAY = new Intl.DateTimeFormat(LOCALE, { day: "numeric", month: "long" });

/** UTC in place of a zone that this browser does not know. */
function known(name) {
  try {
    return new Intl.DateTimeFormat("en", { timeZone: name }).resolvedOptions().timeZone;
  } catch {
    return "UTC";
  }
}

/** The words of this key in the language of the page, with values in their places. */
export function word(key, values = {}) {
  return WORDS[key].replace(/\{(\w+)\}/g, (_, name) => values[name]);
}

/** The same as parts; values may be anything that can be drawn. */
export function wordParts(key, values) {
  return WORDS[key].split(/\{(\w+)\}/).map((part, number) => (number % 2 ? values[part] : part));
}

/** A number that was formatted in English, in the language of the page. */
export function readNumber(text) {
  return text.replace(".", WORDS.point);
}

/** The colour of a competitor who has none. */
export const NO_COLOR = "000000";

const INFINITE = String(Number.MAX_SAFE_INTEGER); // a quotient by 0

/** A total, given as text of digits or a BigInt, in the notation of its unity: with a real minus, and digits in groups
 * from five digits on. `Words.number` of words.py writes the same. */
export function numberText(number, { decimals, time, quotient } = {}) {
  const size = String(number).replace("-", "");
  const text = quotient && size === INFINITE ? "∞" : time ? clockText(BigInt(size), time === "ms" ? 1000n : 1n) : decimalText(size, decimals ?? 0);
  return String(number).startsWith("-") ? `\u2212${text}` : text;
}

function decimalText(digits, decimals) {
  const padded = decimals ? digits.padStart(decimals + 1, "0") : digits;
  const whole = padded.slice(0, padded.length - decimals);
  const grouped = whole.length > 4 ? whole.replace(/\B(?=(\d{3})+$)/g, "\u202f") : whole;
  return decimals ? grouped + WORDS.point + padded.slice(-decimals) : grouped;
}

/** Hours, minutes and seconds of a number of seconds or milliseconds: `second` of them are a second. */
function clockText(size, second) {
  const [minutes, seconds] = [size / second / 60n, (size / second) % 60n];
  const rest = String(size % second).padStart(3, "0").replace(/0+$/, "");
  const two = (number) => String(number).padStart(2, "0");
  const whole = minutes < 60n ? String(minutes) : `${minutes / 60n}:${two(minutes % 60n)}`;
  return `${whole}:${two(seconds)}${rest && WORDS.point + rest}`;
}

/** A moment in the zone of the tournament. */
export function timeText(date) {
  const { hour, minute, timeZoneName } = partsOf(date);
  const [, sign, hours, minutes] = /([+-])(\d+):(\d+)/.exec(timeZoneName) ?? [];
  const offset = Number(hours) || Number(minutes) ? `${sign.replace("-", "\u2212")}${Number(hours)}${minutes === "00" ? "" : `:${minutes}`}` : "";
  return word("time", { day: dateText(date), clock: `${hour}:${minute}`, zone: `UTC${offset}` });
}

/** The same moment by the reader's clock, to be written after it; empty if the clocks agree. */
export function localText(date) {
  const { day, hour, minute } = partsOf(date);
  const two = (number) => String(number).padStart(2, "0");
  const sameDay = date.getDate() === Number(day);
  const clock = `${two(date.getHours())}:${two(date.getMinutes())}`;
  if (sameDay && clock === `${hour}:${minute}`) return "";
  return ` (${word("local_time", { clock: sameDay ? clock : `${LOCAL_DAY.format(date)}, ${clock}` })})`;
}

/** When something took place: the day alone for its first and its last second, which stand for a day without a time;
 * otherwise the moment, also by the reader's clock. */
export function whenText(date) {
  const { hour, minute, second } = partsOf(date);
  if (["000000", "235959"].includes(hour + minute + second)) return dateText(date);
  return timeText(date) + localText(date);
}

/** A day in that zone. */
export function dateText(date) {
  const { day, month, year } = partsOf(date);
  return word(Number(day) === 1 ? "first_day" : "day", { day: Number(day), month: MONTHS[month - 1], year: Number(year) });
}

/** The same, in short. */
export function dayText(date) {
  return SHORT_DAY.format(date);
}

function partsOf(date) {
  return Object.fromEntries(CLOCK.formatToParts(date).map(({ type, value }) => [type, value]));
}
