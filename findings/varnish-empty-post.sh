#!/usr/bin/env bash
# Varnish sends a POST without a body a second time, if the server closes the connection before it answers.
#
# Guess: a server reads a POST on a connection that its proxy has used before, and ends before it answers. The proxy
# answers 502 or 503, as it cannot know what was done; it may repeat a GET, but no POST (RFC 9110, 9.2.2).
# What happens: that is what nginx does with every POST, and Varnish with one that has a body. Without a body, it goes
# to the server again, over a new connection: Varnish asks whether a body is gone that it cannot repeat, not for the
# method. The client gets the answer to the second.
#
# Why it matters to a ranking service: actions that need no words have no body: pair the next round, draw lots. If the
# server ends between its commit and its answer, two rounds are paired, and nobody sees an error. Such a request needs a
# key, or must name what it acts upon, here the round. Needs gcc, as Varnish compiles its configuration.
set -euo pipefail
folder=$(mktemp -d)
started=()
trap '{ kill "${started[@]}" && wait; } 2> /dev/null || true; rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check aiohttp==3.14.5
cd "$folder"
apt-get --quiet=2 download varnish=7.1.1-2+deb12u1 libvarnishapi3=7.1.1-2+deb12u1 nginx=1.22.1-9+deb12u9 2> said
for package in *.deb; do dpkg-deb --extract "$package" debian; done
libraries=$(echo "$folder"/debian/usr/lib/*-linux-gnu)
export LD_LIBRARY_PATH=$libraries:$libraries/varnish
read -r server varnish nginx < <(python3 - <<'PYTHON'
import socket

taken = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
print(*(one.getsockname()[1] for one in taken))
PYTHON
)
cat > varnish.vcl <<VCL
vcl 4.1;
backend default { .host = "127.0.0.1"; .port = "$server"; }
VCL
cat > nginx.conf <<NGINX
daemon off;
pid $folder/nginx.pid;
error_log $folder/nginx.log;
events {}
http {
    access_log off;
    client_body_temp_path $folder/1; proxy_temp_path $folder/2; fastcgi_temp_path $folder/3;
    uwsgi_temp_path $folder/4; scgi_temp_path $folder/5;
    upstream server { server 127.0.0.1:$server; keepalive 4; }
    server {
        listen 127.0.0.1:$nginx;
        location / { proxy_pass http://server; proxy_http_version 1.1; proxy_set_header Connection ""; }
    }
}
NGINX
debian/usr/sbin/varnishd -V 2>&1 | head -n 1
debian/usr/sbin/nginx -v
debian/usr/sbin/varnishd -F -j none -a "127.0.0.1:$varnish" -f "$folder/varnish.vcl" -n "$folder/varnish" \
    > varnish.log 2>&1 &
started+=($!)
debian/usr/sbin/nginx -p "$folder" -c "$folder/nginx.conf" 2> /dev/null &
started+=($!)
cat > asked.py <<'PYTHON'
import asyncio
import sys

import aiohttp
from aiohttp import web

arrived = []  # the actions that reached the server
used = set()  # the connections that served a request before


async def page(request):
    used.add(request.transport)
    return web.Response(text="page", headers={"Cache-Control": "no-store"})


async def action(request):
    arrived.append(await request.text())
    if request.transport in used and len(arrived) == 1:
        request.transport.close()  # as where the process ends here, behind its commit
    return web.Response(text="paired")


async def main(server, **proxies):
    application = web.Application()
    application.add_routes([web.get("/", page), web.post("/next-round", action)])
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", server).start()
    seen = {}
    async with aiohttp.ClientSession() as session:
        for name, port in proxies.items():
            for body in ("", "round=4"):
                address = f"http://127.0.0.1:{port}/"
                while True:  # until the proxy has started
                    try:
                        async with session.get(address) as answer:
                            if answer.status == 200:
                                break
                    except aiohttp.ClientConnectionError:
                        pass
                    await asyncio.sleep(0.1)
                arrived.clear()
                async with session.post(address + "next-round", data=body.encode()) as answer:
                    seen[name, body] = (answer.status, len(arrived))
                print(f"{name}, POST of {body!r}: answered {answer.status}, arrived {len(arrived)} times")
    await runner.cleanup()
    expected = {("varnish", ""): (200, 2), ("varnish", "round=4"): (503, 1)}
    expected |= {("nginx", ""): (502, 1), ("nginx", "round=4"): (502, 1)}
    return seen == expected


server, varnish, nginx = map(int, sys.argv[1:])
as_expected = asyncio.run(asyncio.wait_for(main(server, varnish=varnish, nginx=nginx), 120))
sys.exit(0 if as_expected else "it has changed")
PYTHON
"$folder/venv/bin/python" asked.py "$server" "$varnish" "$nginx"
