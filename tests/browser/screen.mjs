// Opens the screen of a phone of a running server in Chromium, and checks and measures the page:
//
//   node screen.mjs URL KEY_ID SECRET [--device ID] [--pictures DIR] [--short] [--revoke COMMAND]
//
// The server has the toolset `screen`. The key needs the permissions `device` and `stream`. COMMAND takes that key away, and runs last.
// With --short all takes at most 60 s. Every result is a line; the exit code is 1 if any failed.

import { exec } from "node:child_process";
import { readFileSync } from "node:fs";
import { parseArgs, promisify } from "node:util";
import { accessible, check, expect, finish, ms_since, new_page, sound } from "./chromium.mjs";

const { values: flags, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    device: { type: "string", default: "phone-0000001" },
    pictures: { type: "string" },
    revoke: { type: "string" },
    short: { type: "boolean", default: false },
  },
});
const [server, key_id, secret] = positionals;
if (!secret) throw new Error("the arguments are URL KEY_ID SECRET");

const create_session = (mode) => call("create_session", { device_id: flags.device, mode });
const elements = async () => (await call("elements", { device_id: flags.device })).elements;
const take = async (page, name) => flags.pictures && page.screenshot({ path: `${flags.pictures}/${name}.png` });

await check("first picture", first_picture);
await check("tap and type", tap_and_type);
await check("wake", wakes);
if (!flags.short) await check("pictures at rest", at_rest);
if (!flags.short) await check("ten pages", async () => {
  // A browser has six connections for all of them.
  await Promise.all(Array.from({ length: 10 }, () => opened("view")));
  return "all show the picture";
});
await check("token stays hidden", token_stays_hidden);
await check("view session", view_session);
for (const scheme of ["light", "dark"]) await check(`axe, ${scheme}`, () => axe_findings(scheme));
if (!flags.short) {
  await check("320 px", narrow);
  await check("keyboard", keyboard);
  await check("gestures and keys", gestures_and_keys);
  await check("field and refusal", field_and_refusal);
  await check("save picture", save_picture);
  await check("late", late);
}
if (flags.revoke) await check("ended", ended);
await finish();

// Each check returns its figure, or throws what is wrong.

async function first_picture() {
  const page = await new_page();
  const start = performance.now();
  const session = await create_session("control");
  await page.goto(session.url);
  await picture_shown(page);
  const figure = ms_since(start);
  await take(page, "simulator");
  return `${figure} from create_session to the picture`;
}

async function tap_and_type() {
  const { page } = await opened("control");
  await page.getByRole("button", { name: "Home" }).click();
  const icon = await until(() => find("Notes"), (icon) => icon, "Notes on the home screen");
  const spot = await client_point(page, icon);
  await page.waitForTimeout(1_500); // Pictures of the way home arrive first.
  const before = await page.locator("#picture").getAttribute("src");
  const start = performance.now();
  await page.mouse.click(spot.x, spot.y);
  await page.waitForFunction((src) => document.querySelector("#picture").src !== src, before);
  const figure = ms_since(start);
  await until(() => find("Home"), (back) => back, "another picture than the home screen");
  await page.waitForTimeout(1_000);
  const hellos = async () => (await elements()).filter(({ kind }) => kind === "field").map(({ label }) => label).join().split("hello").length;
  const earlier = await hellos();
  const typing = performance.now();
  await page.keyboard.type("hello", { delay: 30 });
  await until(hellos, (count) => count > earlier, "the text hello in the picture");
  return `${figure} from the click to a changed picture; hello is there ${ms_since(typing)} after its first key`;
}

