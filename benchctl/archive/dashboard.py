"""The dashboard for Grafana."""

from pathlib import Path


def dashboard() -> str:
    """Return it as JSON, to be imported in Grafana."""
    return Path(__file__).with_name("dashboard.json").read_text("utf-8")
