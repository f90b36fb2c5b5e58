// Chromium, its pages, and the checks of pages. Every result is a line; the exit code is 1 if any failed.

import axe from "axe-core";
import { chromium } from "playwright-core";

const ARGS = "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
  + "--disable-component-update --disable-sync";
export const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ARGS.split(" ") });
const counts = { passed: 0, failed: 0 };

/** `look` returns its figure, or throws what is wrong. */
export async function check(name, look) {
  try {
    console.log(`ok ${name}: ${await look()}`);
    counts.passed += 1;
  } catch (error) {
    console.log(`FAILED ${name}: ${String(error.message).split("\n")[0]}`);
    counts.failed += 1;
  }
  await Promise.all(browser.contexts().map((context) => context.close()));
}

export async function finish() {
  await browser.close();
  console.log(`${counts.passed} passed, ${counts.failed} failed`);
  process.exitCode = counts.failed ? 1 : 0;
}

export async function new_page({ platform, ...options } = {}) {
  const permissions = ["clipboard-read", "clipboard-write"];
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, colorScheme: "light", permissions, ...options });
  // The only time limit: a busy machine is slow.
  context.setDefaultTimeout(60_000);
  const page = await context.newPage();
  if (platform) await page.addInitScript((as) => Object.defineProperty(navigator, "platform", { get: () => as }), platform);
  page.errors = [];
  page.on("console", (message) => message.type() === "error" && page.errors.push(message.text()));
  page.on("pageerror", (error) => page.errors.push(String(error)));
  await page.addInitScript(() => {
    globalThis.violations = [];
    addEventListener("securitypolicyviolation", (event) => globalThis.violations.push(event.violatedDirective));
  });
  return page;
}

/** Neither the policy of the page nor its script complained. */
export async function sound(page) {
  const violations = await page.evaluate(() => globalThis.violations);
  expect(!violations.length, `violations of the CSP: ${violations.join(", ")}`);
  expect(!page.errors.length, `errors in the console: ${page.errors.join(", ")}`);
}

/** Returns the number of rules that axe applied without a finding. The page must bypass its CSP. */
export async function accessible(page, name) {
  await page.evaluate(axe.source);
  const { violations, passes } = await page.evaluate(() => globalThis.axe.run());
  const findings = violations.flatMap(({ id, nodes }) => nodes.map((node) => `${id} at ${node.target}`));
  expect(!findings.length, `${name}: ${findings.join(", ")}`);
  return passes.length;
}

export function expect(is_true, otherwise) {
  if (!is_true) throw new Error(otherwise);
}

export function ms_since(start) {
  return `${Math.round(performance.now() - start)} ms`;
}
