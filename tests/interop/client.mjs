// The official TypeScript client of the protocol, in the package that the argument names, against a running server.
//
// Reads what to call as JSON from its input; answers with a JSON line for each check.

import { readFileSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";

const [, , pack] = process.argv;
const [main, http] = pack.endsWith("/sdk") ? [`${pack}/client/index.js`, `${pack}/client/streamableHttp.js`] : [pack, pack];
const { Client } = await import(main);
const { StreamableHTTPClientTransport } = await import(http);
const { version } = JSON.parse(readFileSync(`node_modules/${pack}/package.json`, "utf8"));
console.log(JSON.stringify({ client: `TypeScript ${version}` }));

const plan = JSON.parse(readFileSync(0, "utf8"));
const writes = plan.tools.filter((tool) => tool.task);
const [writer, reader] = plan.keys;

async function connected(headers, use) {
  const client = new Client({ name: "interop", version: "1" });
  const transport = new StreamableHTTPClientTransport(new URL(plan.url), { requestInit: { headers } });
  await client.connect(transport);
  try {
    await use(client, transport);
  } finally {
    await client.close();
  }
}

// Reports how `body` ended; a failure does not keep the next check from running.
async function check(name, body) {
  const failure = await body().then(() => null, String);
  console.log(JSON.stringify({ check: name, failure }));
}

function expect(wanted, found) {
  if (!isDeepStrictEqual(wanted, found)) {
    throw new Error(`expected ${JSON.stringify(wanted)}, found ${JSON.stringify(found)}`);
  }
}

function expectOneOf(wanted, found) {
  if (!wanted.includes(found)) throw new Error(`expected one of ${wanted}, found ${found}`);
}

async function fails(promise) {
  const error = await promise.then(() => null, (error) => error);
  if (error === null) throw new Error("no error");
  return error;
}

const names = async (client) => (await client.listTools()).tools.map((tool) => tool.name);

// Answers with the object in the result, and whether it is an error.
async function call(client, name, args) {
  const { content, isError } = await client.callTool({ name, arguments: args });
  return [JSON.parse(content[0].text), isError];
}

async function succeed(client, name, args) {
  const [value, isError] = await call(client, name, args);
  expect([false, "object"], [isError, typeof value]);
  return value;
}

async function refuse(client, name, args, code) {
  const [value, isError] = await call(client, name, args);
  expect([true, code], [isError, value.code]);
}

async function everything(client, transport) {
  await check("initialize", async () => expectOneOf(plan.versions, transport.protocolVersion));
  await check("tools/list", async () => expect(plan.tools.map((tool) => tool.name), await names(client)));
  const tasks = [];
  for (const tool of plan.tools) {
    await check(tool.name, async () => {
      for (const example of tool.examples) {
        if (!("task_id" in example)) {
          const value = await succeed(client, tool.name, example);
          if (tool.task) tasks.push(value.task_id);
          continue;
        }
        // No example can know the id of a task that exists: each one's end is awaited.
        for (const task_id of tasks) {
          let task;
          do task = await succeed(client, tool.name, { ...example, task_id });
          while (!task.terminal);
          expectOneOf(["success", "success_unverified"], task.status);
        }
      }
    });
  }
  await check("invalid_argument", () => refuse(client, plan.tools[0].name, { no_such_argument: 1 }, "invalid_argument"));
  await check("unknown tool", async () => expect(-32602, (await fails(call(client, "no_such_tool", {}))).code));
}

async function whatAReaderMay(client) {
  await check("tools/list of a reader", async () => {
    const listed = await names(client);
    expect([], writes.filter((tool) => listed.includes(tool.name)));
  });
  await check("forbidden", async () => {
    for (const tool of writes) {
      for (const example of tool.examples) await refuse(client, tool.name, example, "forbidden");
    }
  });
}

const bearer = (id, secret) => ({ Authorization: `Bearer ${id}:${secret}` });
await connected({ "X-Api-Key": writer.id, "X-Api-Secret": writer.secret }, everything);
await check("bearer", () => connected(bearer(reader.id, reader.secret), whatAReaderMay));
await check("wrong secret", async () => {
  const { message } = await fails(connected(bearer(writer.id, reader.secret), async () => {}));
  if (!message.includes('"unauthenticated"')) throw new Error(message);
});
