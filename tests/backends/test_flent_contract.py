"""flent's files keep to the contracts of exporters and of importers."""

import json
from typing import ClassVar

from imports.test_flent import flent

from benchctl.testing import ExporterContract, ImporterContract
from benchctl_flent.exporter import EXPORTER
from benchctl_flent.importer import IMPORTER


class TestFlentExporter(ExporterContract):
    exporter = EXPORTER


class TestFlentImporter(ImporterContract):
    importer = IMPORTER
    samples: ClassVar = {"one.flent": json.dumps(flent()).encode()}
