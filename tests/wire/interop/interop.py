"""Official clients of the protocol, its conformance suites, the samples of docs/clients.md and an
editor, against the programs that `cargo test --workspace --no-run` built. `--all` pins each client.

A client is a program beside this one that calls what it is told, and lock files pin its packages. Each
runs with its own choice of revision; the two official SDKs (with `--all`, each client) also run pinned
to each revision that the contract serves.
"""

import http.client
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
import traceback
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()
HOME = TARGET / "interop"
PROGRAM = TARGET / "debug/cloudphone"
ALL = "--all" in sys.argv[1:]

# The package changed its name with its second major version.
SDK_2, SDK_1 = "@modelcontextprotocol/client", "@modelcontextprotocol/sdk"
AS_IT_COMES = "as it comes"
# Clients wait most of the time. On an idle machine, the longest takes 20 s.
AT_ONCE, PATIENCE = 4, 300

RECORD = tomllib.loads((ROOT / "spec/generated/contract.toml").read_text())
SPECS = [tomllib.loads(file.read_text())["tool"] for file in sorted((ROOT / "spec/tools").iterdir())]
# The server has no toolset.
TOOLS = [tool for spec in SPECS for tool in spec if "toolset" not in tool]
REVISIONS = sorted(RECORD["revision"])
WRITES = [tool for tool in TOOLS if RECORD["tool"][tool["name"]]["effect"] == "task"]
LEFT_OUT = tomllib.loads((HERE / "conformance.toml").read_text())["left_out"]


def run(*command, **more):
    return subprocess.run(list(map(str, command)), check=True, text=True, **more)


def python(lock):
    folder = HOME / lock
    if not (folder / "bin/python").exists():
        run(sys.executable, "-m", "venv", folder)
    flags = ["--quiet", "--disable-pip-version-check", "--require-hashes", "--requirement"]
    run(folder / "bin/pip", "install", *flags, HERE / f"{lock}.txt")
    return folder / "bin/python"


def node():
    """Returns a Node that can run every package. Without it, they need Node.js 22.19 or later."""
    run("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", cwd=HERE)
    machine = "x64" if platform.machine() == "x86_64" else "arm64"
    locked = HERE / f"node_modules/node-{sys.platform}-{machine}/bin/node"
    return locked if locked.exists() else "node"


class Cell:
    """One client with one choice of revision."""

    def __init__(self, name, pin=None):
        self.client, self.pin, self.checks, self.left_out = name, pin, [], []
        self.revision = self.unspoken = None

    @contextmanager
    def check(self, name):
        """Notes how its block ended; a failure does not keep the next check from running."""
        why = None
        try:
            yield
        except Exception:
            why = traceback.format_exc()
        self.checks.append((name, why))

    def title(self):
        return f"{self.client}, {self.pin or AS_IT_COMES}"

    def failures(self):
        return [(check, why) for check, why in self.checks if why is not None]

    def text(self):
        failed = self.failures()
        if failed:
            return f"FAILED: {failed[0][0]}" + (f" and {len(failed) - 1} more" if failed[1:] else "")
        if self.unspoken:
            return "-"
        return f"ok, {self.revision}" if self.revision and not self.pin else "ok"

    def show(self, seconds):
        lines = [f"\n> {self.title()}: {seconds:.0f} s"]
        lines += [f"ok      {check}" if why is None else f"FAILED  {check}: {why}" for check, why in self.checks]
        lines += [f"-       {name}: {why}" for name, why in self.left_out]
        print("\n".join(lines + ([f"-       {self.unspoken}"] if self.unspoken else [])), flush=True)


class Server:
    """The program, as users start it, in a folder of its own."""

    def __init__(self, number):
        self.home = HOME / f"run-{number}"
        shutil.rmtree(self.home, ignore_errors=True)
        self.home.mkdir(parents=True)

    def __enter__(self):
        words = [PROGRAM, "--demo", "--json", "--listen", "127.0.0.1:0", "--data", self.home / "data"]
        with open(self.home / "log", "w") as log:
            self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=log)
        told = json.loads(self.process.stdout.readline())
        self.url, self.keys = told["url"], [{"id": key["key_id"], "secret": key["secret"]} for key in told["keys"]]
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def expect(wanted, found):
    if wanted != found:
        raise ValueError(f"expected {wanted}, found {found}")


