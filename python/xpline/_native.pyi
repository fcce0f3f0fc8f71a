"""The Rust core: platforms and the machine that runs points on them."""

from collections.abc import Callable, Sequence

__version__: str

class XplineError(ValueError):
    """Bad input: what was wrong, where, what is allowed, and what to do."""

class Platform:
    """A memory system, loaded and checked."""

    @staticmethod
    def load(name_or_path: str, overrides: Sequence[str] = ()) -> Platform:
        """Load a built-in platform or a platform file, with ``KEY=VALUE`` overrides on top."""

    @staticmethod
    def names() -> list[str]:
        """Names of the built-in platforms."""

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def cores(self) -> int:
        """Cores of the socket, which is how many threads can run."""

    def show(self) -> list[tuple[str, str, str | None, str, str]]:
        """Every value: its key, the value as it is written, its source, the line that set it, what the key means."""

def check_points(platform: Platform, points: Sequence[str]) -> None:
    """Raise :class:`XplineError` if a point (a JSON object) cannot run on the platform."""

def run_points(
    platform: Platform,
    points: Sequence[str],
    jobs: int | None = None,
    on_done: Callable[[int, str], object] | None = None,
) -> list[str]:
    """Run points (JSON objects) and return their rows (JSON objects) in the same order, whatever ``jobs`` is.

    ``on_done`` is called with the index and the row of each point as it completes, on the calling thread; what it
    raises, or Ctrl-C, stops the run and is raised from here.
    """

def replay_trace(
    platform: Platform, path: str, options: str = "{}", on_progress: Callable[[int, int], object] | None = None
) -> str:
    """Replay a trace and return its row (a JSON object); ``options`` are a JSON object too.

    ``on_progress`` is called now and then with the bytes read and the bytes of the file, on the calling thread.
    """

def convert_trace(
    source: str, target: str, options: str = "{}", on_progress: Callable[[int, int], object] | None = None
) -> str:
    """Write a trace in another format, whole or not at all, and return what was done (a JSON object)."""

def trace_info(path: str, options: str = "{}", on_progress: Callable[[int, int], object] | None = None) -> str:
    """Read a whole trace and return what is in it (a JSON object)."""

class Host:
    """Memory of this machine, with the options that it is measured with (a JSON object); both checked."""

    def __init__(self, target: str, options: str = "{}") -> None: ...
    @property
    def cpus(self) -> int:
        """CPUs that threads can be pinned to."""

    def check_points(self, points: Sequence[str]) -> None:
        """Raise :class:`XplineError` if a point (a JSON object) cannot be measured here."""

    def run_points(self, points: Sequence[str], on_done: Callable[[int, str], object] | None = None) -> list[str]:
        """Measure points one after the other; the rest is as in :func:`run_points`."""

    @staticmethod
    def environment() -> str:
        """This machine, as far as it can be seen without privileges (a JSON object)."""

def run_program(
    platforms: Sequence[Platform],
    request: str,
    on_progress: Callable[[int], object] | None = None,
    forward_interrupt: bool = True,
) -> tuple[str, bool]:
    """Run a program (a JSON object) under the tracer: what came of it (JSON), whether Ctrl-C was pressed."""

def run_recorded(
    platform: Platform,
    path: str,
    change: str | None = None,
    cores: int | None = None,
    on_progress: Callable[[int], object] | None = None,
) -> str | None:
    """Run a recording, with a change made to it (a JSON object); what came of it (JSON), None if it is empty."""

def sample_recorded(platform: Platform, path: str) -> str | None:
    """Run a recording; a sample of the requests of each core (JSON), None if it is empty."""

def recorded_about(path: str) -> str:
    """What a recording is of (a JSON object)."""

def write_recording(path: str, about: str, accesses: Sequence[tuple[int, str, int, int, int, int]]) -> None:
    """Write a recording of accesses: thread, kind, address, bytes, instructions before it, site."""
