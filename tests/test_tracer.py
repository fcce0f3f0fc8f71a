"""The tracer's installation: what is missing, wrong or changed is said, with what to do."""

import fcntl
import hashlib
import io
import json
import stat
import tarfile

import pytest

from xpline import tracer
from xpline.cli import main
from xpline.errors import XplineError
from xpline.tracer import install, prerequisites, source


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """A cache folder of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "xpline" / "tracer"


def run(*arguments):
    with pytest.raises(SystemExit) as end:
        main(arguments)
    return end.value.code


def archive(path, files):
    """An archive of these files, all executable."""
    with tarfile.open(path, "w:xz") as tar:
        for name, text in files.items():
            info = tarfile.TarInfo(f"qemu-10.0.0/{name}")
            info.size, info.mode = len(text), 0o755
            tar.addfile(info, io.BytesIO(text.encode()))
    return path


def a_qemu(interface):
    header = f"/* long enough */\n#define QEMU_PLUGIN_VERSION {interface}\n"
    return {"configure": "#!/bin/sh\n", "VERSION": "10.0.0\n", "include/qemu/qemu-plugin.h": header}


def put_in_place(cache):
    """What looks like an installation."""
    home = cache / "qemu-0"
    home.mkdir(parents=True)
    sums = {}
    for name in ("qemu-x86_64", "plugin.so"):
        (home / name).write_bytes(name.encode())
        sums[name] = hashlib.sha256(name.encode()).hexdigest()
    installed = tracer.Tracer(
        qemu=home / "qemu-x86_64",
        plugin=home / "plugin.so",
        version="10.0.0",
        patched=True,
        source_sha256="0" * 64,
        qemu_sha256=sums["qemu-x86_64"],
        plugin_sha256=sums["plugin.so"],
        plugin_source_sha256=tracer.plugin_source_sha256(tracer.plugin_sources()),
    )
    installed.save()
    return installed


def test_without_an_installation_it_is_said_how_to_get_one(cache, capsys):
    assert run("tracer", "status") == 2
    assert f"not installed (it would be in {cache})" in capsys.readouterr().out
    with pytest.raises(XplineError, match=r"not installed; run `xpline tracer install` .some minutes"):
        tracer.locate()
    cache.mkdir(parents=True)
    (cache / "installed-ffff.json").write_text("{}")
    with pytest.raises(XplineError, match=r"belongs to other sources; run `xpline tracer install` .some seconds"):
        tracer.locate()


def test_an_installation_is_found_and_its_faults_are_named(cache, capsys):
    installed = put_in_place(cache)
    assert tracer.locate() == installed
    assert run("tracer", "status") == 0
    assert capsys.readouterr().out.endswith("ready\n")
    installed.plugin.write_bytes(b"another")
    assert run("tracer", "status") == 2
    assert f"{installed.plugin} is not as it was installed" in capsys.readouterr().out
    installed.plugin.unlink()
    with pytest.raises(XplineError, match=r"plugin.so: is missing; run `xpline tracer install`"):
        tracer.locate()


@pytest.mark.parametrize("record", ["", "[1]", "{}", json.dumps({"qemu": 1, "plugin": 2}), "\0"])
def test_a_record_that_cannot_be_read_is_named(cache, record):
    put_in_place(cache)
    path = next(cache.glob("installed-*.json"))
    path.write_text(record)
    with pytest.raises(XplineError, match=f"{path.name}: cannot be read"):
        tracer.locate()


def test_missing_prerequisites_are_named_all_at_once(tmp_path, monkeypatch):
    apt = tmp_path / "bin" / "apt-get"
    apt.parent.mkdir()
    apt.write_text("#!/bin/sh\n")
    apt.chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", str(apt.parent))
    with pytest.raises(XplineError) as error:
        prerequisites.check(download=True)
    said = str(error.value)
    assert "apt-get install build-essential ninja-build pkg-config patch bash" in said
    assert "cargo" in said and "glib" not in said
    apt.unlink()
    with pytest.raises(XplineError, match="--source"):
        prerequisites.check(download=True)


def test_a_source_that_is_none_is_named(tmp_path):
    path = tmp_path / "q.tar.xz"
    with pytest.raises(XplineError, match=r"q.tar.xz: there is no such file"):
        install.install(path)
    path.write_bytes(b"no archive")
    with pytest.raises(XplineError, match=r"q.tar.xz: cannot be unpacked"):
        source.unpack(path, tmp_path / "a")
    with pytest.raises(XplineError, match="there is no configure"):
        source.unpack(archive(path, {"README": "x"}), tmp_path / "b")
    root = source.unpack(archive(path, a_qemu(3)), tmp_path / "c")
    with pytest.raises(XplineError, match=r"version 3 of the plugin interface and the tracer needs 4"):
        source.version_of(root, path)
    root = source.unpack(archive(path, a_qemu(4)), tmp_path / "d")
    assert source.version_of(root, path) == "10.0.0"


def test_unpacking_goes_on_where_it_stopped(tmp_path):
    path = archive(tmp_path / "q.tar.xz", a_qemu(4))
    root = source.unpack(path, tmp_path / "a")
    (root / "configure").write_text("mine")
    assert source.unpack(path, tmp_path / "a") == root
    assert (root / "configure").read_text() == "mine"
    (tmp_path / "a" / ".unpacked").unlink()
    source.unpack(path, tmp_path / "a")
    assert (root / "configure").read_text() != "mine"


def test_a_patch_applies_whole_or_not_at_all(tmp_path):
    (tmp_path / "one").write_text("1\n")
    (tmp_path / "two").write_text("2\n")
    change = "--- a/{0}\n+++ b/{0}\n@@ -1 +1 @@\n-{1}\n+changed\n"
    patch = tmp_path / "patch"
    patch.write_text(change.format("one", 1) + change.format("two", 3))
    assert not source.apply(patch, tmp_path)
    assert (tmp_path / "one").read_text() == "1\n"
    patch.write_text(change.format("one", 1) + change.format("two", 2))
    assert source.apply(patch, tmp_path)
    assert source.apply(patch, tmp_path), "the second time there is nothing to do"
    assert (tmp_path / "two").read_text() == "changed\n"


def test_two_installations_do_not_meet(cache, monkeypatch, tmp_path):
    monkeypatch.setattr(prerequisites, "check", lambda download: None)
    cache.mkdir(parents=True)
    with (cache / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(XplineError, match="another xpline tracer install is under way"):
            install.install(archive(tmp_path / "q.tar.xz", a_qemu(4)))


def test_a_step_that_fails_names_its_log(tmp_path):
    log = tmp_path / "log.txt"
    with pytest.raises(XplineError, match=r"sh failed: no glib here; its output is in .*log.txt"):
        install._logged(["sh", "-c", "echo one; echo no glib here; exit 1"], tmp_path, log)
    assert log.read_text().endswith("one\nno glib here\n")
    with pytest.raises(XplineError, match="nowhere: cannot be started"):
        install._logged([tmp_path / "nowhere"], tmp_path, log)
