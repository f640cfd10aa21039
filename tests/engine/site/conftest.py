from pathlib import Path

import pytest
from engine.site.fake_lab import OUTSIDE, TEXT, FakeLab, carries_all, keeps_promises

from benchctl.engine.site import lab_site as site_module
from benchctl.engine.site.lab_site import LabSite
from benchctl.plan.plan import lab_settings
from benchctl.profile.model import LabTable
from benchctl.toml.source import parse_toml


@pytest.fixture
def lab(monkeypatch):
    monkeypatch.setattr(site_module, "Lab", FakeLab)
    monkeypatch.setattr(site_module, "ceiling_bps", lambda emulator: 1e9)
    monkeypatch.setattr(site_module, "verify", keeps_promises)
    monkeypatch.setattr(site_module, "together", carries_all)
    monkeypatch.setattr(FakeLab, "log", [])
    return FakeLab


@pytest.fixture
def site():
    def make(notes=None, text=TEXT, **table):
        source = parse_toml(text, Path("lab.toml"))
        settings = lab_settings(source, LabTable(topology="lab.toml", **table))
        return LabSite(OUTSIDE, settings, (notes if notes is not None else []).append)

    return make
