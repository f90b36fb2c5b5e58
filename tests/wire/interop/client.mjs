// The official TypeScript client of the protocol, in the package that the first argument names, against a running server: over HTTP, or
// over standard input and output through the bridge that the second argument names.

import { openDoor } from "./door.mjs";
import { cannotSpeak, check, expect, expectOneOf, fails, plan, say, structured, version, writes } from "./report.mjs";

const [, , pack, bridge] = process.argv;
const first = pack.endsWith("/sdk");
const parts = first ? ["client/index.js", "client/streamableHttp.js", "client/stdio.js", "types.js"] : ["", "", "stdio", ""];
const [main, http, stdio, types] = await Promise.all(parts.map((part) => import([pack, part].filter(Boolean).join("/"))));
const { revision } = plan;
const [writer, reader] = plan.keys;
const pair = ({ id, secret }) => ({ "X-Api-Key": id, "X-Api-Secret": secret });
const bearer = ({ id, secret }) => ({ Authorization: `Bearer ${id}:${secret}` });

// Revisions with a handshake are told apart from those without: version 1 knows none of the latter.
const shakesHands = revision === null || types.SUPPORTED_PROTOCOL_VERSIONS.includes(revision);

// How each bridge is called in the table, and started with a key. `offer` is what its client is pinned to.
const bridges = {
  "mcp-remote": {
    name: `mcp-remote ${version("mcp-remote")}`,
    start(url, key, form) {
      const given = Object.entries(form(key)).flatMap(([name, value]) => ["--header", `${name}:${value}`]);
      const asked = shakesHands ? [] : ["--protocol", "auto"];
      const args = ["node_modules/mcp-remote/dist/proxy.js", url, "--transport", "http-only", ...asked, ...given];
      return { command: process.execPath, args, env: process.env };
    },
    // It speaks the revisions without a handshake to the server alone: its client shakes hands with it.
    offer: shakesHands ? revision : null,
  },
  "cloudphone bridge": {
    name: "cloudphone bridge",
    start(url, { id, secret }) {
      const env = { ...process.env, CLOUDPHONE_KEY: `${id}:${secret}` };
      return { command: plan.program, args: ["bridge", "--url", url], env };
    },
    offer: revision,
  },
  "cloudphone stdio": {
    name: "cloudphone stdio",
    start(_, key) {
      const reads = key === reader ? ["--permission", "device_read"] : [];
      return { command: plan.program, args: ["stdio", ...reads], env: { HOME: process.env.HOME } };
    },
    offer: revision,
    serves: true,
  },
};
const over = bridge && bridges[bridge];
const name = `TypeScript ${version(pack)}`;
say({ client: over ? `${name} over ${over.name}` : name });
const offer = over ? over.offer : revision;
if (first && !shakesHands && offer) cannotSpeak(`it has none but ${types.SUPPORTED_PROTOCOL_VERSIONS.join(", ")}`);

const door = over && (await openDoor(plan.url));

function options() {
  if (!offer || first) return {};
  return shakesHands ? { supportedProtocolVersions: [offer] } : { versionNegotiation: { mode: { pin: offer } } };
}

function transportWith(key, form) {
  if (over) return new stdio.StdioClientTransport({ ...over.start(door.url, key, form), stderr: "pipe" });
  return new http.StreamableHTTPClientTransport(new URL(plan.url), { requestInit: { headers: form(key) } });
}

async function connected(key, form, use) {
  const client = new main.Client({ name: "interop", version: "1" }, options());
  const transport = transportWith(key, form);
  // Version 1 says it to the transport alone, and that of stdio does not keep it.
  transport.setProtocolVersion ??= (agreed) => (transport.protocolVersion = agreed);
  let said = "";
  transport.stderr?.on("data", (text) => (said += text));
  if (first && offer) {
    // Version 1 offers its latest revision. The server's answer decides what it speaks from then on.
    const send = transport.send.bind(transport);
    transport.send = (message, more) => {
      if (message.method === "initialize") message.params.protocolVersion = offer;
      return send(message, more);
    };
  }
  try {
    await client.connect(transport);
    await use(client, transport);
  } catch (error) {
    error.message += said && `\n${said}`;
    throw error;
  } finally {
    await client.close();
  }
}

// What this client and the server speak: as the requests say behind a bridge, else as the client says.
function spoken(client, transport) {
  if (over && !over.serves) return [...door.revisions].pop();
  return first ? transport.protocolVersion : client.getNegotiatedProtocolVersion();
}

// Answers with the object in the result, and whether it is an error.
async function call(client, name, args) {
  const { content, isError, structuredContent } = await client.callTool({ name, arguments: args });
  const value = JSON.parse(content[0].text);
  expect(!isError && structured(agreed) ? value : undefined, structuredContent);
  return [value, isError];
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

let agreed;

async function everything(client, transport) {
  const { tools } = await client.listTools();
  await check("handshake", async () => {
    agreed = spoken(client, transport);
    say({ revision: agreed });
    expectOneOf(revision ? [revision] : plan.versions, agreed);
  });
  await check("tools/list", async () => {
    expect(plan.tools.map((tool) => tool.name), tools.map((tool) => tool.name));
    for (const { outputSchema } of tools) expect(structured(agreed) ? "object" : undefined, outputSchema?.type);
  });
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
        expect(true, tasks.length > 0);
        for (const task_id of tasks) {
          let task;
          do task = await succeed(client, tool.name, { ...example, task_id });
          while (!task.terminal);
          expectOneOf(["success", "success_unverified"], task.status);
        }
      }
    });
  }
  await check("invalid_argument", () => refuse(client, plan.tools[0].name, { limits: 1 }, "invalid_argument"));
  await check("unknown tool", async () => expect(-32602, (await fails(call(client, "no_such_tool", {}))).code));
}

async function whatAReaderMay(client) {
  await check("tools/list of a reader", async () => {
    const listed = (await client.listTools()).tools.map((tool) => tool.name);
    expect([], writes.filter((tool) => listed.includes(tool.name)));
  });
  await check("forbidden", async () => {
    for (const tool of writes) {
      for (const example of tool.examples) await refuse(client, tool.name, example, "forbidden");
    }
  });
}

await check("all that a key may do", () => connected(writer, pair, everything));
await check("bearer", () => connected(reader, bearer, whatAReaderMay));
if (!over?.serves) await check("wrong secret", async () => {
  const wrong = { ...writer, secret: reader.secret };
  const { message, data } = await fails(connected(wrong, bearer, (client) => client.listTools()));
  // Where there is no handshake, version 2 tells the status alone, and over a bridge no more than that nothing was offered.
  if (!/"unauthenticated"|HTTP 401|did not offer pinned/.test(message + JSON.stringify(data))) throw new Error(message);
});
door?.close();
