// Opens the console of a running server in Chromium, and checks its pages and its door:
//
//   node console.mjs COMMAND PATH... [--pictures DIR] [--call COMMAND] [--short]
//
// COMMAND runs the program of the server; `console` is appended to it. PATHs are pages that the
// service has next to those of every service, first that of its targets. --call makes a task, for the check that a page
// follows. Every result is a line; the exit code is 1 if any failed.

import { exec } from "node:child_process";
import { createServer } from "node:http";
import { parseArgs, promisify } from "node:util";
import { accessible, check, expect, finish, ms_since, new_page, sound } from "./chromium.mjs";

const { values: flags, positionals } = parseArgs({
  allowPositionals: true,
  options: { call: { type: "string" }, pictures: { type: "string" }, short: { type: "boolean", default: false } },
});
const [program, ...more] = positionals;
const fleet = more[0]?.split("/").pop();
const Fleet = fleet && fleet[0].toUpperCase() + fleet.slice(1);
if (!program) throw new Error("the arguments are COMMAND PATH...");

const PAGES = ["/", "/tasks", "/refunds", "/applications", "/applications/demo", "/keys", "/audit", "/acts", "/doctor?examine=on",
  "/verify?examine=on", "/act/app/create", "/act/app/delete?app=demo", "/act/key/create?app=demo", "/nothing", ...more];

const run = async (line) => (await promisify(exec)(`${program} ${line}`)).stdout;
const make_link = async (role = "--operate") => JSON.parse(await run(`console ${role} --json`)).link;

await check("door", door);
await check("other pages", other_pages);
for (const scheme of flags.short ? ["light"] : ["light", "dark"]) await check(`axe, ${scheme}`, () => axe_findings(scheme));
await check("without script", without_script);
if (flags.call) await check("live", live);
if (!flags.short) {
  await check("320 px", narrow);
  await check("keyboard", keyboard);
}
await check("ended", ended);
await finish();

// Each check returns its figure, or throws what is wrong.

async function door() {
  const link = await make_link();
  const [address, code] = link.split("/in#");
  const page = await new_page();
  const requests = [];
  page.context().on("request", (request) => requests.push(request));
  const start = performance.now();
  await enter(page, link);
  const figure = ms_since(start);
  const devtools = await page.context().newCDPSession(page);
  const { entries } = await devtools.send("Page.getNavigationHistory");
  expect(!entries.some((entry) => entry.url.includes(code)), "the history has the code");
  for (const request of requests) {
    const { referer = "" } = await request.allHeaders().catch(() => ({}));
    expect(!`${request.url().split("#")[0]} ${referer}`.includes(code), `a request has the code: ${request.url()}`);
    expect(request.url().startsWith(`${address}/`), `a request to another host: ${request.url()}`);
  }
  const again = await new_page();
  await again.goto(link);
  await again.getByText("This code does not work").waitFor();
  await sound(page);
  return `${figure} from the link to the first page, ${requests.length} requests, 0 to other hosts, 0 with the code`;
}

async function other_pages() {
  const page = await new_page();
  const link = await make_link();
  const [address] = link.split("/in#");
  await enter(page, link);
  const html = `<form method=post action="${address}/out"><button>x</button></form><iframe src="${address}/"></iframe>`;
  const server = createServer((_, answer) => answer.setHeader("content-type", "text/html").end(html)).listen(0, "127.0.0.1");
  await new Promise((done) => server.once("listening", done));
  const name = new URL(address).hostname;
  // The first is the same site for a browser, which sends the cookie along.
  for (const host of [name, "127.0.0.1"]) {
    const evil = await page.context().newPage();
    await evil.goto(`http://${host}:${server.address().port}/`);
    await evil.waitForTimeout(300);
    const framed = await evil.frames().at(-1).evaluate(() => document.body?.innerText ?? "").catch(() => "");
    expect(!framed.includes("Overview"), "another page frames the console");
    const [answer] = await Promise.all([evil.waitForResponse((answer) => answer.url().endsWith("/out")), evil.click("button")]);
    expect(answer.status() === 403, `a form of ${host} is answered ${answer.status()}`);
    await evil.close();
  }
  server.close();
  await page.goto(`${address}/tasks`);
  await page.getByRole("heading", { name: "Tasks" }).waitFor();
  return "forms of other ports and hosts are answered 403, frames are empty";
}

async function axe_findings(colorScheme) {
  let rules = 0;
  const page = await new_page({ colorScheme, bypassCSP: true });
  const link = await make_link();
  await enter(page, link);
  for (const path of PAGES) {
    await page.goto(new URL(path, link).href);
    rules = Math.max(rules, await accessible(page, path));
    await take(page, `${path.replace(/\W+/g, "-").replace(/^-|-$/g, "") || "overview"}-${colorScheme}`);
  }
  return `${PAGES.length} pages, 0 findings, ${rules} rules applied`;
}

async function without_script() {
  const page = await new_page({ javaScriptEnabled: false });
  const link = await make_link();
  await page.goto(link);
  await page.getByLabel("Code").fill(link.split("#")[1]);
  await page.getByRole("button", { name: "Enter" }).click();
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  for (const path of PAGES) {
    await page.goto(new URL(path, link).href);
    expect(await page.locator("h1").count() === 1, `${path} has no heading`);
  }
  await page.goto(new URL("/act/key/create?app=demo", link).href);
  await page.getByRole("button", { name: "Create key" }).click();
  const secret = await page.locator(".secret input").first().inputValue();
  await page.goBack();
  await page.goForward().catch(() => {});
  expect(secret.length > 32, "there is no secret");
  return `${PAGES.length} pages, and a key is made`;
}