class Client:
    """A client as a process; it is killed if it takes too long."""

    def __init__(self, command, plan, home):
        # Clients must not write data about a user into the user's own folder.
        environment = {**os.environ, "HOME": str(home)}
        self.log = open(home / "client-log", "w+")
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": self.log, "text": True}
        self.process = subprocess.Popen(list(map(str, command)), cwd=HERE, env=environment, **pipes)
        self.timer = threading.Timer(PATIENCE, self.process.kill)
        self.timer.start()
        self.begun = self.ask(plan)

    def ask(self, what):
        self.process.stdin.write(json.dumps(what) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise EOFError(f"it has ended:\n{pathlib.Path(self.log.name).read_text()}")
        return json.loads(line)

    def succeed(self, what):
        said = self.ask(what)
        if said.get("error"):
            raise ValueError(said["error"])
        return said

    @contextmanager
    def session(self, **asked):
        revision = self.succeed(asked)["revision"]
        try:
            yield revision
        finally:
            self.succeed(None)

    def listed(self):
        return self.succeed([None, None])["result"]

    def call(self, tool, arguments, structured):
        """Returns the object in the result, and whether it is an error."""
        result = self.succeed([tool, arguments])["result"]
        value, is_error = json.loads(result["content"][0]["text"]), bool(result.get("isError"))
        expect(value if structured and not is_error else None, result.get("structuredContent"))
        return value, is_error

    def refuse(self, tool, arguments, code):
        value, is_error = self.call(tool, arguments, False)
        expect((True, code), (is_error, value.get("code")))

    def end(self):
        self.process.stdin.close()
        self.process.wait()
        self.timer.cancel()


def try_client(command, over, pin, server):
    client = Client(command, {"url": server.url, "revision": pin}, server.home)
    cell = Cell(client.begun["client"] + (f" over {over}" if over else ""), pin)
    cell.unspoken = client.begun["unspoken"]
    if not cell.unspoken:
        try_sessions(client, cell, over, server)
    client.end()
    with cell.check("its own end"):
        expect(0, client.process.returncode)
    return cell


def try_sessions(client, cell, over, server):
    writer, reader = server.keys

    def session(key, is_pair=False):
        bearer = f"{key['id']}:{key['secret']}"
        headers = {"X-Api-Key": key["id"], "X-Api-Secret": key["secret"]} if is_pair else {"Authorization": f"Bearer {bearer}"}
        permission = ["--permission", "device_read"] if key is reader else []
        command = {"stdio": ["stdio", *permission], "bridge": ["bridge", "--url", server.url]}.get(over)
        env = {"CLOUDPHONE_KEY": bearer} if over == "bridge" else {}
        return client.session(headers=headers, command=command and [str(PROGRAM), *command], env=env)

    with cell.check("all that a key may do"), session(writer, is_pair=True) as agreed:
        with cell.check("handshake"):
            cell.revision = agreed
            expect(True, agreed in ([cell.pin] if cell.pin else REVISIONS))
        try_all(client, cell, agreed >= "2025-06-18")
    with cell.check("bearer"), session(reader):
        with cell.check("tools/list of a reader"):
            expect(set(), {tool["name"] for tool in WRITES} & {tool["name"] for tool in client.listed()})
        with cell.check("forbidden"):
            for tool in WRITES:
                for example in tool["example"]:
                    client.refuse(tool["name"], example["arguments"], "forbidden")
    if over != "stdio":
        with cell.check("wrong secret"):
            told = ""
            try:
                with session({**writer, "secret": reader["secret"]}):
                    client.listed()
            except ValueError as error:
                told = str(error)
            # Where there is no handshake, some tell the status alone, and over a bridge that nothing was offered.
            expect(True, bool(re.search("401|unauthenticated|The credentials are|did not offer pinned", told)) or told)


def try_all(client, cell, structured):
    def succeed(tool, arguments):
        value, is_error = client.call(tool, arguments, structured)
        expect((False, dict), (is_error, type(value)))
        return value

    with cell.check("tools/list"):
        tools = client.listed()
        expect([tool["name"] for tool in TOOLS], [tool["name"] for tool in tools])
        for tool in tools:
            expect("object" if structured else None, (tool.get("outputSchema") or {}).get("type"))
    tasks = []
    for tool in TOOLS:
        with cell.check(tool["name"]):
            for example in tool.get("example", []):
                value = succeed(tool["name"], example["arguments"])
                tasks += [value["task_id"]] if tool in WRITES else []
    # No example can know the id of a task that exists.
    with cell.check("the end of each task"):
        expect(True, bool(tasks))
        for task in tasks:
            ended = {"terminal": False}
            while not ended["terminal"]:
                ended = succeed("get_task", {"task_id": task, "wait_seconds": 25})
            expect(True, ended["status"] in ["success", "success_unverified"] or ended)
    with cell.check("invalid_argument"):
        client.refuse(TOOLS[0]["name"], {"limits": 1}, "invalid_argument")
    with cell.check("unknown tool"):
        expect(-32602, client.ask(["no_such_tool", {}]).get("code"))


class Door(BaseHTTPRequestHandler):
    """Hands each request on with a key, because the suite cannot send one, and notes its revision."""

    def hand_on(self):
        body = self.rfile.read(int(self.headers["content-length"] or 0))
        self.server.revisions.add(self.headers["mcp-protocol-version"])
        onward = http.client.HTTPConnection(self.server.onward)
        onward.request(self.command, self.path, body, {**self.headers, **self.server.added})
        answer = onward.getresponse()
        self.send_response_only(answer.status)
        for name, value in answer.getheaders():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer.read())

    do_GET = do_POST = do_DELETE = do_OPTIONS = hand_on


