"""docs/archive.md against a real archive: its views, and every query."""

import pytest
from archive.archive_support import opened_as
from docs.documents import blocks_of, names_in, section, table

from benchctl.archive.schema import READER

DOCUMENT = "archive.md"
pytestmark = pytest.mark.postgres


def test_the_views_that_are_shown_are_all_that_there_are(archive):
    shown = {row[0].strip("`"): names_in([row], 2) for row in table(section(DOCUMENT, "## Views"))}
    there = archive.rows(
        "SELECT 'benchctl.' || table_name, array_agg(column_name::text ORDER BY ordinal_position)"
        " FROM information_schema.columns WHERE table_schema = 'benchctl' GROUP BY table_name"
    )
    assert shown == dict(there)


def test_a_reader_may_ask_every_query(archive_url):
    with opened_as(archive_url, READER) as theirs:
        for block in blocks_of(DOCUMENT, "sql"):
            if not block.text.startswith("GRANT"):
                theirs.rows(block.text)


def test_from_a_nightly_profile_to_a_page_it_takes_eight_commands():
    (block, *_) = blocks_of(DOCUMENT, "sh")
    assert len(block.text.splitlines()) == 8
