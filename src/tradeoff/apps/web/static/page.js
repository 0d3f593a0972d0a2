// Everything works without this file. It adds keys and sliders, and keeps an answer from being sent twice.
"use strict";

const shortcuts = document.getElementById("shortcuts");
const REMEMBERED = "tradeoff-shortcuts";

function remembered() {
  try { return localStorage.getItem(REMEMBERED) !== "off"; } catch { return true; } // storage may be forbidden
}

function remember(on) {
  try { localStorage.setItem(REMEMBERED, on ? "on" : "off"); } catch { /* then only for this page */ }
}

// --- keys -------------------------------------------------------------------

function typing(element) {
  if (element.type === "radio") return false;
  return element.isContentEditable || ["INPUT", "SELECT", "TEXTAREA"].includes(element.tagName);
}

// Of a menu, the first number is the best and the second the worst; then the button has the focus, and Enter sends it.
const radios = (name) => [...document.querySelectorAll(`.pick input[name="${name}"]`)];

function choose(key) {
  const free = ["best", "worst"].find((name) => radios(name).length && !radios(name).some((one) => one.checked));
  const radio = free && radios(free).find((one) => one.value === key);
  if (!radio) return false;
  radio.checked = true;
  radio.dispatchEvent(new Event("change", { bubbles: true }));
  if (!["best", "worst"].some((name) => radios(name).length && !radios(name).some((one) => one.checked))) {
    document.querySelector("button.next").focus({ preventScroll: true });
  }
  return true;
}

// Says what is chosen and what is missing.
function updateHint() {
  const hint = document.querySelector(".hint");
  if (!hint) return;
  const names = [...document.querySelectorAll(".menu .called")].map((name) => name.textContent);
  const ends = ["best", "worst"].filter((name) => radios(name).length);
  const missing = ends.filter((name) => !radios(name).some((radio) => radio.checked));
  const chosen = ends.filter((name) => !missing.includes(name)).map((name) => {
    const radio = radios(name).find((one) => one.checked);
    return `${name === "best" ? "Best" : "Worst"}: ${names[radio.value - 1]}.`;
  });
  const next = missing.length ? [`${chosen.length ? "Now choose" : "Choose"} the ${missing.join(" and the ")}.`] : [];
  hint.textContent = [...chosen, ...next].join(" ");
}

document.addEventListener("change", (event) => { // one option cannot be both the best and the worst
  if (!event.target.matches(".pick input")) return;
  for (const other of document.querySelectorAll(".pick input")) {
    if (other.name !== event.target.name && other.value === event.target.value) other.checked = false;
  }
  updateHint();
});

document.addEventListener("click", (event) => { // a tap on a column chooses it, and another tap undoes that
  const cell = event.target.closest(".menu thead th, .menu tbody td");
  if (!cell || !cell.cellIndex) return;
  const place = String(cell.cellIndex);
  const chosen = [...radios("best"), ...radios("worst")].find((radio) => radio.checked && radio.value === place);
  if (chosen) chosen.checked = false;
  else choose(place);
  updateHint();
});
window.addEventListener("pageshow", updateHint); // a browser may have kept what was chosen

// A key that is pressed twice in a row would answer the next question too, before anybody has read it.
const UNSEEN = 300; // milliseconds in which a page is on the screen and not yet seen
let seen = false;

if (shortcuts) {
  requestAnimationFrame(() => setTimeout(() => {
    seen = true;
    shortcuts.dataset.seen = "";
  }, UNSEEN));
  shortcuts.checked = remembered();
  shortcuts.closest("label").hidden = false;
  shortcuts.addEventListener("change", () => remember(shortcuts.checked));
  document.addEventListener("keydown", (event) => {
    if (!shortcuts.checked || event.repeat || event.ctrlKey || event.altKey || event.metaKey) return;
    if (typing(event.target) && event.target !== shortcuts) return;
    const key = event.key.toLowerCase();
    const details = document.querySelector(`details[data-key="${CSS.escape(key)}"]`);
    if (details) {
      event.preventDefault();
      details.open = !details.open;
      if (details.open) details.scrollIntoView({ block: "start" });
      return;
    }
    if (choose(key)) {
      event.preventDefault();
      return;
    }
    const button = [...document.querySelectorAll("button[data-keys]")].find((one) => one.dataset.keys.split(" ").includes(key));
    if (button && !button.disabled) {
      event.preventDefault();
      if (seen) button.form.requestSubmit(button);
    }
  });
}

