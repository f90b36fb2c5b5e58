// The official conformance suite of the protocol, in the package that the argument names, against a running server: all its scenarios for
// servers. What stands in `left_out` of the plan does not apply: such a scenario or check must fail, be skipped or warn, and any other
// must hold.

import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { openDoor } from "./door.mjs";
import { cannotSpeak, plan, say, version } from "./report.mjs";

const [, , pack] = process.argv;
const { keys: [writer], left_out, revision, url } = plan;
say({ client: `conformance ${version(pack)}` });
const choosesRevision = !version(pack).startsWith("0.1.");
if (revision && !choosesRevision && revision !== "2025-11-25") cannotSpeak("its client offers 2025-11-25 to every server");

// The suite cannot send credentials.
const door = await openDoor(url, { "X-Api-Key": writer.id, "X-Api-Secret": writer.secret });
const results = mkdtempSync(join(tmpdir(), "conformance-"));
const which = revision ? ["--spec-version", revision] : [];
const flags = ["server", "--url", door.url, "--suite", "all", "--output-dir", results, ...which];
// Its status says whether all is well with a server that has everything.
const command = [`node_modules/${pack}/dist/index.js`, ...flags];
const ended = await promisify(execFile)(process.execPath, command, { maxBuffer: Infinity }).catch((error) => error);
door.close();
const folders = readdirSync(results).sort();
if (!folders.length) throw new Error(`the suite left no results: ${ended.stderr}`);

// What one of these checks is to the suite, in a line.
const told = ({ id, status, errorMessage }) => `${id}: ${status}${errorMessage ? `: ${errorMessage}` : ""}`;
const whyLeftOut = (name) => left_out.find(({ names }) => names.includes(name))?.why;
// This check judges every answer, also to a request for what the server does not offer.
const always = ({ id }) => id === "wire-schema-valid";
const held = ({ status }) => status === "SUCCESS" || status === "INFO";

// What is wrong with a scenario, or null if none of it applies.
function judge(scenario, checks) {
  const own = checks.filter((check) => !always(check));
  const broken = checks.filter((check) => !held(check));
  const some = own.some(({ status }) => status === "SUCCESS");
  const why = whyLeftOut(scenario);
  if (why) {
    if (some && own.every(held)) return ["it holds: it is to be left out no longer"];
    say({ left_out: scenario, why });
    const wrong = broken.filter(always).map(told);
    return wrong.length ? wrong : null;
  }
  const excused = broken.filter((check) => !always(check) && whyLeftOut(check.id));
  for (const { id } of excused) say({ left_out: id, of: scenario, why: whyLeftOut(id) });
  const wrong = broken.filter((check) => !excused.includes(check)).map(told);
  if (!some && !wrong.length) return excused.length ? null : ["no check of its own was made"];
  return wrong;
}

// A scenario that broke off has no checks.
function checksOf(folder) {
  const file = join(results, folder, "checks.json");
  return existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : [];
}

let applied = 0;
for (const folder of folders) {
  const scenario = folder.replace(/^server-/, "").replace(/-\d{4}-\d\d-\d\dT[^T]*$/, "");
  const wrong = judge(scenario, checksOf(folder));
  if (wrong === null) continue;
  say({ check: scenario, failure: wrong.length ? wrong.join("\n") : null });
  applied += 1;
}
rmSync(results, { recursive: true });
if (!applied) cannotSpeak("none of its scenarios for that revision applies");
if (revision) say({ check: "handshake", failure: door.revisions.has(revision) ? null : `it spoke ${[...door.revisions]}` });