def why_left_out(name):
    return next((entry["why"] for entry in LEFT_OUT if name in entry["names"]), None)


def try_suite(node, suite, pin, server):
    """Runs all scenarios for servers. What is left out must fail, be skipped or warn; any other must hold."""
    version = json.loads((HERE / f"node_modules/{suite}/package.json").read_text())["version"]
    cell = Cell(f"conformance {version}", pin)
    if pin not in [None, "2025-11-25"] and version.startswith("0.1."):
        cell.unspoken = "its client offers 2025-11-25 to every server"
        return cell
    door = ThreadingHTTPServer(("127.0.0.1", 0), Door)
    key = server.keys[0]
    door.onward, door.added, door.revisions = server.url.split("/")[2], {"X-Api-Key": key["id"], "X-Api-Secret": key["secret"]}, set()
    threading.Thread(target=door.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as results:
        which = ["--spec-version", pin] if pin else []
        flags = ["server", "--url", f"http://127.0.0.1:{door.server_port}/mcp", "--suite", "all", "--output-dir", results, *which]
        # Its status says whether all is well with a server that has everything.
        ended = subprocess.run([node, HERE / f"node_modules/{suite}/dist/index.js", *flags], capture_output=True, text=True, timeout=PATIENCE)
        folders = sorted(pathlib.Path(results).iterdir())
        for folder in folders:
            scenario = re.sub(r"^server-|-\d{4}-\d\d-\d\dT[^T]*$", "", folder.name)
            # A scenario that broke off has no checks.
            file = folder / "checks.json"
            wrong = judge(cell, scenario, json.loads(file.read_text()) if file.exists() else [])
            if wrong is not None:
                cell.checks.append((scenario, "\n".join(wrong) or None))
    door.shutdown()
    if not folders:
        cell.checks.append(("its results", ended.stderr))
    elif not cell.checks:
        cell.unspoken = "none of its scenarios for that revision applies"
    elif pin:
        cell.checks.append(("handshake", None if pin in door.revisions else f"it spoke {door.revisions}"))
    return cell


def judge(cell, scenario, checks):
    """Returns what is wrong, or None if nothing of the scenario applies."""

    def held(check):
        return check["status"] in ["SUCCESS", "INFO"]

    def told(check):
        return f"{check['id']}: {check['status']}: {check.get('errorMessage')}"

    # This check judges every answer, also to a request for what the server does not offer.
    own = [check for check in checks if check["id"] != "wire-schema-valid"]
    broken = [check for check in checks if not held(check)]
    always = [told(check) for check in broken if check not in own]
    some = any(check["status"] == "SUCCESS" for check in own)
    if why := why_left_out(scenario):
        if some and all(map(held, own)):
            return ["it holds: it is to be left out no longer"]
        cell.left_out.append((scenario, why))
        return always or None
    excused = [check for check in broken if check in own and why_left_out(check["id"])]
    cell.left_out += [(check["id"], why_left_out(check["id"])) for check in excused]
    wrong = [told(check) for check in broken if check not in excused]
    if not some and not wrong:
        return None if excused else ["no check of its own was made"]
    return wrong


# The fence, the ending, and the comment.
LANGUAGES = {"Python": ("python", "py", "#"), "TypeScript": ("js", "mjs", "//")}


def try_sample(language, major, interpreter, number):
    """Runs a sample as it stands, but for the address and the key. It is for the latest major version of
    its package; a comment that begins with `version 1: ` replaces the line above it for that version."""
    fence, ending, comment = LANGUAGES[language]
    text = re.search(rf"```{fence}\n(.*?)```", (ROOT / "docs/clients.md").read_text(), re.DOTALL)[1]
    mark, lines, above = f"{comment} version 1: ", [], ""
    for line in text.splitlines():
        if not line.startswith(mark):
            lines.append(line)
        elif major == 1:
            if not above.startswith(mark):
                lines.pop()
            lines.append(line.removeprefix(mark))
        above = line
    cell, sample = Cell(f"docs/clients.md, {language} {major}"), "\n".join(lines) + "\n"
    with Server(number) as server:
        key = server.keys[0]
        for old, new in [("http://127.0.0.1:8080/mcp", server.url), ("KEY_ID", key["id"]), ("SECRET", key["secret"])]:
            assert old in sample, f"the sample does not contain {old!r}"
            sample = sample.replace(old, new, 1)
        # Node resolves the packages from the folder of the file.
        file = (HERE / "node_modules" if ending == "mjs" else server.home) / f"sample-{number}.{ending}"
        file.write_text(sample)
        ended = subprocess.run([str(interpreter), str(file)], capture_output=True, text=True, timeout=PATIENCE)
    is_well = ended.returncode == 0 and ended.stdout.strip() == "success"
    cell.checks.append(("as it stands", None if is_well else f"{ended.returncode}: {ended.stdout}{ended.stderr}"))
    return cell


def check_editor():
    """Tombi must have no finding in any contract, find mistakes at their places, and complete names."""
    home = HOME / "editor"
    shutil.rmtree(home, ignore_errors=True)
    folders = ["spec", "tests/services/print_shop/spec", "tests/services/files/spec", "tests/contract/forms"]
    for number, folder in enumerate(folders):
        spec = home / str(number) / "spec"
        shutil.copytree(ROOT / folder, spec, ignore=shutil.ignore_patterns("released.toml", "accepted.toml", "generated"))
        for file in [*spec.glob("*.toml"), *spec.glob("tools/*.toml")]:
            text, is_tools = file.read_text(), file.parent.name == "tools"
            schema = "../generated/editor/tools" if is_tools else f"generated/editor/{file.stem}"
            if not text.startswith("#:schema "):
                file.write_text(f"#:schema {schema}.schema.json\n{text}")
        run(TARGET / "debug/toolwarrant", "--spec", spec, "gen", stdout=subprocess.DEVNULL)
    interpreter = python("tombi")
    said = run(interpreter, HERE / "editor.py", interpreter.with_name("tombi"), cwd=home, stdout=subprocess.PIPE).stdout
    print("".join(f"editor: {line}\n" for line in said.splitlines()))
    return len(said.splitlines())


def main():
    passed = check_editor()
    pythons, js = {major: python(f"python-{major}") for major in [2, 1]}, node()
    clients = [([pythons[major], "client.py"], over, major == 2) for major in [2, 1] for over in [None, "stdio"]]
    scripts = [([js, "client.mjs", package], package == SDK_2) for package in [SDK_2, SDK_1]]
    clients += [(script, over, is_2 and not over) for script, is_2 in scripts for over in [None, "stdio"]]
    clients.append(([js, "client.mjs", SDK_2], "bridge", False))
    works = [(lambda pin, server, work=work: try_client(*work, pin, server), is_official) for *work, is_official in clients]
    # The second suite has scenarios for more revisions.
    suites = ["@modelcontextprotocol/conformance", "conformance-next"]
    works += [(lambda pin, server, suite=suite: try_suite(js, suite, pin, server), False) for suite in suites]
    jobs = []
    for row, (work, is_official) in enumerate(works):
        for pin in [None, *(REVISIONS if ALL or is_official else [])]:
            jobs.append((row, lambda server, work=work, pin=pin: work(pin, server)))
    for language, interpreters in [("Python", pythons), ("TypeScript", {2: js, 1: js})]:
        for major, interpreter in interpreters.items():
            row = len(works) + len(jobs)
            jobs.append((row, (language, major, interpreter)))

    def work(job):
        number, (row, what) = job
        begun = time.monotonic()
        if isinstance(what, tuple):
            cell = try_sample(*what, number)
        else:
            with Server(number) as server:
                cell = what(server)
        cell.row = row
        cell.show(time.monotonic() - begun)
        return cell

    # It begins at the end, because samples take the longest.
    with ThreadPoolExecutor(AT_ONCE) as pool:
        cells = list(pool.map(work, reversed(list(enumerate(jobs)))))
    sys.exit(show(cells, passed))


def show(cells, passed):
    pins = [None, *REVISIONS]
    rows = [["", AS_IT_COMES, *REVISIONS]]
    for row in sorted({cell.row for cell in cells}):
        own = {cell.pin: cell for cell in cells if cell.row == row}
        rows.append([own[None].client, *(own[pin].text() if pin in own else "-" for pin in pins)])
    widths = [max(map(len, column)) for column in zip(*rows)]
    print()
    for row in rows:
        print("  ".join(f"{text:{width}}" for text, width in zip(row, widths)).rstrip())
    failures = [f"{cell.title()}: {check}: {why}" for cell in cells for check, why in cell.failures()]
    if ALL:
        met = {name for cell in cells for name, _ in cell.left_out}
        idle = [name for entry in LEFT_OUT for name in entry["names"] if name not in met]
        failures += [f"`{name}` is listed as left out, but no suite left it out" for name in idle]
    for line in [f"{cell.title()}: -, {cell.unspoken}" for cell in cells if cell.unspoken] + failures:
        print(line)
    print(f"\n{passed + sum(len(cell.checks) - len(cell.failures()) for cell in cells)} passed, {len(failures)} failed")
    return 1 if failures else 0


main()
