// What a window does that a page without script does not: it keeps the page as the server would make
// it now, says how long ago times were, and takes the code from the link. Every page works without.

const policy = globalThis.trustedTypes?.createPolicy("console", { createHTML: (text) => text });
const trusted = (text) => policy?.createHTML(text) ?? text;

const door = document.getElementById("door");
if (door) {
  const code = location.hash.slice(1);
  // The history keeps the link without the code.
  if (location.hash) history.replaceState(null, "", location.pathname);
  if (code) {
    door.elements.code.value = code;
    door.submit();
  }
}

document.addEventListener("keydown", (event) => {
  const find = document.getElementById("find");
  if (event.key !== "/" || !find || event.target.closest("input, textarea, select")) return;
  event.preventDefault();
  find.focus();
});

for (const button of document.querySelectorAll(".copy")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    const field = button.previousElementSibling.querySelector("input, textarea");
    field.select();
    await navigator.clipboard?.writeText(field.value).then(() => (button.textContent = "Copied"), () => {});
  });
}

function ago(time) {
  const seconds = Math.round((Date.now() - Date.parse(time)) / 1000);
  const units = [[86_400, "d"], [3_600, "h"], [60, "min"], [1, "s"]];
  const [size, unit] = units.find(([size]) => Math.abs(seconds) >= size) ?? [1, "s"];
  const text = `${Math.abs(Math.trunc(seconds / size))} ${unit}`;
  return seconds < 0 ? `in ${text}` : `${text} ago`;
}

function show_ages() {
  for (const each of document.querySelectorAll("main time[datetime]")) each.dataset.ago = ago(each.dateTime);
}

/** Replaces the main part, and keeps the focus and the places of what scrolls. */
function replace(html) {
  const focus = document.activeElement?.closest("main") ? document.activeElement.id || document.activeElement.getAttribute("href") : null;
  const places = [...document.querySelectorAll("main .wide")].map((each) => each.scrollLeft);
  const held = document.createElement("template");
  held.innerHTML = trusted(html);
  document.getElementById("main").replaceWith(held.content);
  document.querySelectorAll("main .wide").forEach((each, at) => (each.scrollLeft = places[at] ?? 0));
  if (focus) document.querySelector(`main [id="${CSS.escape(focus)}"], main [href="${CSS.escape(focus)}"]`)?.focus({ preventScroll: true });
  show_ages();
}

// A page that takes long to make is asked for more seldom.
const SHARE = 20;
let took = 0;

const is_changed = (input) => input.value !== input.defaultValue || input.checked !== input.defaultChecked;
const is_busy = () =>
  document.activeElement?.matches("main input, main select, main textarea") ||
  [...document.querySelectorAll("main input, main textarea")].some(is_changed) ||
  [...document.querySelectorAll("main select")].some((select) => !select.selectedOptions[0]?.defaultSelected && select.selectedIndex > 0) ||
  document.getSelection()?.toString();
const pause = (ms) => new Promise((done) => setTimeout(done, ms));
const visible = () => new Promise((done) => {
  if (!document.hidden) return done();
  document.addEventListener("visibilitychange", function look() {
    if (document.hidden) return;
    document.removeEventListener("visibilitychange", look);
    done();
  });
});

async function live() {
  const sign = document.getElementById("live");
  for (;;) {
    const { tag, pause: asked } = document.getElementById("main")?.dataset ?? {};
    if (!tag || !sign) return sign && (sign.textContent = "");
    await pause(Math.max(asked, took * SHARE));
    await visible();
    const begun = performance.now();
    try {
      const answer = await fetch(location, { headers: { "x-shown": tag }, cache: "no-store" });
      if (answer.status === 429) continue;
      const is_page = answer.status === 204 || answer.headers.get("content-type")?.startsWith("text/html");
      if (answer.status === 401 || !is_page) return (sign.textContent = "ended; ask for a new link");
      sign.textContent = "live";
      const html = await answer.text();
      took = performance.now() - begun;
      while (html && is_busy()) await pause(500);
      if (html) replace(html);
    } catch {
      sign.textContent = "no answer; after a restart, ask for a new link";
    }
  }
}

show_ages();
setInterval(show_ages, 10_000);
live();
