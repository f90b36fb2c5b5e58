// Shows the screen of one phone and sends input to it. Keeps the token of the session in memory
// only. Does not repeat an input.

const part = {};
for (const each of document.querySelectorAll("[id]")) part[each.id] = each;
const { screen, picture, text, save, wake } = part;
const main = document.querySelector("main");

const KEYS = {
  Enter: "enter", Backspace: "backspace", Escape: "back",
  ArrowUp: "up", ArrowDown: "down", ArrowLeft: "left", ArrowRight: "right",
};
/** Where Option writes characters. Elsewhere, Alt opens the menus of the browser. */
const IS_APPLE = /^(Mac|iP)/.test(navigator.platform);
const ICON = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 8 8">
  <path fill="#48f" d="M2 0h4v8H2"/></svg>`;

/** The session that the page shows, or null. */
let current = null;
/** The gesture of the first finger, or null. */
let finger = null;

addEventListener("hashchange", open);
document.addEventListener("visibilitychange", () => document.hidden && current?.poll?.abort("hidden"));
setInterval(() => current?.mode && tick(current), 1_000);
part.icon.href = URL.createObjectURL(new Blob([ICON], { type: "image/svg+xml" }));
open();

function open() {
  const token = location.hash.slice(1);
  if (!token && current) return;
  // Chromium does not list an address in its history if another one replaces it at once.
  if (token) location.replace("#");
  history.replaceState(null, "", location.pathname + location.search);
  clear();
  if (!token) return explain();
  current = { token, name: "the phone", ends: NaN, skew: 0, answered: Date.now(), queue: [] };
  part.message.hidden = true;
  part.name.textContent = "Phone";
  part.device.textContent = "";
  part.stage.hidden = false;
  say("connecting", "Connecting");
  watch(current);
  learn(current);
}

/** Removes what belongs to a session. */
function clear() {
  current?.poll?.abort("closed");
  if (current?.url) URL.revokeObjectURL(current.url);
  current = finger = null;
  picture.removeAttribute("src");
  save.removeAttribute("href");
  picture.hidden = part.stage.hidden = part.controls.hidden = save.hidden = wake.hidden = true;
  picture.alt = text.value = part.session.textContent = part.note.textContent = "";
  for (const name of ["role", "tabindex", "aria-label"]) screen.removeAttribute(name);
}

function explain() {
  const why = "If you had one, open the whole link again: the page does not store it.";
  const remedy = "If you have none, ask an AI agent for a link to the screen of a phone.";
  stop("none", "No session", "This page needs a link", why, remedy);
}

function end(words, why) {
  const had_focus = main.contains(document.activeElement);
  clear();
  const remedy = "Ask whoever gave you this link for a new one.";
  stop("ended", `Ended: ${words}`, "This session has ended", why, remedy);
  if (had_focus) part.message.focus();
}

function stop(state, words, title, why, remedy) {
  say(state, words);
  part.title.textContent = document.title = title;
  part.why.textContent = why;
  part.remedy.textContent = remedy;
  part.message.hidden = false;
}

/** Ends the session if the status says that the server no longer knows it. */
function ends(run, status) {
  if (status === 401 && now(run) > run.ends - 2_000) expire();
  else if (status === 401) {
    end("the link opens nothing", "Its time is over, a right was taken away, or the server was restarted; or the link is not whole.");
  } else if (status === 403 || status === 404) {
    end("the link does not open this phone now", "The phone or the permission for it was taken away.");
  } else return false;
  return true;
}

function expire() {
  end("the time is over", "Each link works for a limited time.");
}

/** Asks what the session is, until the server says it. */
async function learn(run) {
  for (;;) {
    const sent = Date.now();
    const { status, data } = await ask(run, "screen/session");
    if (run !== current || ends(run, status)) return;
    if (status === 200 && data) {
      run.skew = Date.parse(data.now) - (sent + Date.now()) / 2 || 0;
      return introduce(run, data);
    }
    await sleep(2_000);
  }
}

function introduce(run, { name, device_id, mode, expires_at }) {
  Object.assign(run, { name: name || device_id, mode, ends: Date.parse(expires_at ?? "") });
  const title = `Screen of ${run.name}`;
  part.name.textContent = run.name;
  part.device.textContent = device_id;
  document.title = title;
  if (!picture.hidden) describe(run);
  if (mode === "control") {
    part.controls.hidden = false;
    Object.assign(screen, { role: "application", tabIndex: 0, ariaLabel: title });
  }
  tick(run);
}

function tick(run) {
  if (now(run) >= run.ends) return expire();
  const may = run.mode === "control" ? "You can watch and touch." : "You can watch; you cannot touch.";
  put(part.session, `${may}\n${time_left(run)}`);
}

function time_left(run) {
  if (Number.isNaN(run.ends)) return "";
  const minutes = Math.floor((run.ends - now(run)) / 60_000);
  const left = minutes > 1 ? `${minutes} minutes` : minutes ? "1 minute" : "under 1 minute";
  return `Ends at ${clock(run.ends).slice(0, 5)} (${left} left)`.replace(/ (?!\()/g, "\xa0");
}

/** Asks for pictures while the page can be seen. */
async function watch(run) {
  let after = 0;
  let pause = 1_000;
  while (run === current) {
    if (document.hidden) {
      await new Promise((done) => document.addEventListener("visibilitychange", done, { once: true }));
      continue;
    }
    const sent = Date.now();
    const { status, data, blob, number } = await ask(run, `screen/still?after=${after}`);
    if (run !== current || ends(run, status)) return;
    if (status === "hidden") continue;
    if (status) run.answered = now(run);
    if (blob && status === 200 && await paint(run, blob)) {
      after = number;
      pause = 1_000;
    } else if (status === 204) {
      // A server that stops can answer at once.
      await sleep(Date.now() - sent < 500 ? 500 : 0);
    } else if (run === current) {
      // The next picture is wanted even if it is the same.
      after = 0;
      const silence = `the server has not answered since ${clock(run.answered)}`;
      say("late", `No picture: ${status ? reason(status, data) : silence}`);
      const told = data && 1_000 * Math.min(data.retry_after_seconds ?? 1.5, 60);
      await sleep(told ?? pause);
      pause = told ? 1_000 : Math.min(2 * pause, 10_000);
    }
  }
}

function reason(status, data) {
  if (status === 200) return "the picture cannot be read";
  return data?.message ?? `the server answers with ${status}`;
}

/** Shows a picture, and returns true if it could be read. */
async function paint(run, blob) {
  const next = new Image();
  next.src = URL.createObjectURL(blob);
  const is_sound = await next.decode().then(() => true, () => false);
  if (!is_sound || run !== current) {
    URL.revokeObjectURL(next.src);
    return false;
  }
  if (run.url) URL.revokeObjectURL(run.url);
  run.url = picture.src = save.href = next.src;
  run.painted = run.answered;
  run.size = { width: next.naturalWidth, height: next.naturalHeight };
  main.style.setProperty("--ratio", run.size.width / run.size.height);
  picture.hidden = save.hidden = false;
  describe(run);
  const black = is_black(next) ? "Black here: the app forbids pictures, or the screen is off" : "";
  say("live", black ? `Live. ${black}` : "Live", black);
  if (!black && wake === document.activeElement) screen.focus();
  wake.hidden = !black || run.mode !== "control";
  return true;
}

function describe(run) {
  const time = clock(run.painted);
  picture.alt = `Screen of ${run.name}, picture of ${time}`;
  save.download = `${run.name} ${time.replaceAll(":", "-")}.png`;
}

/** Returns true if an image is black. There can be icons above a black app. */
function is_black(image) {
  const canvas = Object.assign(document.createElement("canvas"), { width: 16, height: 32 });
  const context = canvas.getContext("2d");
  context.drawImage(image, 0, 0, 16, 32);
  const { data } = context.getImageData(0, 0, 16, 32);
  let bright = 0;
  for (let at = 0; at < data.length; at += 4) bright += Math.max(data[at], data[at + 1], data[at + 2]) > 16;
  return bright < 16;
}

function say(state, words, above = words) {
  document.body.dataset.state = state;
  put(part.state, words);
  put(part.words, above);
}

screen.addEventListener("keydown", (event) => {
  if (current?.mode !== "control") return;
  const is_letter = [...event.key].length === 1;
  const is_shortcut = event.metaKey || event.ctrlKey || (event.altKey && !(is_letter && IS_APPLE));
  const is_text = is_letter && (!is_shortcut || event.getModifierState("AltGraph"));
  const selects = (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && /^a$/i.test(event.key);
  const key = selects ? "select_all" : !is_shortcut && KEYS[event.key];
  if (!is_text && !key) return;
  event.preventDefault();
  if (event.repeat && current.queue.length > 2) return;
  if (is_text) type(event.key, 50);
  else send({ key });
});

// A browser gives what is pasted to the selected text, and not to the picture that has the focus.
document.addEventListener("paste", (event) => {
  if (document.activeElement === screen) type(event.clipboardData.getData("text"));
});

part.form.addEventListener("submit", (event) => {
  event.preventDefault();
  if (current?.queue.some((entry) => entry.field)) return;
  text.value = clean(text.value);
  type(text.value, 0, true);
});

for (const button of document.querySelectorAll("[data-key]")) {
  button.addEventListener("click", () => send({ key: button.dataset.key }));
}

screen.addEventListener("pointerdown", (event) => {
  if (current?.mode !== "control" || !current.size) return;
  if (finger) finger.alone = false;
  if (event.button === 2) send({ key: "back" });
  if (!event.isPrimary || event.button) return;
  screen.setPointerCapture(event.pointerId);
  finger = { first: event, start: Date.now(), alone: true };
});

screen.addEventListener("pointerup", (event) => {
  if (event.pointerId !== finger?.first.pointerId) return;
  const { first, start, alone } = finger;
  finger = null;
  if (!alone || !current) return;
  const from = point(first);
  const milliseconds = Math.min(Math.max(Date.now() - start, 1), 5_000);
  mark(first);
  const far = Math.hypot(event.clientX - first.clientX, event.clientY - first.clientY);
  if (far > 10) send({ swipe: { from, to: point(event), milliseconds } });
  // A swipe to the same point is a long press.
  else send(milliseconds < 500 ? { touch: from } : { swipe: { from, to: from, milliseconds } });
});

screen.addEventListener("pointercancel", () => (finger = null));
screen.addEventListener("contextmenu", (event) => current?.mode === "control" && event.preventDefault());

screen.addEventListener("wheel", (event) => {
  // With Ctrl it is the zoom of the browser.
  if (current?.mode !== "control" || !current.size || event.ctrlKey) return;
  event.preventDefault();
  const last = current.queue.at(-1);
  const wheel = last?.wheel ?? { start: event, x: 0, y: 0 };
  // Some browsers count lines.
  wheel.x += event.deltaX * (event.deltaMode ? 30 : 1);
  wheel.y += event.deltaY * (event.deltaMode ? 30 : 1);
  if (!wheel.x && !wheel.y) return;
  const swipe = { ...swipe_of(wheel), milliseconds: 250 };
  if (last?.wheel) last.input.swipe = swipe;
  else send({ swipe }, 80, { wheel });
}, { passive: false });

/** Begins in the middle of the picture, where a finger has room. A shorter swipe would be a touch. */
function swipe_of({ start, x, y }) {
  const { left, top, width, height } = picture.getBoundingClientRect();
  const longer = Math.max(1, height / 20 / Math.hypot(x, y));
  const middle = (at, first, size) => Math.min(Math.max(at, first + size / 4), first + 3 * size / 4);
  const [clientX, clientY] = [middle(start.clientX, left, width), middle(start.clientY, top, height)];
  return { from: point({ clientX, clientY }), to: point({ clientX: clientX - x * longer, clientY: clientY - y * longer }) };
}

function point({ clientX, clientY }) {
  const { left, top, width, height } = picture.getBoundingClientRect();
  const within = (share, size) => Math.min(Math.max(Math.floor(share * size), 0), size - 1);
  const { size } = current;
  return { x: within((clientX - left) / width, size.width), y: within((clientY - top) / height, size.height) };
}

function mark({ clientX, clientY }) {
  const { left, top } = screen.getBoundingClientRect();
  const spot = document.createElement("i");
  spot.style.left = `${clientX - left}px`;
  spot.style.top = `${clientY - top}px`;
  screen.append(spot);
  setTimeout(() => spot.remove(), 450);
}

function clean(words) {
  return words.replace(/\p{Cc}+/gu, " ");
}

/** Sends text in pieces of 200 characters. With `wait`, text joins the piece that waits. */
function type(words, wait = 0, field = false) {
  const letters = [...clean(words)];
  const last = current?.queue.at(-1);
  if (wait && last?.input.text && !last.field && [...last.input.text].length < 200) last.input.text += words;
  else while (letters.length) send({ text: letters.splice(0, 200).join("") }, wait, { field });
}

function send(input, wait = 0, more = {}) {
  if (current?.mode !== "control") return;
  current.queue.push({ input, from: Date.now() + wait, ...more });
  if (current.queue.length === 1) empty(current);
}

/** Sends inputs in their order, at most 18 in a second. */
async function empty(run) {
  while (run === current && run.queue.length) {
    const [next] = run.queue;
    await sleep(next.from - Date.now());
    const sent = Date.now();
    const { input } = next;
    const request = ask(run, "screen/input", input);
    // Nothing later joins what is sent already.
    Object.assign(next, { input: {}, wheel: undefined });
    const { status, data } = await request;
    if (run !== current || (status !== 403 && ends(run, status))) return;
    let note = "";
    if (status === 204) {
      // The field keeps what the phone does not have.
      if (next.field && text.value.startsWith(input.text)) text.value = text.value.slice(input.text.length);
    } else {
      // The inputs that wait are for a screen that did not come.
      run.queue.length = 1;
      note = status ? `Not sent: ${reason(status, data)}` : "The server did not answer: the input may be lost";
    }
    put(part.note, note);
    await sleep(sent + 55 - Date.now());
    run.queue.shift();
  }
}

/** Sends a request. The status is 0 if no answer came. */
async function ask(run, path, input) {
  const stopper = new AbortController();
  const timer = setTimeout(() => stopper.abort(0), input ? 10_000 : 30_000);
  const headers = { authorization: `Bearer ${run.token}` };
  if (input) headers["content-type"] = "application/json";
  else if (path !== "screen/session") run.poll = stopper;
  try {
    const answer = await fetch(path, {
      method: input ? "POST" : "GET", body: input && JSON.stringify(input), headers,
      signal: stopper.signal, cache: "no-store", redirect: "error", referrerPolicy: "no-referrer",
    });
    const { status } = answer;
    const is_json = answer.headers.get("content-type")?.startsWith("application/json");
    if (is_json) return { status, data: await answer.json().catch(() => null) };
    return { status, blob: await answer.blob(), number: answer.headers.get("x-still") ?? 0 };
  } catch {
    return { status: stopper.signal.reason === "hidden" ? "hidden" : 0 };
  } finally {
    clearTimeout(timer);
  }
}

function now(run) {
  return Date.now() + run.skew;
}

function clock(at) {
  return new Date(at).toLocaleTimeString("en-GB");
}

function sleep(ms) {
  return ms > 0 ? new Promise((done) => setTimeout(done, ms)) : null;
}

function put(element, words) {
  if (element.textContent !== words) element.textContent = words;
}
