"""Tests for the checks of fortune pages, which are parsed as a browser would."""

import pytest

from harness.tests.approve import approve
from harness.tests.verify.subjects import exchange, judge_rule
from harness.verify.checks.evidence import Evidence, TableVersion
from harness.verify.checks.fortunes import ADDED_FORTUNE
from harness.verify.checks.registry import CHECKS

FORTUNES = TableVersion(rows={1: "<script>alert('é')</script>", 2: "b & c", 3: "フ"})
ROWS = (
    "<tr><td>1</td><td>&lt;script&gt;alert(&#39;é&#39;)&lt;/script&gt;</td></tr>"
    f"<tr><td>0</td><td>{ADDED_FORTUNE}</td></tr>"
    "<tr><td>2</td><td>b &amp; c</td></tr>"
    "<tr><td>3</td><td>フ</td></tr>"
)
PAGE = (
    "<!DOCTYPE html><html><head><title>Fortunes</title></head><body><table>"
    f"<tr><th>id</th><th>message</th></tr>{ROWS}</table></body></html>"
)


def objections(page: str, fortunes: TableVersion[str] = FORTUNES) -> set[str]:
    pages = [exchange(page)]
    evidence = Evidence(test_type="fortune", exchanges=pages, fortunes=[fortunes])
    return {
        check.name
        for check in CHECKS.values()
        if check.rule.startswith("fortune") and check.applies_to(evidence) and list(check.find(evidence))
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
def test_equivalent_pages_pass(page: str) -> None:
    assert objections(page) == set()


OTHERS = [
    PAGE.replace("<td>3</td>", "<td>4</td>"),
    PAGE.replace("<tr><th>id</th><th>message</th></tr>", ""),
    PAGE.replace("</th></tr>", "</th></tr></table><table>"),
    PAGE.replace("th>", "td>"),
    PAGE.replace("<td>フ</td>", "<th>フ</th>"),
    PAGE.replace("</head>", "<link rel=stylesheet href=/x.css></head>"),
    PAGE.replace("<td>3", "<td onclick=x()>3"),
    PAGE.replace("<head>", '<head><meta http-equiv="refresh" content="0;url=/x">'),
    PAGE.replace("</table>", "text in the table</table>"),
    PAGE.replace("<tr><td>1", "<tr hidden><td>1"),
    PAGE.replace("<td>フ", '<td style="display: NONE">フ'),
    PAGE.replace("<title>Fortunes", "<title>Messages"),
    PAGE.replace("</head><body>", "").replace("<title>", "</head><body><title>"),
    PAGE.replace("<!DOCTYPE html>", "<!-- <!DOCTYPE html> -->" * 40),
    PAGE.replace("<tr><td>3</td><td>フ</td></tr>", ""),
    PAGE.replace("<tr><td>3</td><td>フ</td></tr></table>", "</table>").replace(
        "</th></tr>", "</th></tr><tr><td>3</td><td>フ</td></tr>"
    ),
    PAGE.replace("<head>", "<script>x</script><style>y</style>").replace("<td>3", "<td><a href=' JavaScript:x()'>3"),
    "<!DOCTYPE html><title>Fortunes</title>" + "no table " * 20,
    "",
]


def test_findings_for_different_pages_are_as_approved() -> None:
    seen = [*(page.encode() for page in OTHERS), PAGE.encode("latin-1", "replace")]
    evidence = [Evidence(test_type="fortune", exchanges=[exchange(one)], fortunes=[FORTUNES]) for one in seen]
    approve("verify-fortunes", [judge_rule(one, "fortune") for one in evidence])


def test_pages_outside_all_versions_are_checked() -> None:
    over = TableVersion(rows=FORTUNES.rows, until=-1.0)
    assert "fortunes-in-order" not in objections(PAGE, fortunes=over)
    assert "fortunes-in-order" in objections(PAGE.replace("フ", "?"), fortunes=over)
