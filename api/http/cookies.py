"""The cookie of a session, and which requests may rely on it.

A browser sends a cookie with every request to its path, whichever page has caused the request. So a request that a
cookie authorises must also come from a page of ours:

- The cookie is SameSite=Strict: a browser does not send it with requests that other sites cause.
- Every change needs an `Origin` that is the origin the request came to. Browsers send it with every POST, and no page
  can set it. Other programs have no use for a cookie: they send their token.
- If a browser sends `Sec-Fetch-Site`, the page must be ours.

The cookie is sent to two paths only: the console, and tournaments, whose streams its pages listen to.
"""

import re
from typing import Final

from api.http.reply import header
from api.http.request import HttpRequest
from engine.domain.errors import Forbidden

COOKIE: Final = "tallybook_session"
COOKIE_PATHS: Final = ("/console", "/tournament")
_COOKIE: Final = re.compile(rf"(?:^|;)[ \t]*{COOKIE}=([0-9A-Za-z_-]{{1,100}})[ \t]*(?=;|\Z)", re.ASCII)
_ORIGIN: Final = re.compile(r'(https?)://([!"$-.0->A-~]+)')  # without / ? # @
_FOREIGN: Final = "This request does not come from a page of this service; open the console itself, and do it there."


def session_text(request: HttpRequest) -> str | None:
    """The text of the session that the request's cookie names; None: there is none, or more than one."""
    found = [text for line in request.headers.getall("Cookie", ()) for text in _COOKIE.findall(line)]
    return found[0] if len(found) == 1 else None


def kept_cookie(text: str, *, seconds: int, secure: bool) -> str:
    """The header lines that set the session cookie for some seconds. 0 seconds: that delete it."""
    rest = f"Max-Age={seconds}; HttpOnly; SameSite=Strict{'; Secure' if secure else ''}"
    return "".join([header("Set-Cookie", f"{COOKIE}={text}; Path={path}; {rest}") for path in COOKIE_PATHS])


def came_by_tls(request: HttpRequest, *, proxies: int) -> bool:
    """Whether the client used TLS: to this service, or to the first of the trusted `proxies`."""
    if request.secure or not proxies:
        return request.secure
    said = ",".join(request.headers.getall("X-Forwarded-Proto", [])).split(",")
    return said[0].strip().lower() == "https"


def refuse_foreign_change(request: HttpRequest, *, proxies: int) -> None:
    """Raises Forbidden unless the browser says that a page of ours has caused the request."""
    if not request.headers.getall("Origin", ()):
        raise Forbidden(_FOREIGN)
    refuse_foreign(request, proxies=proxies)


def refuse_foreign(request: HttpRequest, *, proxies: int) -> None:
    """Raises Forbidden if the browser says that another page has caused the request. For what changes nothing: browsers
    do not always say it."""
    if any(site != "same-origin" for site in request.headers.getall("Sec-Fetch-Site", ())):
        raise Forbidden(_FOREIGN)
    for origin in request.headers.getall("Origin", ()):
        if not _is_ours(origin, request, proxies=proxies):
            raise Forbidden(_FOREIGN)


def own_origin(request: HttpRequest, *, proxies: int) -> str:
    """The origin that the request came to, for links to this service; empty: it does not say."""
    hosts = request.headers.getall("Host", ())
    origin = f"{'https' if came_by_tls(request, proxies=proxies) else 'http'}://{hosts[0] if len(hosts) == 1 else ''}"
    return origin if _ORIGIN.fullmatch(origin) else ""


def _is_ours(origin: str, request: HttpRequest, *, proxies: int) -> bool:
    named, hosts = _ORIGIN.fullmatch(origin), request.headers.getall("Host", ())
    if named is None or len(hosts) != 1:
        return False
    if came_by_tls(request, proxies=proxies) and named[1] != "https":
        return False
    port = ":443" if named[1] == "https" else ":80"
    return named[2].lower().removesuffix(port) == hosts[0].lower().removesuffix(port)
