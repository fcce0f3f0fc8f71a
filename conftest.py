"""Examples in docstrings and documents run in an empty folder: what they write leaves nothing behind."""

import pytest


@pytest.fixture(autouse=True)
def empty_folder(request: pytest.FixtureRequest) -> None:
    """The working folder of an example; other tests say themselves where they write."""
    if isinstance(request.node, pytest.DoctestItem):
        request.getfixturevalue("monkeypatch").chdir(request.getfixturevalue("tmp_path"))
