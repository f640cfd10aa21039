"""docs/tui.md: its screens are those that there are."""

from docs.documents import filled

from benchctl.tui.registry import SCREENS

RUNS = {0: "", 1: " [RUN]", 2: " A B"}


def test_every_screen_is_in_the_document_with_its_name_and_key(request):
    lines = [
        "| screen | key | command |",
        "|---|---|---|",
        *(
            f"| {entry.title} | `{entry.key}` | `benchctl tui --screen {name}{RUNS[entry.runs]}` |"
            for name, entry in SCREENS.items()
        ),
    ]
    filled("tui.md", "screens", lines, request.config.getoption("--update-golden"))
