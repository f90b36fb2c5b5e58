// What the scripts for Node share: the plan that they read as JSON from their input, and the lines that they answer with.

import { readFileSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";

export const plan = JSON.parse(readFileSync(0, "utf8"));

export const writes = plan.tools.filter((tool) => tool.task);

// Output schemas and structured results came with this revision.
export const structured = (revision) => revision >= "2025-06-18";

export const say = (line) => console.log(JSON.stringify(line));

export const version = (pack) => JSON.parse(readFileSync(`node_modules/${pack}/package.json`, "utf8")).version;

// Ends the script: the client has no way to speak the revision of the plan.
export function cannotSpeak(why) {
  say({ unspoken: why });
  process.exit();
}

// Reports how `body` ended; a failure does not keep the next check from running.
export async function check(name, body) {
  const failure = await body().then(() => null, (error) => error.stack ?? String(error));
  say({ check: name, failure });
}

export function expect(wanted, found) {
  if (!isDeepStrictEqual(wanted, found)) {
    throw new Error(`expected ${JSON.stringify(wanted)}, found ${JSON.stringify(found)}`);
  }
}

export function expectOneOf(wanted, found) {
  if (!wanted.includes(found)) throw new Error(`expected one of ${wanted}, found ${found}`);
}

export async function fails(promise) {
  const error = await promise.then(() => null, (error) => error);
  if (error === null) throw new Error("no error");
  return error;
}
