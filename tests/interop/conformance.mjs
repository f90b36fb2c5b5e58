// The official conformance suite of the protocol against a running server: all its scenarios for servers.
//
// conformance.yml, which the argument names, has those that do not apply. Release 0.1.13 is the last that runs on Node 20;
// 0.1.16 has the same scenarios for servers. Input and output are as with client.mjs.

import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { createServer, request } from "node:http";

const [, , notApplicable] = process.argv;
const { url, keys: [writer] } = JSON.parse(readFileSync(0, "utf8"));
const suite = "node_modules/@modelcontextprotocol/conformance";

// The suite cannot send credentials: this door adds them to each request, and changes nothing else.
const credentials = { "X-Api-Key": writer.id, "X-Api-Secret": writer.secret };
const door = createServer((incoming, outgoing) => {
  const { method, headers } = incoming;
  const onward = request(url, { method, headers: { ...headers, ...credentials } }, (answer) => {
    outgoing.writeHead(answer.statusCode, answer.headers);
    answer.pipe(outgoing);
  });
  incoming.pipe(onward.on("error", (error) => outgoing.destroy(error)));
});
await new Promise((done) => door.listen(0, "127.0.0.1", done));

const { version } = JSON.parse(readFileSync(`${suite}/package.json`, "utf8"));
const target = `http://127.0.0.1:${door.address().port}/mcp`;
const flags = ["server", "--url", target, "--suite", "all", "--expected-failures", notApplicable];
execFile(process.execPath, [`${suite}/dist/index.js`, ...flags], (error, output, errors) => {
  console.log(JSON.stringify({ client: `conformance ${version}` }));
  for (const [, check] of output.matchAll(/^✓ (\S+): [1-9]/gm)) console.log(JSON.stringify({ check, failure: null }));
  if (error) {
    console.error(errors + output.split("=== SUMMARY ===").pop());
    process.exitCode = 1;
  }
  door.close();
});
