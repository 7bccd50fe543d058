#!/usr/bin/env bash
# Chromium and libcurl send a POST a second time, of their own accord, if its connection closes without an answer.
#
# Guess: a server reads a POST on a connection that served a request before, and ends before it answers. The client
# reports an error, as it cannot know what was done; it may repeat a GET, but no POST (RFC 9110, 9.2.2).
# What happens: that is what aiohttp, httpx2 and niquests do. Chromium sends the same POST again over a new connection,
# that of a form and that of `fetch`. So does libcurl, and with it PycURL and curl_cffi. They take it that the server
# had closed an idle connection and read nothing. Page and program get one answer, that to the second request, and learn
# of no other.
#
# Why it matters to a ranking service: a server that restarts between its commit and its answer has the result twice,
# though nobody pressed twice. A key that the server makes when a request arrives is another one each time; one that was
# made with the page comes twice, too. So forms need their key in the page, hidden, and scripts in a header.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export TMPDIR=$folder
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check aiohttp==3.14.5 curl_cffi==0.17.0 httpx2==2.16.2 \
    niquests==3.21.2 playwright==1.65.2 pycurl==7.49.0
cd "$folder"
npm install --silent --no-audit --no-fund --prefix "$folder" @sparticuz/chromium@153.0.0
cat >"$folder/unpack.mjs" <<'NODE'
import chromium from "@sparticuz/chromium";
console.log(await chromium.executablePath());
NODE
CHROMIUM=$(node "$folder/unpack.mjs")
export CHROMIUM
"$folder/venv/bin/python" - <<'PYTHON'
import asyncio
import os
import sys

import aiohttp
import curl_cffi
import httpx2
import niquests
import pycurl
from aiohttp import web
from playwright.async_api import async_playwright

FORM = '<form method="post" action="/result"><input name="result" value="2:1"><button>Send</button></form>'
RESULT = {"result": "2:1"}
arrived = []  # the results that reached the server, each with the key of its request
used = set()  # the connections that served a request before


async def page(request):
    used.add(request.transport)
    return web.Response(text="<!doctype html>" + FORM, content_type="text/html")


async def result(request):
    arrived.append((await request.text(), request.headers.get("Idempotency-Key")))
    if request.transport in used and len(arrived) == 1:
        request.transport.close()  # as where the process ends here, behind its commit
    return web.Response(text="taken")


async def by_aiohttp(address):
    async with aiohttp.ClientSession() as session:
        await (await session.get(address)).read()
        async with session.post(address + "result", data=RESULT) as answer:
            return await answer.text()


async def by_httpx2(address):
    async with httpx2.AsyncClient() as client:
        await client.get(address)
        return (await client.post(address + "result", data=RESULT)).text


async def by_niquests(address):
    async with niquests.AsyncSession() as session:
        await session.get(address)
        return (await session.post(address + "result", data=RESULT)).text


async def by_curl_cffi(address):
    async with curl_cffi.AsyncSession() as session:
        await session.get(address)
        return (await session.post(address + "result", data=RESULT)).text


async def by_pycurl(address):
    def run():
        curl = pycurl.Curl()
        curl.setopt(pycurl.URL, address)
        curl.perform_rs()
        curl.setopt(pycurl.URL, address + "result")
        curl.setopt(pycurl.POSTFIELDS, "result=2%3A1")
        return curl.perform_rs()

    return await asyncio.to_thread(run)


def in_page(action):
    async def by_chromium(address):
        async with async_playwright() as playwright:
            arguments = ["--no-sandbox", "--headless", "--disable-gpu"]
            browser = await playwright.chromium.launch(executable_path=os.environ["CHROMIUM"], args=arguments)
            try:
                tab = await browser.new_page()
                await tab.goto(address)
                return await action(tab)
            finally:
                await browser.close()

    return by_chromium


async def form(tab):
    await tab.click("button")
    await tab.wait_for_url("**/result")
    return await tab.inner_text("body")


async def script(tab):
    return await tab.evaluate(
        """async () => {
            const sent = { method: "POST", body: "result=2%3A1", headers: { "Idempotency-Key": "made-by-the-page" } }
            return (await fetch("result", sent)).text()
        }"""
    )


async def main():
    print(f"Python {sys.version.split()[0]}, {pycurl.version.split(' OpenSSL')[0]}")
    application = web.Application()
    application.add_routes([web.get("/", page), web.post("/result", result)])
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    address = f"http://127.0.0.1:{runner.addresses[0][1]}/"
    clients = {
        "aiohttp 3.14.5": by_aiohttp,
        "httpx2 2.16.2": by_httpx2,
        "niquests 3.21.2": by_niquests,
        "curl_cffi 0.17.0": by_curl_cffi,
        "PycURL 7.49.0": by_pycurl,
        "Chromium 153, a form": in_page(form),
        "Chromium 153, fetch": in_page(script),
    }
    times = {}
    for name, client in clients.items():
        arrived.clear()
        used.clear()
        try:
            seen = f"the answer {await client(address)!r}"
        except (aiohttp.ClientError, httpx2.HTTPError, niquests.RequestException) as error:
            seen = type(error).__name__
        times[name] = (len(arrived), seen.startswith("the answer"))
        print(f"{name}: sees {seen}; arrived: {arrived}")
        if len(set(arrived)) != 1:
            sys.exit("what arrived is not the same")
    await runner.cleanup()
    once, twice = (1, False), (2, True)
    sys.exit(0 if list(times.values()) == [once, once, once, twice, twice, twice, twice] else "it has changed")


asyncio.run(main())
PYTHON
