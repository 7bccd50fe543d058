// The documentation: every command gets a button that copies it, and the operations a box that searches them.

const SHOWN_MS = 2000;
const said = document.getElementById("said");

for (const command of document.querySelectorAll("[data-copied]")) {
  const button = document.createElement("button");
  button.type = "button";
  button.setAttribute("aria-label", `Copy: ${command.dataset.copied}`);
  button.textContent = "Copy";
  button.addEventListener("click", () => copy(command.querySelector("pre"), button));
  command.classList.add("copies");
  command.prepend(button);
}

/** Copies the content of `text`, or selects it, to be copied by hand. */
async function copy(text, button) {
  const told = (await isCopied(text)) ? "Copied" : "Selected";
  button.textContent = said.textContent = told;
  setTimeout(() => {
    button.textContent = "Copy";
    said.textContent = "";
  }, SHOWN_MS);
}

async function isCopied(text) {
  try {
    await navigator.clipboard.writeText(text.textContent); // allowed only over TLS, or from this machine
    return true;
  } catch {
    getSelection().selectAllChildren(text);
    return document.execCommand("copy");
  }
}

const heading = document.getElementById("operations");
if (heading) {
  const operations = [...document.querySelectorAll(".operation")].map((shown) => [shown, wordsOf(shown)]);
  const search = document.createElement("input");
  search.type = "search";
  search.className = "search";
  search.placeholder = "Search: a path, a field, a word";
  search.setAttribute("aria-label", "Search the operations");
  search.addEventListener("input", () => find(search.value.toLowerCase().split(/\s+/), operations));
  heading.after(search);
}

/** What an operation is called and takes. */
function wordsOf(operation) {
  const said = operation.querySelectorAll("summary > *, dt, dd");
  return [...said].map((one) => one.textContent.toLowerCase()).join(" ");
}

/** Shows only the operations that have all the words. */
function find(words, operations) {
  for (const [shown, text] of operations) {
    shown.hidden = !words.every((word) => text.includes(word));
  }
  const found = operations.filter(([shown]) => !shown.hidden);
  for (const section of document.querySelectorAll("section:has(> .operation)")) {
    section.hidden = !section.querySelector(".operation:not([hidden])");
  }
  said.textContent = `${found.length} of ${operations.length} operations`;
}
