// The documentation: every command gets a button that copies it.

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
