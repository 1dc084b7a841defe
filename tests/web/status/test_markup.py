"""Elements escape whatever is put into them, in one place."""

from __future__ import annotations

from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from exporter.web.status.markup import Html, element, joined, name, sentence
from exporter.web.status.wording import Name, visible


class Reader(HTMLParser):
    """Everything that a parser sees in a piece of HTML."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, list[tuple[str, str | None]]]] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, attrs))

    def handle_data(self, data: str) -> None:
        self.text += data


@given(st.text())
def test_any_text_is_read_back_as_text(text: str) -> None:
    read = Reader(element("p", text))
    assert read.tags == [("p", [])]
    assert read.text == visible(text)


@given(st.text())
def test_any_text_is_read_back_as_an_attribute(text: str) -> None:
    assert Reader(element("p", title=text)).tags == [("p", [("title", visible(text))])]


def test_html_passes_as_it_is_and_its_text_was_escaped() -> None:
    assert element("p", element("b", "<"), "<") == "<p><b>&lt;</b>&lt;</p>"
    assert joined("&", Html("<br>")) == "&amp;<br>"


def test_attributes_are_written_as_html_names_them() -> None:
    written = element("svg", class_="a", aria_label="b", viewBox="0 0 1 1", hidden=True, title=None, open=False)
    assert written == '<svg class="a" aria-label="b" viewBox="0 0 1 1" hidden></svg>'


def test_void_elements_have_no_end() -> None:
    assert element("meta", charset="utf-8") == '<meta charset="utf-8">'
    assert element("rect", x=1) == '<rect x="1"/>'


def test_a_name_is_isolated_from_the_direction_of_the_words_around_it() -> None:
    assert sentence(("in ", Name("العربية"), ".")) == 'in <bdi class="name">العربية</bdi>.'


def test_a_name_that_may_be_cut_by_its_column_can_be_hovered() -> None:
    assert "title" not in name("short")
    assert f'title="{"x" * 255}"' in name("x" * 255)


def test_an_empty_name_is_something_to_see() -> None:
    assert name("") == '<bdi class="name">&quot;&quot;</bdi>'
