// Opens the screen page and the console in Chromium, against the programs that `cargo test` built:
//
//   node tests/browser/run.mjs [--short] [--pictures DIR]
//
// --short takes at most a minute, and leaves the second service out. A lock file pins the packages.

import { execFileSync, spawn, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, openSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";

const { values: flags } = parseArgs({ options: { pictures: { type: "string" }, short: { type: "boolean", default: false } } });
const folder = import.meta.dirname;
const built = resolve(process.env.CARGO_TARGET_DIR ?? join(folder, "../../target"), "debug");
const home = mkdtempSync(join(tmpdir(), "browser-"));
const started = [];
try {
  execFileSync("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"], { cwd: folder, stdio: "inherit", timeout: 600_000 });
  const { told: { keys: [key], url }, operator } = await start("cloudphone", "--toolsets", "screen");
  look("screen.mjs", [url.replace(/\/mcp$/, ""), key.key_id, key.secret, "--revoke", `${operator} key revoke ${key.key_id}`]);
  // A write to the first phone ends soon, one to the other as a silent failure.
  const phone = flags.short ? "phone-0000001" : "phone-0000013";
  const write = `set_proxy device_id=${phone} scheme=http host=203.0.113.7 port=3128`;
  const call = `cd ${home} && (umask 077; ${operator} key create demo --json > key.json) && `
    + `CLOUDPHONE_KEY_FILE=key.json ${join(built, "cloudphone")} call ${write} --url ${url}`;
  look("console.mjs", [operator, "/fleet/device", "/fleet/device/phone-0000013", "--call", call]);
  if (!flags.short) {
    const shop = await start("print-shop");
    look("console.mjs", [shop.operator, "/fleet/printer", "/fleet/tray", "/act/tray/assign?app=demo"], "shop");
  }
} finally {
  for (const server of started) server.kill("SIGKILL");
  rmSync(home, { recursive: true });
}

/** Returns what the program prints when it serves, and how its operator runs it. */
async function start(name, ...more) {
  const [program, data] = [join(built, name), join(home, name)];
  mkdirSync(data);
  const words = ["--demo", "--json", "--listen", "127.0.0.1:0", "--data", join(data, "data"), ...more];
  const server = spawn(program, words, { stdio: ["ignore", "pipe", openSync(join(data, "log"), "a")] });
  started.push(server);
  for await (const line of createInterface(server.stdout)) {
    return { told: JSON.parse(line), operator: `${program} --data ${join(data, "data")}` };
  }
  throw new Error(`${name} does not start`);
}

function look(script, words, inside = "") {
  const pictures = flags.pictures ? ["--pictures", resolve(flags.pictures, inside)] : [];
  if (flags.pictures) mkdirSync(pictures[1], { recursive: true });
  const { status } = spawnSync("node", [join(folder, script), ...words, ...pictures, ...(flags.short ? ["--short"] : [])], { stdio: "inherit", timeout: 600_000 });
  if (status !== 0) process.exitCode = 1;
}
