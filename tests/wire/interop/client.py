"""The official Python client of the protocol, of either major version, against a running server.

Reads what to call as JSON from its input; answers with a JSON line for each check.
"""

import asyncio
import json
import sys
import traceback
from contextlib import asynccontextmanager, contextmanager
from importlib.metadata import version

from mcp import StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

PLAN = json.load(sys.stdin)
# The program itself is the server, and needs no key.
OVER_STDIO = sys.argv[1:] == ["stdio"]
TIMEOUT_SECONDS = 90

# What to be pinned to; None leaves the client as it comes.
REVISION = PLAN["revision"]
VERSION = version("mcp")
FIRST = VERSION.startswith("1.")
print(json.dumps({"client": f"Python {VERSION}{' over stdio' if OVER_STDIO else ''}"}))


@asynccontextmanager
async def transport(http, headers):
    if OVER_STDIO:
        reads = ["--permission", "device_read"] if "Authorization" in headers else []
        streams = stdio_client(StdioServerParameters(command=PLAN["program"], args=["stdio", *reads]))
    else:
        streams = streamable_http_client(PLAN["url"], http_client=http)
    async with streams as streams:
        yield streams


if FIRST:
    import httpx
    from mcp import ClientSession, types
    from mcp.shared.version import SUPPORTED_PROTOCOL_VERSIONS

    if REVISION and REVISION not in SUPPORTED_PROTOCOL_VERSIONS:
        print(json.dumps({"unspoken": f"it has none but {', '.join(SUPPORTED_PROTOCOL_VERSIONS)}"}))
        sys.exit()
    # It offers its latest revision. The server's answer decides what it speaks from then on.
    types.LATEST_PROTOCOL_VERSION = REVISION or types.LATEST_PROTOCOL_VERSION

    @asynccontextmanager
    async def connect(headers):
        async with (
            httpx.AsyncClient(headers=headers, timeout=TIMEOUT_SECONDS) as http,
            transport(http, headers) as streams,
            ClientSession(*streams[:2]) as client,
        ):
            yield client, (await client.initialize()).protocolVersion

else:
    import httpx2
    from mcp.client import Client, session
    from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

    MODE = {"mode": REVISION} if REVISION else {}
    if REVISION in HANDSHAKE_PROTOCOL_VERSIONS:
        MODE = {"mode": "legacy"}
        session.LATEST_HANDSHAKE_VERSION = REVISION

    @asynccontextmanager
    async def connect(headers):
        async with (
            httpx2.AsyncClient(headers=headers, timeout=TIMEOUT_SECONDS) as http,
            Client(transport(http, headers), **MODE) as client,
        ):
            yield client, client.protocol_version


@contextmanager
def check(name):
    """Reports how its block ended; a failure does not keep the next check from running."""
    failure = None
    try:
        yield
    except Exception:
        failure = traceback.format_exc()
    print(json.dumps({"check": name, "failure": failure}))


def expect(wanted, found):
    if wanted != found:
        raise ValueError(f"expected {wanted}, found {found}")


def expect_one_of(wanted, found):
    if found not in wanted:
        raise ValueError(f"expected one of {wanted}, found {found}")


def structured(revision):
    """Whether the revision has output schemas and structured results."""
    return revision >= "2025-06-18"


async def listed(client):
    return [tool.model_dump(by_alias=True) for tool in (await client.list_tools()).tools]


async def call(client, tool, arguments):
    """Answers with the object in the result, and whether it is an error."""
    result = (await client.call_tool(tool, arguments)).model_dump(by_alias=True)
    value = json.loads(result["content"][0]["text"])
    expect(value if structured(agreed) and not result["isError"] else None, result["structuredContent"])
    return value, result["isError"]


async def succeed(client, tool, arguments):
    value, is_error = await call(client, tool, arguments)
    expect((False, dict), (is_error, type(value)))
    return value


async def refuse(client, tool, arguments, code):
    value, is_error = await call(client, tool, arguments)
    expect((True, code), (is_error, value.get("code")))


async def everything(client):
    with check("handshake"):
        print(json.dumps({"revision": agreed}))
        expect_one_of([REVISION] if REVISION else PLAN["versions"], agreed)
    with check("tools/list"):
        tools = await listed(client)
        expect([tool["name"] for tool in PLAN["tools"]], [tool["name"] for tool in tools])
        for tool in tools:
            expect("object" if structured(agreed) else None, (tool["outputSchema"] or {}).get("type"))
    tasks = []
    for tool in PLAN["tools"]:
        with check(tool["name"]):
            for example in tool["examples"]:
                if "task_id" not in example:
                    value = await succeed(client, tool["name"], example)
                    tasks += [value["task_id"]] if tool["task"] else []
                    continue
                # No example can know the id of a task that exists: each one's end is awaited.
                expect(True, bool(tasks))
                for task_id in tasks:
                    task = {"terminal": False}
                    while not task["terminal"]:
                        task = await succeed(client, tool["name"], example | {"task_id": task_id})
                    expect_one_of(["success", "success_unverified"], task["status"])
    with check("invalid_argument"):
        await refuse(client, PLAN["tools"][0]["name"], {"limits": 1}, "invalid_argument")
    with check("unknown tool"):
        try:
            await call(client, "no_such_tool", {})
        except Exception as error:
            expect(-32602, error.error.code)
        else:
            raise ValueError("no error")


async def what_a_reader_may(client):
    writes = [tool for tool in PLAN["tools"] if tool["task"]]
    with check("tools/list of a reader"):
        expect(set(), {tool["name"] for tool in writes} & {tool["name"] for tool in await listed(client)})
    with check("forbidden"):
        for tool in writes:
            for example in tool["examples"]:
                await refuse(client, tool["name"], example, "forbidden")


async def main():
    global agreed
    writer, reader = PLAN["keys"]
    with check("all that a key may do"):
        async with connect({"X-Api-Key": writer["id"], "X-Api-Secret": writer["secret"]}) as (client, agreed):
            await everything(client)
    with check("bearer"):
        async with connect({"Authorization": f"Bearer {reader['id']}:{reader['secret']}"}) as (client, _):
            await what_a_reader_may(client)
    if OVER_STDIO:
        return
    with check("wrong secret"):
        told = "no error"
        try:
            async with connect({"Authorization": f"Bearer {writer['id']}:{reader['secret']}"}) as (client, _):
                await client.list_tools()
        except Exception:
            told = traceback.format_exc()
        if "401 Unauthorized" not in told and "The credentials are" not in told:
            raise ValueError(told)


asyncio.run(main())
