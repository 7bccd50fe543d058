"""The page at the root of a service, and at addresses where nothing is. It leads on, and names no
tournament but those whose organisers listed it."""

from collections.abc import Sequence as Items

from api.web.console.frame import CONSOLE
from api.web.docs.docs_page import documentation
from api.web.files import StaticFiles
from api.web.html import Child, element


def start_page(
    static: StaticFiles, title: str = "Rankings of tournaments", boards: Items[tuple[str, str]] = ()
) -> bytes:
    """The page, in HTML. `boards`: address and name of each linked board."""
    links = [element("li", element("a", element("bdi", name), href=address)) for address, name in boards]
    body = element(
        "main",
        element("p", "Tallybook", class_="tournament"),
        element("h1", title),
        element("section", element("h2", "Boards"), element("ul", *links), class_="boards") if links else None,
        element(
            "ul",
            _way(
                "You want to see a table", "Each board has its own address. Ask the organiser of the tournament for it."
            ),
            _way(
                "You run a tournament",
                element("a", "Sign in to the console", href=CONSOLE),
                " with the token that you were given.",
            ),
            _way(
                "You write a program",
                element("a", "The interface", href="/docs"),
                " is explained from the first request on. For machines, it is described in ",
                element("a", "openapi.json", href="/openapi.json"),
                ".",
            ),
            class_="ways-in",
        ),
    )
    return documentation(static, "Tallybook", body, kind="docs start")


def _way(title: str, *said: Child) -> Child:
    return element("li", element("h2", title), element("p", *said))