async function live() {
  const page = await new_page();
  const link = await make_link("");
  await enter(page, link);
  await page.goto(new URL("/tasks", link).href);
  await page.locator("#live:not(:empty)").waitFor({ timeout: 40_000 }).catch(() => {});
  const rows = await page.locator("tbody tr").count();
  const start = performance.now();
  await promisify(exec)(flags.call);
  await page.waitForFunction((before) => document.querySelectorAll("tbody tr").length > before, rows);
  const figure = ms_since(start);
  await page.locator("tbody a").first().click();
  await page.locator("svg.timeline").waitFor();
  await take(page, "task-in-flight");
  await page.waitForFunction(() => document.querySelector(".status").textContent.match(/success|failed|timeout/), null, { timeout: 90_000 });
  await take(page, "task");
  await sound(page);
  return `a new task is shown ${figure} after its call begins, and its page follows it to the end`;
}

async function narrow() {
  const page = await new_page({ viewport: { width: 320, height: 640 }, deviceScaleFactor: 2 });
  const link = await make_link();
  await enter(page, link);
  for (const path of PAGES) {
    await page.goto(new URL(path, link).href);
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    await take(page, `320px-${path.replace(/\W+/g, "-").replace(/^-|-$/g, "") || "overview"}`);
    expect(width <= 320, `${path} is ${width} px wide`);
  }
  return `${PAGES.length} pages, no horizontal scroll`;
}

async function keyboard() {
  const page = await new_page();
  const link = await make_link();
  await enter(page, link);
  const press = async (...keys) => { for (const key of keys) await page.keyboard.press(key); };
  const tab_to = async (name) => {
    for (let step = 0; step < 60; step += 1) {
      await page.keyboard.press("Tab");
      const found = await page.evaluate(() => {
        const { labels, textContent, ariaLabel } = document.activeElement;
        return { name: (labels?.[0]?.textContent || ariaLabel || textContent || "").trim(), outline: getComputedStyle(document.activeElement).outlineStyle };
      });
      expect(found.outline !== "none", `the focus on ${found.name} cannot be seen`);
      if (name instanceof RegExp ? name.test(found.name) : found.name === name) return;
    }
    throw new Error(`Tab does not reach ${name}`);
  };
  const shows = async (name) => page.getByRole("heading", { name, exact: true }).waitFor();
  const follow = async (name, heading) => {
    await tab_to(name);
    await press("Enter");
    if (heading) await shows(heading);
  };
  const find = async (id, heading) => {
    await press("/");
    await page.keyboard.type(id);
    await press("Enter");
    await shows(heading);
  };
  const type_into = async (name, text) => {
    await tab_to(name);
    await page.keyboard.type(text);
  };
  await press("Tab", "Enter");
  expect(page.url().endsWith("#main"), "the first stop does not skip to the content");
  await find("demo", "Application demo");
  await follow("Create key", "Create key");
  await type_into("Expires", "12h");
  await follow("Create key", "Done: create key");
  const [key] = (await page.locator(".secret input").first().inputValue()).split(":");
  await find(key, `Key ${key}`);
  await follow("Revoke", "Revoke key");
  await page.getByText("This cannot be undone.").waitFor();
  await follow("Revoke key", "Done: revoke key");
  await find("demo", "Application demo");
  await follow("Suspend", "Suspend application");
  await type_into("Reason", "by keyboard");
  await follow("Suspend application", "Done: suspend application");
  await find("demo", "Application demo");
  await follow("Resume", "Resume application");
  await follow("Resume application", "Done: resume application");
  await follow("Acts", "Acts");
  expect((await page.locator("main").textContent()).includes("by keyboard"), "the reason is not in the acts");
  await follow("Tasks", "Tasks");
  await follow(/^Failed silent/);
  await page.waitForURL(/status=failed_silent/);
  await follow(`${Fleet}s`, `${Fleet}s`);
  // Targets without states have no other shape.
  if (await page.getByText("As a table").count()) await follow("As a table");
  const first = (await page.locator("tbody a").first().textContent()).trim();
  await follow(first, `${Fleet} ${first}`);
  await follow("Doctor", "Doctor");
  await follow("Examine now");
  await page.getByText("Examined at").waitFor();
  await follow("Sign out");
  await page.getByLabel("Code").waitFor();
  return "a key is made and revoked, an application is suspended and resumed, and all is read";
}

async function ended() {
  const page = await new_page();
  const link = await make_link();
  await enter(page, link);
  await page.goto(new URL("/tasks", link).href);
  await run("console end --all");
  await page.getByText(/ended|no answer/).waitFor();
  await page.goto(new URL("/tasks", link).href).catch(() => {});
  expect(!await page.getByRole("heading", { name: "Tasks" }).isVisible(), "the page is shown after the end");
  return "an open page says so, and shows nothing when it is loaded again";
}

async function enter(page, link) {
  await page.goto(link);
  await page.getByRole("heading", { name: "Overview" }).waitFor();
}

async function take(page, name) {
  if (flags.pictures) await page.screenshot({ path: `${flags.pictures}/console-${name}.png`, fullPage: true });
}
