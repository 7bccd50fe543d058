// Makes the pages of the console live: what is shown is fetched again when the stream reports an event. Fields that can
// be filled in are never replaced. Everything also works without scripts.

import { Stream } from "./stream.js";

const PAUSE = 1000; // milliseconds between two fetches
const LOOK_PAUSE = 400; // milliseconds after the last key

const told = document.body.dataset;
const stream = new Stream(() => {
  refresh(); // to sign in, if the session has ended; and the stream may have no room for us
  listen();
});
const said = document.getElementById("said");
let wanted = false;
let fetching = false;

/** The current page, or the answer to a form. XMLHttpRequest parses it; its scripts do not run. */
function page(address = location.href, form = null) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open(form ? "POST" : "GET", address);
    request.responseType = "document";
    request.addEventListener("load", () => (request.status === 200 ? resolve(request.response) : reject(request.status)));
    request.addEventListener("error", () => reject(0));
    request.send(form);
  });
}

async function refresh() {
  wanted = true;
  if (fetching) return;
  fetching = true;
  while (wanted) {
    wanted = false;
    try {
      const now = await page();
      for (const part of document.querySelectorAll("[data-live]")) replace(part, now.getElementById(part.id));
    } catch (status) {
      if (status === 401 || status === 404) return location.reload();
    }
    await new Promise((resolve) => setTimeout(resolve, PAUSE));
  }
  fetching = false;
}

/** Replaces a part by its current version, if it has changed. A focused link keeps the focus. */
function replace(part, now) {
  if (!now || part.isEqualNode(now)) return;
  const links = [...part.querySelectorAll("a")];
  const held = links.indexOf(document.activeElement);
  part.replaceChildren(...document.importNode(now, true).childNodes);
  if (held >= 0) part.querySelectorAll("a")[held]?.focus();
  said.textContent = "The page shows what has just happened.";
}

function listen() {
  const heard = {
    reset: () => location.reload(),
    "caught-up": () => tell(true),
    error: () => {
      tell(false);
      stream.tryAgain();
    },
  };
  for (const kind of told.kinds.split(" ")) {
    heard[kind] = ({ lastEventId }) => {
      told.after = lastEventId;
      refresh();
    };
  }
  stream.open(`${told.events}?after=${told.after}`, heard);
}

function tell(listens) {
  document.body.classList.toggle("lost", !listens);
  document.body.classList.toggle("listens", listens);
}

// ── Forms ───────────────────────────────────────────────────────────────────────────────────────────────

/** Makes each name a button that adds its id to the field for ids. */
function addChoices(list) {
  const field = list.closest("form").querySelector('[name="participants"], [name="add"]');
  if (!field) return;
  for (const item of list.querySelectorAll("[data-id]")) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = item.querySelector(".chosen").textContent;
    button.addEventListener("click", () => {
      const ids = field.value.split(",").map((id) => id.trim());
      field.value = [...ids.filter((id) => id && id !== item.dataset.id), item.dataset.id].join(", ");
      said.textContent = `${button.textContent} is added.`;
    });
    item.querySelector(".chosen").replaceChildren(button);
  }
}

/** Adds an input for a file that fills the text field; all but CSV is encoded in base64, which nobody wants to see. */
function addFile(field) {
  const isLogo = field.dataset.file === "logo";
  const isText = field.dataset.file === "csv";
  const text = field.querySelector("textarea");
  const input = document.createElement("input");
  input.type = "file";
  if (isLogo || isText) input.accept = isLogo ? "image/png" : ".csv,text/csv";
  input.setAttribute("aria-label", isLogo ? "A file with the logo" : "A file with them");
  input.addEventListener("change", async () => {
    const [file] = input.files;
    const isTooLarge = file.size > (field.dataset.most ?? Infinity);
    input.setCustomValidity(isTooLarge ? field.dataset.beyond.replace("FILE", file.name) : "");
    if (!input.reportValidity()) return;
    const name = field.querySelector('[name="file_name"]');
    if (name) name.value = file.name;
    text.value = isText ? await file.text() : await base64(file);
  });
  text.hidden = !isText;
  text.before(input);
}

/** Adds a picker for a colour next to the field for its digits. */
function addColour(field) {
  const input = document.createElement("input");
  input.type = "color";
  input.value = `#${field.value || field.placeholder}`;
  input.setAttribute("aria-label", "Pick a colour");
  input.addEventListener("input", () => (field.value = input.value.slice(1)));
  field.after(input);
}

/** Shows the table as the results in the boxes make it, while they are typed. */
function showTable(sheet) {
  let timer = 0;
  let asked = 0;
  sheet.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(async () => {
      const mine = ++asked;
      const form = new URLSearchParams(new FormData(sheet));
      form.set("look", "1");
      const now = await page(sheet.action, form).catch(() => null);
      const tables = now?.getElementById("foreseen");
      if (tables && mine === asked) {
        sheet.querySelector("#foreseen").replaceChildren(...document.importNode(tables, true).childNodes);
      }
    }, LOOK_PAUSE);
  });
}

/** The bytes of a file, in base64. */
function base64(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.addEventListener("load", () => resolve(reader.result.slice(reader.result.indexOf(",") + 1)));
    reader.addEventListener("error", () => reject(reader.error));
    reader.readAsDataURL(file);
  });
}

for (const list of document.querySelectorAll("form .ids")) addChoices(list);
for (const field of document.querySelectorAll("[data-file]")) addFile(field);
for (const field of document.querySelectorAll('[name="color"], [name="accent"]')) addColour(field);
const zone = document.querySelector('form[action$="/tournaments/new"] [name="zone"]');
if (zone && !zone.value) zone.value = Intl.DateTimeFormat().resolvedOptions().timeZone;
for (const sheet of document.querySelectorAll("[data-sheet]")) showTable(sheet);
document.querySelector(".summary")?.focus();
if (told.events && document.querySelector("[data-live]")) listen();
