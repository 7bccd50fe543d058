"""HTML: text is never markup, whatever it is."""

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.web.html import document, element, joined


class _Read(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


@given(st.text(st.characters(exclude_characters="\r\0", exclude_categories=["Cs"])))
def test_any_text_is_read_back_as_the_text_that_it_is(text: str) -> None:
    read = _Read()
    read.feed(element("p", text, title=text))
    read.close()
    assert read.tags == [("p", {"title": text})]
    assert read.text == text


def test_elements_are_nested_and_text_between_them_is_escaped() -> None:
    inner = element("b", "<i>")
    assert element("p", inner, " & ", 7, None) == "<p><b>&lt;i&gt;</b> &amp; 7</p>"
    assert joined((inner, "<")) == "<b>&lt;i&gt;</b>&lt;"


def test_html_that_became_text_is_escaped_and_not_trusted() -> None:
    assert element("p", f"{element('b', 'x')}") == "<p>&lt;b&gt;x&lt;/b&gt;</p>"
    assert element("p", element("b", "x") + "<i>") == "<p>&lt;b&gt;x&lt;/b&gt;&lt;i&gt;</p>"


def test_attributes_may_have_no_value_or_be_left_out() -> None:
    assert element("input", disabled=True, value=None, checked=False, aria_label="a") == (
        '<input disabled aria-label="a">'
    )


@pytest.mark.parametrize("name", ["script", "style"])
def test_no_script_or_style_can_be_written_into_a_page(name: str) -> None:
    with pytest.raises(ValueError, match="comes from a file"):
        element(name, "x")


def test_a_document_is_complete() -> None:
    page = document(element("title", "é"), element("body"))
    assert page == '<!DOCTYPE html><html lang="en"><head><title>é</title></head><body></body></html>'.encode()