async function wakes() {
  const { page } = await opened("control", { bypassCSP: true });
  await page.getByRole("button", { name: "Power" }).click();
  const wake = page.getByRole("button", { name: "Wake the phone" });
  await wake.waitFor();
  await page.getByText("the screen is off").first().waitFor();
  await take(page, "asleep");
  await accessible(page, "asleep");
  expect(!await (await opened("view")).page.locator("#wake").isVisible(), "a person who may only watch has the key");
  const start = performance.now();
  await wake.focus();
  await page.keyboard.press("Enter");
  await wake.waitFor({ state: "hidden" });
  expect(await page.evaluate(() => document.activeElement.id) === "screen", "the focus is lost with the key");
  const figure = ms_since(start);
  await take(page, "awake");
  return `the picture is back ${figure} after the key`;
}

/** Waits until a page has sent an input such as `act` is for. */
async function sends(page, is_wanted, act) {
  const sent = [];
  page.on("request", (request) => request.url().endsWith("/input") && sent.push(request.postDataJSON()));
  await act();
  await until(() => sent, (all) => all.some(is_wanted), `an input such as ${is_wanted}`);
}

async function gestures_and_keys() {
  const { page } = await opened("control");
  const { x, y } = await client_point(page, { x: 180, y: 320 });
  await page.mouse.move(x, y);
  await sends(page, ({ swipe }) => swipe?.from.x === swipe?.to.x && swipe?.from.y > swipe?.to.y + 20, () => page.mouse.wheel(0, 1));
  await sends(page, ({ key }) => key === "back", () => page.mouse.click(x, y, { button: "right" }));
  await page.locator("#screen").focus();
  await sends(page, ({ key }) => key === "select_all", () => page.keyboard.press("Control+a"));
  expect(!await page.evaluate(() => String(getSelection())), "Control+A selects the page");
  await page.evaluate(() => navigator.clipboard.writeText("pasted"));
  await sends(page, ({ text }) => text === "pasted", () => page.keyboard.press("Control+v"));

  const press = (on, keys) => on.evaluate((init) => document.querySelector("#screen")
    .dispatchEvent(new KeyboardEvent("keydown", { cancelable: true, ...init })), keys);
  const alt_gr = { key: "@", ctrlKey: true, altKey: true, modifierAltGraph: true };
  await sends(page, ({ text }) => text === "@", () => press(page, alt_gr));
  expect(await press(page, { key: "f", altKey: true }), "Alt+F is taken from the browser");
  const { page: apple } = await opened("control", { platform: "MacIntel" });
  await sends(apple, ({ text }) => text === "|", () => press(apple, { key: "|", altKey: true }));
  return "wheel, right button, Control+A, Control+V, AltGr and Option";
}

async function field_and_refusal() {
  const { page } = await opened("control");
  const answers = [204, 503, 503, 204];
  await page.route("**/screen/input", (route) => {
    const status = answers.shift() ?? 204;
    const body = status === 204 ? "" : JSON.stringify({ message: "this phone takes only the characters of ASCII" });
    route.fulfill({ status, body, contentType: "application/json" });
  });
  const text = "x".repeat(200) + "rest";
  await page.getByLabel("Text for the phone").fill(text);
  await page.getByRole("button", { name: "Type" }).click();
  await page.getByText("Not sent: this phone takes").waitFor();
  const left = await page.getByLabel("Text for the phone").inputValue();
  expect(left === "rest", `the field has ${left} of which the phone has a part`);
  await page.getByRole("button", { name: "Home" }).click();
  await until(() => answers.length, (count) => count === 1, "the second refusal");
  await page.waitForTimeout(1_500); // A picture may have come meanwhile.
  expect(await page.getByText("Not sent: this phone takes").isVisible(), "the refusal has gone");
  await take(page, "refusal");
  await page.getByRole("button", { name: "Type" }).click();
  await page.waitForFunction(() => !document.querySelector("#text").value);
  await page.waitForFunction(() => !document.querySelector("#note").textContent);
  return "the field keeps what the phone does not have, and a refusal stays until a success";
}

