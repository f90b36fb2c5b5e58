// The command line of the official Inspector against a running server: a process for each request.

import { execFile } from "node:child_process";
import { openDoor } from "./door.mjs";
import { cannotSpeak, check, expect, expectOneOf, plan, say, structured, version, writes } from "./report.mjs";

const pack = "@modelcontextprotocol/inspector";
say({ client: `Inspector ${version(pack)}` });
const { revision } = plan;
const [writer, reader] = plan.keys;
// It offers its latest revision with a handshake, or speaks the one without.
const eras = { "2025-11-25": "legacy", "2026-07-28": "modern" };
if (revision && !eras[revision]) cannotSpeak("it offers 2025-11-25 in a handshake, or speaks 2026-07-28 without one");
const era = revision ? ["--protocol-era", eras[revision]] : [];

const door = await openDoor(plan.url);

// Its exit status, what it prints as JSON, and what it says of a failure.
function inspector({ id, secret }, ...args) {
  const headers = ["--header", `X-Api-Key: ${id}`, "--header", `X-Api-Secret: ${secret}`, "--stored-auth-only"];
  const server = ["--server-url", door.url, "--transport", "http", ...headers, ...era];
  const command = [`node_modules/${pack}/clients/launcher/build/index.js`, "--cli", ...server, "--format", "json", ...args];
  return new Promise((done) => {
    const running = execFile(process.execPath, command, (error, printed, errors) => {
      done({ status: error ? error.code : 0, result: printed && JSON.parse(printed).result, errors });
    });
    running.stdin.end();
  });
}

async function list(key) {
  const { status, result, errors } = await inspector(key, "--method", "tools/list", "--strict");
  // It warns of results that may be null, which not every dialect of schemas can say. Of arguments it must have nothing to say.
  if (status || /Path: (?!outputSchema)/.test(errors)) throw new Error(`it ended with ${status}: ${errors}`);
  return result.tools;
}

// Answers with the object in the result; 5 is the status of a result that is an error.
async function call(key, name, args, wanted = 0) {
  const { status, result, errors } = await inspector(key, "--method", "tools/call", "--tool-name", name, "--tool-args-json", JSON.stringify(args));
  if (status !== wanted) throw new Error(`it ended with ${status}: ${errors}`);
  const value = JSON.parse(result.content[0].text);
  expect(wanted === 0 && structured(agreed) ? value : undefined, result.structuredContent);
  return value;
}

let agreed;
const tools = await list(writer).catch((error) => error);
await check("handshake", async () => {
  agreed = [...door.revisions].pop();
  say({ revision: agreed });
  expectOneOf(revision ? [revision] : plan.versions, agreed);
});
await check("tools/list", async () => {
  if (tools instanceof Error) throw tools;
  expect(plan.tools.map((tool) => tool.name), tools.map((tool) => tool.name));
  for (const { outputSchema } of tools) expect(structured(agreed) ? "object" : undefined, outputSchema?.type);
});
const tasks = [];
for (const tool of plan.tools) {
  await check(tool.name, async () => {
    for (const example of tool.examples) {
      if (!("task_id" in example)) {
        const value = await call(writer, tool.name, example);
        if (tool.task) tasks.push(value.task_id);
        continue;
      }
      expect(true, tasks.length > 0);
      for (const task_id of tasks) {
        let task;
        do task = await call(writer, tool.name, { ...example, task_id });
        while (!task.terminal);
        expectOneOf(["success", "success_unverified"], task.status);
      }
    }
  });
}
await check("invalid_argument", async () => {
  const { code } = await call(writer, plan.tools[0].name, { limits: 1 }, 5);
  expect("invalid_argument", code);
});
await check("tools/list of a reader", async () => {
  const listed = (await list(reader)).map((tool) => tool.name);
  expect([], writes.filter((tool) => listed.includes(tool.name)));
});
await check("wrong secret", async () => {
  const { status, errors } = await inspector({ ...writer, secret: reader.secret }, "--method", "tools/list");
  if (!status || !/unauthenticated|401/.test(errors)) throw new Error(`it ended with ${status}: ${errors}`);
});
door.close();
