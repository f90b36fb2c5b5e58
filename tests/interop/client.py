"""The official Python client of the protocol, of either major version, against a running server.

Reads what to call as JSON from its input; answers with a JSON line for each check.
"""

import asyncio
import json
import sys
import traceback
from contextlib import asynccontextmanager, contextmanager
from importlib.metadata import version

from mcp.client.streamable_http import streamable_http_client

PLAN = json.load(sys.stdin)
TIMEOUT_SECONDS = 90

VERSION = version("mcp")
print(json.dumps({"client": f"Python {VERSION}"}))

if VERSION.startswith("1."):
    import httpx
    from mcp import ClientSession

    @asynccontextmanager
    async def connect(headers):
        async with (
            httpx.AsyncClient(headers=headers, timeout=TIMEOUT_SECONDS) as http,
            streamable_http_client(PLAN["url"], http_client=http) as (read, write, _),
            ClientSession(read, write) as client,
        ):
            yield client, (await client.initialize()).protocolVersion

else:
    import httpx2
    from mcp.client import Client

    @asynccontextmanager
    async def connect(headers):
        async with (
            httpx2.AsyncClient(headers=headers, timeout=TIMEOUT_SECONDS) as http,
            Client(streamable_http_client(PLAN["url"], http_client=http)) as client,
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


async def names(client):
    return [tool.name for tool in (await client.list_tools()).tools]


async def call(client, tool, arguments):
    """Answers with the object in the result, and whether it is an error."""
    result = (await client.call_tool(tool, arguments)).model_dump(by_alias=True)
    return json.loads(result["content"][0]["text"]), result["isError"]


async def succeed(client, tool, arguments):
    value, is_error = await call(client, tool, arguments)
    expect((False, dict), (is_error, type(value)))
    return value


async def refuse(client, tool, arguments, code):
    value, is_error = await call(client, tool, arguments)
    expect((True, code), (is_error, value.get("code")))


async def everything(client, agreed):
    with check("initialize"):
        expect_one_of(PLAN["versions"], agreed)
    with check("tools/list"):
        expect([tool["name"] for tool in PLAN["tools"]], await names(client))
    tasks = []
    for tool in PLAN["tools"]:
        with check(tool["name"]):
            for example in tool["examples"]:
                if "task_id" not in example:
                    value = await succeed(client, tool["name"], example)
                    tasks += [value["task_id"]] if tool["task"] else []
                    continue
                # No example can know the id of a task that exists: each one's end is awaited.
                for task_id in tasks:
                    task = {"terminal": False}
                    while not task["terminal"]:
                        task = await succeed(client, tool["name"], example | {"task_id": task_id})
                    expect_one_of(["success", "success_unverified"], task["status"])
    with check("invalid_argument"):
        await refuse(client, PLAN["tools"][0]["name"], {"no_such_argument": 1}, "invalid_argument")
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
        expect(set(), {tool["name"] for tool in writes} & set(await names(client)))
    with check("forbidden"):
        for tool in writes:
            for example in tool["examples"]:
                await refuse(client, tool["name"], example, "forbidden")


async def main():
    writer, reader = PLAN["keys"]
    async with connect({"X-Api-Key": writer["id"], "X-Api-Secret": writer["secret"]}) as connected:
        await everything(*connected)
    with check("bearer"):
        async with connect({"Authorization": f"Bearer {reader['id']}:{reader['secret']}"}) as (client, _):
            await what_a_reader_may(client)
    with check("wrong secret"):
        told = "no error"
        try:
            async with connect({"Authorization": f"Bearer {writer['id']}:{reader['secret']}"}):
                pass
        except Exception:
            told = traceback.format_exc()
        if "401 Unauthorized" not in told and "The credentials are" not in told:
            raise ValueError(told)


asyncio.run(main())
