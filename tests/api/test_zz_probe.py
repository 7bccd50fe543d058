import asyncio
from urllib.parse import urlencode
from tests.api.service import *

async def raw(service, data, timeout=3):
    from yarl import URL
    u = URL(service.url)
    r, w = await asyncio.open_connection(u.host, u.port)
    w.write(data)
    out = b""
    try:
        async with asyncio.timeout(timeout):
            while True:
                c = await r.read(65536)
                if not c: out += b"<EOF>"; break
                out += c
    except TimeoutError: out += b"<OPEN>"
    except ConnectionError as e: out += repr(e).encode()
    w.close()
    return out

async def test_probe(service, client, token):
    a = await client.post("competitors.json", {"name": "Ada"})
    print(a.status, a.body)
    print((await client.get("competitors.json?page=999999999999999999")))
    print((await client.get("competitors.json?page=%00")).body)
    for p in ["/tournament/a%00b/rankings.json", "/tournament/a%FFb/rankings.json", "/tournament/%ED%A0%80/rankings.json", "/tournament/%2F/rankings.json", "/tournament/" + client.tournament + "/rankings.json?%ff=%ff", "/tournament/" + "a"*7000 + "/rankings.json"]:
        try:
            x = await client.send("GET", p); print(p[:60], x.status, x.body[:200])
        except Exception as e: print(p[:50], repr(e))
    x = await client.get("rankings.json", {"Expect": "foo"}); print(x)
    x = await client.get("rankings.json", {"If-None-Match": '"*"'}); print(x)
    tok = f"Authorization: Bearer {token}\r\nHost: x\r\n".encode()
    for d in [
        b"GET /tournament/\xff\xfe/rankings.json HTTP/1.1\r\n" + tok + b"\r\n",
        b"GET /tournament/%s/rankings.json?\xff=1 HTTP/1.1\r\n" % client.tournament.encode() + tok + b"\r\n",
        b"GET * HTTP/1.1\r\n" + tok + b"\r\n",
        b"OPTIONS * HTTP/1.1\r\n" + tok + b"\r\n",
        b"GET foo HTTP/1.1\r\n" + tok + b"\r\n",
        b"CONNECT a:1 HTTP/1.1\r\n" + tok + b"\r\n",
        b"GET http://evil:99999/tournament/%s/rankings.json HTTP/1.1\r\n" % client.tournament.encode() + tok + b"\r\n",
        b"GET http://evil/tournament/%s/rankings.json HTTP/1.1\r\n" % client.tournament.encode() + tok + b"\r\n",
        b"GET http://[::1/ HTTP/1.1\r\n" + tok + b"\r\n",
        b"GET //[/x HTTP/1.1\r\n" + tok + b"\r\n",
        b"GET /healthz HTTP/1.1\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET /healthz HTTP/1.0\r\n\r\n",
        b"GET /healthz\r\n\r\n",
        b"GET /healthz HTTP/2.0\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET /healthz HTTP/1.1\nHost: a\n\n",
        b"GET /healthz HTTP/1.1\r\nHost: a\r\nX: a\r\n b\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: a\r\nX: a\x00b\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: a\r\nX: a\x01b\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: a\r\nX : b\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: a\r\nX: " + b"a"*9000 + b"\r\n\r\n",
        b"GET /" + b"a"*9000 + b" HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: a\r\n" + b"".join(b"X-%d: b\r\n" % i for i in range(200)) + b"\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"\r\n\r\nGET /healthz HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nabc",
        b"GET /healthz HTTP/1.1\r\nHost: a\r\nX-Request-Id: " + "é".encode() + b"\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: a\r\nX: \xff\xfe\r\n\r\n",
        b"\xc9\xff /healthz HTTP/1.1\r\nHost: a\r\n\r\n",
        b"FOO /healthz HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /tournament/x/rankings/\xff.json HTTP/1.1\r\nHost: a\r\n\r\n",
        b"PUT /tournament/%s/rankings/\xff.json HTTP/1.1\r\n" % client.tournament.encode() + tok + b"\r\n",
        b"PUT /tournament/%s/rankings/1.json HTTP/1.1\r\nContent-Type: text/\xff\xfe\r\nContent-Length: 1\r\n" % client.tournament.encode() + tok + b"\r\na",
        b"PUT /tournament/%s/rankings/1.json HTTP/1.1\r\nContent-Type: application/x-www-form-urlencoded; charset=\"\xff\xfe\r\nContent-Length: 1\r\n" % client.tournament.encode() + tok + b"\r\na",
    ]:
        print("---", d[:90], "\n   ", (await raw(service, d, 0.7))[:420])
    P = b"POST /tournament/%s/competitors.json HTTP/1.1\r\nContent-Type: application/x-www-form-urlencoded\r\n" % client.tournament.encode() + tok
    for d in [
        P + b"Content-Length: 8\r\nContent-Length: 8\r\n\r\nname=Ada",
        P + b"Content-Length: 8\r\nContent-Length: 9\r\n\r\nname=Ada",
        P + b"Content-Length: 8, 8\r\n\r\nname=Ada",
        P + b"Content-Length: +8\r\n\r\nname=Ada",
        P + b"Content-Length: -1\r\n\r\nname=Ada",
        P + b"Content-Length: 99999999999999999999999\r\n\r\nname=Ada",
        P + b"Content-Length: 10000000000\r\n\r\nname=Ada",
        P + b"Content-Length: 8\r\nTransfer-Encoding: chunked\r\n\r\n8\r\nname=Ada\r\n0\r\n\r\n",
        P + b"Transfer-Encoding: chunked\r\nContent-Length: 8\r\n\r\n8\r\nname=Ada\r\n0\r\n\r\n",
        P + b"Transfer-Encoding: chunked, identity\r\n\r\n8\r\nname=Ada\r\n0\r\n\r\n",
        P + b"Transfer-Encoding: xchunked\r\n\r\n8\r\nname=Ada\r\n0\r\n\r\n",
        P + b"Transfer-Encoding : chunked\r\n\r\n8\r\nname=Ada\r\n0\r\n\r\n",
        P + b"Transfer-Encoding: chunked\r\n\r\n8\r\nname=Ada\r\n0\r\n\r\n",
        P + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nname=Ada\r\n0\r\n\r\n",
        P + b"Transfer-Encoding: chunked\r\n\r\n8\nname=Ada\n0\n\n",
        P + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n8\r\nname=Ada\r\n0\r\n\r\n",
        P + b"Expect: 100-continue\r\nContent-Length: 8\r\n\r\nname=Ada",
        P + b"Content-Encoding: gzip\r\nContent-Length: 8\r\n\r\nname=Ada",
    ]:
        print("---", d[len(P):][:90], "\n   ", (await raw(service, d, 0.7))[:420])
    print((await client.get("competitors.json?per_page=1")).json["competitors"]["total"])
