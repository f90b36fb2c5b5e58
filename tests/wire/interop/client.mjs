// The official TypeScript client of the protocol, in the package that the argument names, driven line by line. The first line of its input
// is a plan, and each further one a session, a command in it, or null, which ends the session. It answers each with a line. `interop.py`
// says what to call and judges the answers.

import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";

const [, , pack] = process.argv;
const input = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const read = async () => JSON.parse((await input.next()).value ?? "null");
const say = (line) => console.log(JSON.stringify(line));

const first = pack.endsWith("/sdk");
const parts = first ? ["client/index.js", "client/streamableHttp.js", "client/stdio.js", "types.js"] : ["", "", "stdio", ""];
const [main, http, stdio, types] = await Promise.all(parts.map((part) => import([pack, part].filter(Boolean).join("/"))));
const { url, revision } = await read();

// Revisions with a handshake are told apart from those without: version 1 knows none of the latter.
const shakesHands = !revision || types.SUPPORTED_PROTOCOL_VERSIONS.includes(revision);

function options() {
  if (!revision || first) return {};
  return shakesHands ? { supportedProtocolVersions: [revision] } : { versionNegotiation: { mode: { pin: revision } } };
}

async function connect(client, { headers, command, env }) {
  const transport = command
    ? new stdio.StdioClientTransport({ command: command[0], args: command.slice(1), env: { HOME: process.env.HOME, ...env }, stderr: "pipe" })
    : new http.StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } });
  // Version 1 says it to the transport alone, and that of stdio does not keep it.
  transport.setProtocolVersion ??= (agreed) => (transport.protocolVersion = agreed);
  if (first && revision) {
    // Version 1 offers its latest revision. The server's answer decides what it speaks from then on.
    const send = transport.send.bind(transport);
    transport.send = (message, more) => {
      if (message.method === "initialize") message.params.protocolVersion = revision;
      return send(message, more);
    };
  }
  await client.connect(transport);
  return first ? transport.protocolVersion : client.getNegotiatedProtocolVersion();
}

// Says what a promise comes to; a failure does not end the session.
async function tell(name, promise) {
  try {
    say({ [name]: await promise });
    return true;
  } catch (error) {
    say({ error: `${error.stack} ${JSON.stringify(error.data)}`, code: error.code });
    return false;
  }
}

const { version } = JSON.parse(readFileSync(`node_modules/${pack}/package.json`, "utf8"));
const unspoken = first && !shakesHands ? `it has none but ${types.SUPPORTED_PROTOCOL_VERSIONS.join(", ")}` : null;
say({ client: `TypeScript ${version}`, unspoken });
for (let session; (session = await read()); ) {
  const client = new main.Client({ name: "interop", version: "1" }, options());
  if (!(await tell("revision", connect(client, session)))) continue;
  for (let command; (command = await read()); ) {
    const [name, args] = command;
    await tell("result", name ? client.callTool({ name, arguments: args }) : client.listTools().then(({ tools }) => tools));
  }
  await tell("closed", client.close());
}
process.exit();