// --- sending once -----------------------------------------------------------

function setDisabled(on) {
  for (const button of document.querySelectorAll("form button")) button.disabled = on;
}

let sent = false;
document.addEventListener("submit", (event) => {
  if (sent) {
    event.preventDefault();
    return;
  }
  sent = true;
  setTimeout(() => setDisabled(true)); // afterwards: a button that is disabled would not be sent
});
window.addEventListener("pageshow", (event) => { // back from the next page, which the browser had kept
  if (event.persisted) {
    sent = false;
    setDisabled(false);
  }
});

// --- the progress of a study ------------------------------------------------

const refresh = document.getElementById("refresh");
if (refresh) { // without scripts the page reloads itself; here it reloads when something has changed
  refresh.closest("label").hidden = false;
  const { seconds, version, address } = refresh.dataset;
  setInterval(async () => {
    if (!refresh.checked) return;
    const reply = await fetch(address).catch(() => null);
    if (reply?.ok && (await reply.text()) !== version) location.reload();
  }, 1000 * Number(seconds));
}

const heading = document.querySelector("[data-focus]");
if (heading) heading.focus({ preventScroll: true });

for (const link of document.querySelectorAll("a.whole")) { // to be read and copied
  link.textContent = link.href;
  if (!navigator.clipboard) continue; // not on a page that is sent without encryption
  const copy = document.createElement("button");
  copy.className = "quiet";
  copy.textContent = "Copy";
  copy.addEventListener("click", async () => {
    await navigator.clipboard.writeText(link.href);
    copy.textContent = "Copied";
  });
  link.after(" ", copy);
}

// --- weights to try ---------------------------------------------------------

const weigh = document.querySelector("form.weigh");
if (weigh) {
  const list = document.querySelector(".weighed");
  const sliders = [...weigh.querySelectorAll("input[type=range]")];
  const limits = [...weigh.querySelectorAll("input[type=number]")];
  const numbers = (text) => text.split(" ").map(Number);
  const kinds = [...weigh.querySelectorAll("select")];
  const rows = [...list.children].map((row) => ({
    row, gains: numbers(row.dataset.gains), amounts: numbers(row.dataset.amounts), kinds: row.dataset.kinds.split(" "),
  }));
  // Until something is moved, the list has the order of the ranking.
  const moved = () => [...sliders, ...limits].some((field) => field.value !== field.defaultValue)
    || kinds.some((choice) => ![...choice.options].every((option) => option.selected === option.defaultSelected));
  let touched = false;
  const rank = () => {
    const weights = sliders.map((slider) => Number(slider.value));
    const total = weights.reduce((sum, weight) => sum + weight, 0);
    sliders.forEach((slider, i) => {
      slider.setAttribute("aria-valuetext", total ? `${Math.round(100 * weights[i] / total)}% of all importance` : "nothing matters");
    });
    touched ||= moved();
    if (!touched) return;
    for (const one of rows) {
      one.worth = one.gains.reduce((sum, gain, i) => sum + gain * (total ? weights[i] : 1), 0);
      one.within = kinds.every((choice, i) => !choice.value || choice.value === one.kinds[i]) && limits.every((field, i) => {
        const limit = field.valueAsNumber;
        return Number.isNaN(limit) || (one.amounts[i] - limit) * Number(field.dataset.sign) >= -1e-9 * Math.max(Math.abs(limit), 1);
      });
    }
    rows.sort((a, b) => b.within - a.within || b.worth - a.worth);
    const most = rows[0].worth || 1;
    rows.forEach((one, place) => {
      const share = Math.min(100 * one.worth / most, 100);
      one.row.hidden = place >= Number(list.dataset.shown) || !one.within;
      one.row.querySelector(".worth").textContent = `${Math.round(share)}%`;
      one.row.querySelector(".fill").setAttribute("width", Math.max(share, 0.8).toFixed(1));
    });
    list.append(...rows.map((one) => one.row));
    const left = rows.filter((one) => one.within).length;
    const said = left === rows.length ? "" : left ? `${left} of ${rows.length} meet these limits.` : "Nothing meets these limits.";
    const status = document.querySelector(".left");
    if (status.textContent !== said) status.textContent = said;
  };
  weigh.querySelector("button").hidden = true;
  weigh.addEventListener("submit", (event) => event.preventDefault());
  weigh.addEventListener("input", rank);
  window.addEventListener("pageshow", rank); // a browser may have kept the sliders where they were
}
