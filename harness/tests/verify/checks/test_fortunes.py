"""Fortune pages as a browser parses them."""

import pytest

from harness.tests.verify.subjects import exchange
from harness.verify.checks.evidence import Evidence, Version
from harness.verify.checks.fortunes import ADDED
from harness.verify.checks.registry import CHECKS

FORTUNES = Version(rows={1: "<script>alert('é')</script>", 2: "b & c", 3: "フ"})
ROWS = (
    "<tr><td>1</td><td>&lt;script&gt;alert(&#39;é&#39;)&lt;/script&gt;</td></tr>"
    f"<tr><td>0</td><td>{ADDED}</td></tr>"
    "<tr><td>2</td><td>b &amp; c</td></tr>"
    "<tr><td>3</td><td>フ</td></tr>"
)
PAGE = (
    "<!DOCTYPE html><html><head><title>Fortunes</title></head><body><table>"
    f"<tr><th>id</th><th>message</th></tr>{ROWS}</table></body></html>"
)


def objections(page: str, encoding: str = "utf-8", fortunes: Version[str] = FORTUNES) -> set[str]:
    pages = [exchange(page.encode(encoding, "replace"))]
    evidence = Evidence(test_type="fortune", exchanges=pages, fortunes=[fortunes])
    return {
        check.name
        for check in CHECKS.values()
        if check.rule.startswith("fortune") and check.holds_for(evidence) and list(check.find(evidence))
    }


@pytest.mark.parametrize(
    "page",
    [
        PAGE,
        PAGE.replace("<!DOCTYPE html>", "<!doctype HTML>\n"),
        PAGE.replace("<!DOCTYPE html>", "<!-- a > b -->\n<!-- -->\n<!DOCTYPE html >"),
        PAGE.replace("<head>", '<head><meta http-equiv="X-UA-Compatible" content="IE=edge">'),
        PAGE.replace("<table>", '<table style="border: none">'),
        PAGE.replace("<head>", '<head><meta charset="utf-8"><meta http-equiv="Content-Type" content="text/html">'),
        PAGE.replace("<html>", '<html lang="en">').replace("<table>", '<table class="fortunes">'),
        PAGE.replace("<table>", "<table><thead>").replace("</th></tr>", "</th></tr></thead><tbody>"),
        PAGE.replace("><", ">\n  <"),
        PAGE.replace("&#39;", "&apos;").replace("フ", "&#12501;"),
        PAGE.replace("&#39;", "'").replace("</td>", "").replace("</tr>", ""),
    ],
)
def test_pages_that_say_the_same_are_the_same(page: str) -> None:
    assert objections(page) == set()


@pytest.mark.parametrize(
    ("page", "check"),
    [
        (PAGE.replace("<td>3</td>", "<td>4</td>"), "fortunes-in-order"),
        (PAGE.replace("<tr><th>id</th><th>message</th></tr>", ""), "fortunes-in-order"),
        (PAGE.replace("</th></tr>", "</th></tr></table><table>"), "fortunes-in-order"),
        (PAGE.replace("th>", "td>"), "fortunes-in-order"),
        (PAGE.replace("<td>フ</td>", "<th>フ</th>"), "fortunes-in-order"),
        (PAGE.replace("</head>", "<link rel=stylesheet href=/x.css></head>"), "nothing-else-on-the-page"),
        (PAGE.replace("<td>3", "<td onclick=x()>3"), "nothing-else-on-the-page"),
        (PAGE.replace("<head>", '<head><meta http-equiv="refresh" content="0;url=/x">'), "nothing-else-on-the-page"),
        (PAGE.replace("</table>", "text in the table</table>"), "nothing-else-on-the-page"),
        (PAGE.replace("<tr><td>1", "<tr hidden><td>1"), "nothing-else-on-the-page"),
        (PAGE.replace("<td>フ", '<td style="display: NONE">フ'), "nothing-else-on-the-page"),
        (PAGE.replace("<title>Fortunes", "<title>Messages"), "page-is-html"),
        (PAGE.replace("</head><body>", "").replace("<title>", "</head><body><title>"), "page-is-html"),
        (PAGE.replace("<!DOCTYPE html>", "<!-- <!DOCTYPE html> -->" * 40), "page-is-html"),
    ],
)
def test_pages_that_differ_are_told_apart(page: str, check: str) -> None:
    assert check in objections(page)


def test_a_page_in_another_encoding_is_not_utf_8() -> None:
    assert "page-is-html" in objections(PAGE, "latin-1")


def test_a_page_of_a_time_of_which_no_version_is_known_is_still_looked_at() -> None:
    over = Version(rows=FORTUNES.rows, until=-1.0)
    assert "fortunes-in-order" not in objections(PAGE, fortunes=over)
    assert "fortunes-in-order" in objections(PAGE.replace("フ", "?"), fortunes=over)