async function save_picture() {
  const { page } = await opened("view");
  const [download] = await Promise.all([page.waitForEvent("download"), page.locator("#save").click()]);
  const [name, bytes] = [download.suggestedFilename(), readFileSync(await download.path(), "utf8")];
  expect(name.endsWith(".svg") && bytes.startsWith("<svg"), `${name} begins with ${bytes.slice(0, 20)}`);
  await sound(page);
  return name;
}

async function at_rest() {
  const { page } = await opened("control");
  await page.waitForTimeout(2_000);
  let pictures = 0;
  page.on("response", (answer) => (pictures += answer.url().includes("/still") && answer.status() === 200));
  const minute = new Date().getMinutes();
  await page.waitForTimeout(10_000);
  expect(pictures <= (new Date().getMinutes() !== minute), `${pictures} pictures in 10 s`);
  return `${pictures} in 10 s`;
}

async function token_stays_hidden() {
  const page = await new_page();
  const requests = [];
  page.context().on("request", (request) => requests.push(request));
  const session = await create_session("control");
  await page.goto(session.url);
  await picture_shown(page);
  expect(page.url() === session.url.split("#")[0], `the address is ${page.url()}`);
  const devtools = await page.context().newCDPSession(page);
  const { entries } = await devtools.send("Page.getNavigationHistory");
  expect(!entries.some((entry) => entry.url.includes(session.token)), "the history has the token");
  expect(entries.length === 2, `the history has ${entries.length} entries`);
  await sound(page);
  await page.reload();
  await page.getByText("open the whole link again").waitFor();
  await page.goBack();
  await page.goForward();
  expect(!page.url().includes("#"), `the address after Back and Forward is ${page.url()}`);
  const sent = requests.filter((request) => !request.url().startsWith("blob:"));
  for (const request of sent) {
    const [address] = request.url().split("#");
    const { referer = "" } = await request.allHeaders().catch(() => ({}));
    expect(!`${address} ${referer}`.includes(session.token), `a request has the token: ${address}`);
    expect(new URL(address).host === new URL(server).host, `a request to another host: ${address}`);
  }
  return `${sent.length} requests, 0 with the token in the URL or Referer, 0 to other hosts, 0 CSP violations`;
}

async function view_session() {
  const { page, session } = await opened("view");
  await page.getByText("You can watch; you cannot touch").waitFor();
  const controls = await page.locator("button:visible, input:visible, [role=application], [tabindex='0']").count();
  await take(page, "view");
  expect(controls === 0, `${controls} controls`);
  const { status } = await screen_request(session, "input", { key: "home" });
  expect(status === 403, `an input is answered ${status}`);
  return "0 controls, an input is answered 403";
}

async function axe_findings(colorScheme) {
  let rules = 0;
  for (const mode of ["control", "view", null]) {
    const page = await new_page({ colorScheme, bypassCSP: true, reducedMotion: "reduce" });
    await page.goto(mode ? (await create_session(mode)).url : `${server}/screen`);
    await (mode ? picture_shown(page) : page.locator("#message").waitFor());
    if (mode) await page.locator("#session:not(:empty)").waitFor();
    rules = Math.max(rules, await accessible(page, mode));
    if (mode === "control" && colorScheme === "dark") await take(page, "dark");
  }
  return `0 findings, ${rules} rules applied`;
}

async function narrow() {
  const { page } = await opened("control", { viewport: { width: 320, height: 640 }, deviceScaleFactor: 2 });
  const width = await page.evaluate(() => document.documentElement.scrollWidth);
  await take(page, "320px");
  const outside = await page.locator("#screen, button:visible, input:visible").evaluateAll((all) =>
    all.map((each) => each.getBoundingClientRect())
      .filter((box) => !box.width || box.left < 0 || box.right > innerWidth || box.bottom > innerHeight).length);
  expect(width <= 320, `the page is ${width} px wide`);
  expect(outside === 0, `${outside} controls are outside`);
  return "no horizontal scroll, all controls inside 320 x 640 px";
}

