"""Python's own client of MCP: mcp_client.py MODE ACTION -- COMMAND... (or a URL, with TOKEN in the environment).

Standard input: JSON, a list of [tool, arguments].  Standard output: JSON, what the client made of each.  ACTION is what its user says
when he is asked: accept, decline, cancel, or none (it cannot ask).
"""

import json
import os
import sys

import anyio
import httpx2 as httpx
import mcp_types as types
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client


async def main():
    mode, action, _, *command = sys.argv[1:]
    asked = []

    async def ask(context, params):
        asked.append(params.message)
        return types.ElicitResult(action=action, content={"run": True} if action == "accept" else None)

    if command[0].startswith("http"):
        headers = {"Authorization": "Bearer " + os.environ["TOKEN"]}
        transport = streamable_http_client(command[0], http_client=httpx.AsyncClient(headers=headers, timeout=60))
    else:
        transport = stdio_client(StdioServerParameters(command=command[0], args=command[1:], env=dict(os.environ)))
    async with Client(transport, mode=mode, elicitation_callback=None if action == "none" else ask) as client:
        tools = (await client.list_tools()).tools
        told = {"version": client.protocol_version, "tools": [tool.name for tool in tools], "calls": [],
                "schemas": {tool.name: tool.output_schema for tool in tools},
                "resources": [str(one.uri) for one in (await client.list_resources()).resources],
                "prompts": [one.name for one in (await client.list_prompts()).prompts]}
        read = await client.read_resource("probing://skills/hang")
        told["hang"] = read.contents[0].text
        prompt = await client.get_prompt("hang", {"target": "1"})
        told["prompt"] = prompt.messages[0].content.text
        for tool, arguments in json.load(sys.stdin):
            result = await client.call_tool(tool, arguments)
            told["calls"].append({"error": result.is_error, "text": result.content[0].text, "structured": result.structured_content})
        told["asked"] = asked
        print(json.dumps(told))


anyio.run(main)
