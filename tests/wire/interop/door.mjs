// A door before a server: hands each request on as it came, with these headers added, and notes which revisions of the protocol
// the requests name. What stands behind a bridge or a command line cannot tell that itself.

import { createServer, request } from "node:http";

export async function openDoor(url, added = {}) {
  const revisions = new Set();
  const door = createServer((incoming, outgoing) => {
    const { method, headers } = incoming;
    const revision = headers["mcp-protocol-version"];
    if (revision) revisions.add(revision);
    const onward = request(new URL(incoming.url, url), { method, headers: { ...headers, ...added } }, (answer) => {
      outgoing.writeHead(answer.statusCode, answer.headers);
      answer.pipe(outgoing);
    });
    incoming.pipe(onward.on("error", (error) => outgoing.destroy(error)));
  });
  await new Promise((done) => door.listen(0, "127.0.0.1", done));
  const close = () => {
    door.close();
    door.closeAllConnections();
  };
  return { url: `http://127.0.0.1:${door.address().port}/mcp`, revisions, close };
}
