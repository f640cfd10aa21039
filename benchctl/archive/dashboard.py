"""The dashboard for Grafana."""

from importlib.resources import files


def dashboard() -> str:
    """Return it as JSON, to be imported in Grafana."""
    return files(__package__).joinpath("dashboard.json").read_text("utf-8")