async function keyboard() {
  const { page } = await opened("control");
  const reached = [];
  for (let step = 0; step < 20; step += 1) {
    await page.keyboard.press("Tab");
    const name = await page.evaluate(() => {
      const { id, ariaLabel, textContent, tagName } = document.activeElement;
      return tagName === "BODY" ? "" : id || ariaLabel || textContent.trim();
    });
    if (!name || reached.includes(name)) break;
    const outline = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
    expect(outline !== "none", `the focus on ${name} cannot be seen`);
    reached.push(name);
  }
  const missing = ["save", "screen", "Back", "Home", "Recents", "Power", "text", "Type"].filter((name) => !reached.includes(name));
  expect(!missing.length, `Tab does not reach ${missing.join(", ")}`);
  return `Tab reaches ${reached.join(", ")}`;
}

async function late() {
  const { page } = await opened("control");
  const start = performance.now();
  const stopping = await call("set_power", { device_id: flags.device, action: "shutdown" });
  await page.locator("[data-state=late]").waitFor();
  const figure = ms_since(start);
  await take(page, "late");
  await end_of(stopping);
  const booting = await call("set_power", { device_id: flags.device, action: "boot" });
  await page.locator("[data-state=live]").waitFor();
  await end_of(booting);
  return `${figure} after shutdown, and live again after boot`;
}

async function end_of(task) {
  while (!task.terminal) task = await call("get_task", { task_id: task.task_id, wait_seconds: 25 });
}

async function ended() {
  const { page } = await opened("control");
  const start = performance.now();
  await promisify(exec)(flags.revoke);
  await page.getByText("Ask whoever gave you this link for a new one.").waitFor();
  const figure = ms_since(start);
  expect(!await page.locator("#picture").isVisible(), "the picture is still shown");
  await take(page, "ended");
  return `the page says so ${figure} after the command began`;
}

async function call(name, args) {
  const headers = { "content-type": "application/json", "x-api-key": key_id, "x-api-secret": secret };
  const message = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: args } };
  const answer = await fetch(`${server}/mcp`, { method: "POST", headers, body: JSON.stringify(message) });
  const text = await answer.text();
  expect(answer.ok, `${name} is answered ${answer.status}: ${text}`);
  const { result, error } = JSON.parse(text);
  expect(result && !result.isError, `${name} is refused: ${JSON.stringify(error ?? result)}`);
  return result.structuredContent ?? JSON.parse(result.content[0].text);
}

function screen_request(session, path, input) {
  const headers = { authorization: `Bearer ${session.token}`, "content-type": "application/json" };
  const rest = input && { method: "POST", body: JSON.stringify(input) };
  return fetch(`${server}/screen/${path}`, { headers, ...rest });
}

/** Returns what can be touched under a label, with its centre. */
async function find(label) {
  return (await elements()).find((element) => element.kind !== "text" && element.label === label);
}

async function opened(mode, options) {
  const page = await new_page(options);
  const session = await create_session(mode);
  await page.goto(session.url);
  await picture_shown(page);
  await page.locator("#session:not(:empty)").waitFor();
  return { page, session };
}

function picture_shown(page) {
  return page.waitForFunction(() => document.querySelector("#picture:not([hidden])")?.naturalWidth);
}

function client_point(page, { x, y }) {
  return page.locator("#picture").evaluate((picture, at) => {
    const { left, top, width, height } = picture.getBoundingClientRect();
    return { x: left + (at.x * width) / picture.naturalWidth, y: top + (at.y * height) / picture.naturalHeight };
  }, { x, y });
}

async function until(read, is_done, wanted) {
  for (const end = Date.now() + 10_000; Date.now() < end; await new Promise((done) => setTimeout(done, 100))) {
    const value = await read();
    if (is_done(value)) return value;
  }
  throw new Error(`there is not ${wanted} after 10 s`);
}
