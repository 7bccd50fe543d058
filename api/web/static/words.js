// Numbers and times as the pages of the service write them.

const MONTHS = [
  ...["January", "February", "March", "April", "May", "June"],
  ...["July", "August", "September", "October", "November", "December"],
];

/** A total, given as text of digits or a BigInt: with a real minus, and from five digits on in groups. */
export function numberText(number) {
  const text = String(number);
  const digits = text.replace("-", "");
  const grouped = digits.length > 4 ? digits.replace(/\B(?=(\d{3})+$)/g, "\u202f") : digits;
  return text.startsWith("-") ? `\u2212${grouped}` : grouped;
}

/** A moment in UTC. */
export function timeText(date) {
  const two = (number) => String(number).padStart(2, "0");
  const day = `${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]} ${date.getUTCFullYear()}`;
  return `${day}, ${two(date.getUTCHours())}:${two(date.getUTCMinutes())} UTC`;
}

/** A day in UTC, in short. */
export function dayText(date) {
  return `${date.getUTCDate()} ${MONTHS[date.getUTCMonth()].slice(0, 3)} ${date.getUTCFullYear()}`;
}
