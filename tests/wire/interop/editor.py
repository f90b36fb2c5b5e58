"""Edits the contracts in the current folder with Tombi, as an editor does.

Its argument is the program. Each contract is a folder N/spec; 0/spec is that of the product. Every
check is a line of output. The first that fails ends the script.
"""

import json
import pathlib
import subprocess
import sys
import time

TOMBI = sys.argv[1]
HERE = pathlib.Path.cwd()
TOOLS = HERE / "0/spec/tools/devices.toml"


def lint():
    """Returns the findings in all files."""
    command = [TOMBI, "lint", "--offline", "--quiet", "--diagnostics-format", "json", "--diagnostics-file", "found.json", "."]
    subprocess.run(command, stdout=subprocess.DEVNULL)
    return json.loads(pathlib.Path("found.json").read_text() or "[]")


class Server:
    """The language server."""

    def __init__(self):
        command = [TOMBI, "lsp", "--offline"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.asked = 0
        self.ask("initialize", {"processId": None, "rootUri": HERE.as_uri(), "capabilities": {}})
        self.send({"method": "initialized", "params": {}})

    def send(self, message):
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.process.stdin.flush()

    def ask(self, method, params):
        self.asked += 1
        self.send({"id": self.asked, "method": method, "params": params})
        while True:
            length = 0
            while line := self.process.stdout.readline().strip():
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            if not length:
                sys.exit("the language server has ended")
            answer = json.loads(self.process.stdout.read(length))
            if "method" not in answer:
                return answer.get("result")
            if "id" in answer:
                self.send({"id": answer["id"], "result": None})

    def complete(self, folder, text, at, wanted):
        """Returns what the server offers at a place of a file with this text, once `wanted` is in it."""
        place = {"line": text.count("\n", 0, at), "character": at - text.rfind("\n", 0, at) - 1}
        for _ in range(200):
            # The server handles messages side by side: each question is about a file of its own.
            document = {"uri": (folder / f"draft{self.asked}.toml").as_uri(), "languageId": "toml", "version": 1, "text": text}
            self.send({"method": "textDocument/didOpen", "params": {"textDocument": document}})
            items = self.ask("textDocument/completion", {"textDocument": {"uri": document["uri"]}, "position": place}) or []
            items = items["items"] if isinstance(items, dict) else items
            offered = [item["label"].strip('"') for item in items]
            if wanted in offered:
                break
            # It answers before it has read the schema.
            time.sleep(0.05)
        return offered


def check(name, found, wanted):
    if found != wanted:
        sys.exit(f"{name}: {found} instead of {wanted}")
    print(name)


check("no file has a finding", lint(), [])

text = TOOLS.read_text()
TOOLS.write_text(text.replace("\ntarget = { resource", "\ntarget = {\n  resource", 1))
check("an inline table may have several lines", lint(), [])
wrong = text.replace('\neffect = "read"', '\neffect = "raed"', 1).replace("\nsummary = ", "\nsumary = ", 1)
TOOLS.write_text(wrong)
place = lambda part: wrong[: wrong.index(part) + 1].count("\n") + 1
wanted = [("enum", place('\neffect = "raed"')), ("key-not-allowed", place("\nsumary = "))]
check("a misspelt effect and key", [(found["code"], found["range"]["start"]["line"]) for found in lint()], wanted)
TOOLS.write_text(text)

server = Server()
for name, key, wanted in [
    ("a key", "\n", "use_when"),
    ("an effect", "\neffect = ", "issue"),
    ("a permission", "\npermission = ", "device_read"),
    ("an error", "\nerrors = [", "not_offered"),
    ("a result", "\nresult = ", "DeviceDetail"),
    ("a resource", "\ntarget = { resource = ", "device"),
    ("a capability", "\ntarget = { requires = ", "power"),
    ("a probe", "\n[tool.task]\nprobe = ", "exit_ip"),
    ("a type", "\n[tool.args]\nlimit = { type = ", "PageSize"),
]:
    begin = text[: text.index("\n\n")] + '\n[[tool]]\nname = "another"' + key
    end = {"[": "]", "{": " }"}.get("[" if key.endswith("[") else "{" if "{" in key else "", "")
    offered = server.complete(TOOLS.parent, begin + end + "\n", len(begin), wanted)
    check(f"{name} is completed", wanted if wanted in offered else offered, wanted)
server.process.kill()
