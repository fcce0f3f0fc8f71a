"""What the system refuses while the host is measured: each for real, in a process that it is refused to."""

import ctypes
import json
import os
import resource
import shutil
import struct
import subprocess
import sys

import polars as pl
import pytest

BRIEFLY = ["--on", "host", "--span", "16MiB", "--window", "0.002", "--time-limit", "0.05"]
PROGRAM = "from xpline.cli import main; main()"

libc = ctypes.CDLL(None, use_errno=True)


def run(*arguments, before=None, cwd=None, wrapper=(), program=PROGRAM):
    """Run xpline in a process of its own, `before` in it first; its exit status, and what it said in one line."""
    command = [*wrapper, sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, preexec_fn=before, cwd=cwd, timeout=60)
    return done.returncode, done.stdout, " ".join(done.stderr.split())


def on_a_full_disk(tmp_path, size, *arguments):
    """Run xpline in a folder on a file system of its own, of so many bytes; the output ends in what is left there."""
    disk = tmp_path / "disk"
    disk.mkdir()
    script = f'mount -t tmpfs -o size={size} none "$0" && cd "$0" && {{ "$@"; status=$?; ls -A; exit $status; }}'
    wrapper = ["unshare", "--map-root-user", "--mount", "sh", "-c", script, str(disk)]
    if not shutil.which("unshare") or subprocess.run([*wrapper, "true"], capture_output=True).returncode:
        pytest.skip("this system lets nobody mount a file system of their own")
    return run(*arguments, wrapper=wrapper)


def test_a_file_on_a_full_file_system(tmp_path):
    for kind in ("file", "block"):
        disk = tmp_path / kind
        disk.mkdir()
        code, out, err = on_a_full_disk(
            disk, "1m", "bench", "random", *BRIEFLY, "--on", f"host:{kind}=m", "--size", "4KiB"
        )
        assert code == 2, err
        assert "16 MiB of space for m needed, 1 MiB free" in err or (kind == "block" and "has no O_DIRECT" in err), err
        assert out == ""  # no table, and no file left


def test_results_on_a_full_file_system(tmp_path):
    code, out, err = on_a_full_disk(tmp_path, "4k", "bench", "random", *BRIEFLY, "--out", "r.csv", "--size", "64..4096")
    assert code == 2 and "r.csv: " in err and "No space left on device" in err, err
    assert "r.csv" not in out and "tmp" not in out


def test_a_file_that_may_not_grow_so_large(tmp_path):
    """The file system has room, but the process may not use it: it is found out when the room is set aside."""

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))

    for kind in ("file", "block"):
        code, out, err = run(
            "bench", "random", *BRIEFLY, "--on", f"host:{kind}=m", "--size", "4KiB", before=limit, cwd=tmp_path
        )
        assert (code, out) == (2, ""), err
        assert "m: no room for 16 MiB could be set aside: File too large" in err or "has no O_DIRECT" in err, err
        assert list(tmp_path.iterdir()) == []


def test_memory_that_the_system_does_not_map(tmp_path):
    """There is enough memory, but the process may have no more of it."""

    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))

    code, out, err = run("bench", "random", *BRIEFLY, "--span", "8GiB", before=limit, cwd=tmp_path)
    assert (code, out) == (2, ""), err
    assert "mapping 8 GiB failed: Cannot allocate memory" in err or "8 GiB of memory needed" in err, err


def test_without_huge_pages_the_table_says_so(tmp_path):
    thp_disable = 41

    def disable():
        assert libc.prctl(thp_disable, 1, 0, 0, 0) == 0

    code, _, err = run("bench", "random", *BRIEFLY, "--out", "r.parquet", before=disable, cwd=tmp_path)
    assert code == 0, err
    assert pl.read_parquet(tmp_path / "r.parquet").select("pages", "huge_share").rows() == [("transparent", 0.0)]
    code, out, err = run("bench", "random", *BRIEFLY, "--pages", "2MiB", "--span", "1024GiB", cwd=tmp_path)
    assert (code, out) == (2, "")
    assert "pages = 2MiB: needs 524288 free pages" in err or "has no pages of this size" in err, err


def test_counters_that_are_forbidden_are_absent_and_the_reason_is_said(tmp_path):
    """A filter on system calls, as containers have it, forbids perf_event_open."""

    def forbid():
        load, jump_if_equal, give = 0x20, 0x15, 0x06
        perf_event_open, allow, refuse = 298, 0x7FFF0000, 0x00050000 | 13  # EACCES
        steps = [(load, 0, 0, 0), (jump_if_equal, 0, 1, perf_event_open), (give, 0, 0, refuse), (give, 0, 0, allow)]
        code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
        program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(steps), ctypes.addressof(code)))
        assert libc.prctl(38, 1, 0, 0, 0) == 0  # PR_SET_NO_NEW_PRIVS
        assert libc.prctl(22, 2, program, 0, 0) == 0  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER

    code, _, err = run("bench", "random", *BRIEFLY, "--out", "r.parquet", before=forbid, cwd=tmp_path)
    assert code == 0, err
    row = pl.read_parquet(tmp_path / "r.parquet").row(0, named=True)
    assert row["cache_misses"] is None and row["bandwidth_mib_s"] > 0
    assert "permits no performance counters" in json.loads(row["environment"])["no_counters"]


def test_code_that_may_not_be_made_at_run_time(tmp_path):
    """A security policy that lets nothing become executable (here, PR_SET_MDWE) is named."""
    mdwe, refuse_exec_gain = 65, 1
    if os.fork() == 0:
        os._exit(libc.prctl(mdwe, refuse_exec_gain, 0, 0, 0) != 0)
    if os.wait()[1]:
        pytest.skip("this kernel has no such policy (before Linux 6.3)")

    # Libraries that make code when they are loaded are loaded before.
    program = f"""if True:
        import ctypes, polars
        from xpline.cli import main
        ctypes.CDLL(None).prctl({mdwe}, {refuse_exec_gain}, 0, 0, 0)
        main()"""
    code, out, err = run("bench", "random", *BRIEFLY, program=program, cwd=tmp_path)
    assert (code, out) == (2, ""), err
    assert "making code at run time (does a security policy forbid it?)" in err
