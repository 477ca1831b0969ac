"""Compiled kernels on disk, so that a second process starts warm.

Numba's own cache keeps an index of each function's files beside its source, refreshed when *that*
file changes. Here every compiled signature is one file, and its name covers all that its code depends
on: the signature, the sources (`sources.py`), the processor, the versions of the compiler. A
file appears under its name complete or not at all. So processes that compile the same kernel at the
same time do not disturb each other, and there is nothing to go stale.

Whatever is wrong with a file or a folder, the kernel is compiled again, and one line of warning says
why. Numba's private interfaces are used for writing compiled code and reading it back; if they have
changed, every process compiles for itself.
"""

import contextlib
import hashlib
import io
import os
import pickle
import re
import stat
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import llvmlite  # type: ignore[import-untyped]
import numba
import numpy as np
from platformdirs import user_cache_path

from pacplan.compiled.private import warn_once, warned
from pacplan.compiled.sources import kernel_digest
from pacplan.core.notes import pass_on

_MAGIC = b"pacplan kernel 1\n"
_SUFFIX = ".kernel"
UNFINISHED = ".unfinished"
"""How the names of files end that are being written, or hold the lock of a kernel being compiled."""
RECORD = ".record"
"""How the names of files end that say which kernels belong together (`record.py`)."""
_HOUR = 3600.0
# A kernel takes a few hundred kilobytes. Sources that are edited a lot leave many behind.
_LONGEST_UNUSED = 30 * 24 * _HOUR
_LONGEST = {UNFINISHED: _HOUR, RECORD: _LONGEST_UNUSED}
_MOST_BYTES = 500_000_000
# What else changes the code that Numba makes, besides a function's own options.
_SETTINGS = (
    "BOUNDSCHECK",
    "DEBUGINFO_DEFAULT",
    "LOOP_VECTORIZE",
    "OPT",
    "SLP_VECTORIZE",
    "USING_SVML",
)
# Opening anything but a file could block for ever, or lead elsewhere.
_OPEN_FLAGS = sum(getattr(os, name, 0) for name in ("O_BINARY", "O_NOFOLLOW", "O_NONBLOCK"))

_HAS_OWNERS = hasattr(os, "geteuid")

used: set[str] = set()
"""The names of the files of kernels that this process has read or written."""


class UnusableError(Exception):
    """Why compiled code is not taken from a file or a folder."""


class KernelCache:
    """Takes the place of a dispatcher's cache in Numba. It never raises."""

    def __init__(self, dispatcher: Any) -> None:
        self._function = dispatcher.py_func
        self._options = sorted(dispatcher.targetoptions.items())
        self.lasting = False
        """Whether the kernel last asked for can be kept."""

    @property
    def cache_path(self) -> str | None:
        """The folder to try first."""
        return next(map(str, _candidates()), None)

    def flush(self) -> None:
        """Do nothing: no file ever holds outdated code."""

    def load_overload(self, sig: Any, target_context: Any, *_: Any, **__: Any) -> Any:
        """The kernel compiled for a signature, or None."""
        with _surprises_from_numba():
            target_context.refresh()
            identity = self._identity(sig, target_context.codegen())
            self.lasting = identity is not None
            if identity is not None:
                return self._load(sig, identity, target_context)
        return None

    def save_overload(self, sig: Any, data: Any, *_: Any, **__: Any) -> None:
        """Keep the kernel that was compiled for a signature."""
        with _surprises_from_numba():
            identity = self._identity(sig, data.codegen)
            if identity is not None and _can_be_kept(data):
                _write(self._file_name(identity), identity, _serialized(sig, data))

    def _load(self, sig: Any, identity: bytes, target_context: Any) -> Any:
        for folder in _candidates():
            if _distrust(folder) is not None:
                continue  # The warning comes when there is something to write.
            path = folder / self._file_name(identity)
            try:
                payload = _read(path, identity)
            except FileNotFoundError:
                continue
            except (UnusableError, OSError) as error:
                warn_once(
                    str(path),
                    f"the compiled kernel {path} cannot be used ({_reason(error)}) and is "
                    "compiled again; if this line comes back, delete that file",
                )
                continue
            _touch(path)
            used.add(path.name)
            return _rebuilt(sig, payload, target_context)
        return None

    def _identity(self, sig: Any, codegen: Any) -> bytes | None:
        """A digest of everything that the compiled code depends on; None if that cannot be known."""
        function = self._function
        signature = list(map(str, sig)) if isinstance(sig, tuple) else [str(sig)]
        kinds = sig if isinstance(sig, tuple) else sig.args
        classes = sorted(
            set(argument_classes(kinds)), key=lambda kind: (kind.__module__, kind.__qualname__)
        )
        cells = [cell.cell_contents for cell in function.__closure__ or ()]
        sources = kernel_digest(function, classes)
        if sources is None or not _is_plain(tuple(cells)):
            return None
        text = repr(
            (
                (function.__module__, function.__qualname__, function.__code__.co_firstlineno),
                hashlib.sha256(function.__code__.co_code).hexdigest(),
                cells,
                signature,
                [(kind.__module__, kind.__qualname__) for kind in classes],
                sources,
                self._options,
                circumstances(codegen),
            )
        )
        # The name of an object with an address says nothing in another process.
        return None if re.search(r" at 0x\w+", text) else hashlib.sha256(text.encode()).digest()

    def _file_name(self, identity: bytes) -> str:
        function = self._function
        name = re.sub(r"[^\w.]", "", f"{function.__module__}.{function.__qualname__}")[-100:]
        return f"{name}-{identity.hex()[:40]}{_SUFFIX}"


def circumstances(codegen: Any) -> tuple[Any, ...]:
    """What else compiled code depends on: settings and versions of the compiler, and the processor."""
    return (
        [getattr(numba.config, setting, None) for setting in _SETTINGS],
        (sys.implementation.cache_tag, numba.__version__, llvmlite.__version__, np.__version__),
        codegen.magic_tuple(),
    )


def argument_classes(kinds: Any) -> Iterator[type]:
    """The named tuples among the types of arguments, and inside them."""
    for kind in kinds:
        if isinstance(kind, numba.types.BaseTuple):
            if hasattr(kind, "instance_class"):
                yield kind.instance_class
            yield from argument_classes(kind.types)


def _is_plain(value: Any) -> bool:
    """Whether the repr of a value describes it completely."""
    if isinstance(value, tuple):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, bool | int | float | complex | str | bytes)


@contextlib.contextmanager
def _surprises_from_numba() -> Iterator[None]:
    """Survive whatever Numba's internals or a file's content may raise."""
    try:
        yield
    except Exception as error:
        pass_on(error)
        warn_once(
            "numba",
            f"compiled kernels cannot be kept or read back with Numba {numba.__version__} "
            f"({type(error).__name__}: {error}); each process compiles them for itself",
        )


def _can_be_kept(result: Any) -> bool:
    return not result.library.has_dynamic_globals and all(part.can_cache for part in result.lifted)


def _serialized(sig: Any, result: Any) -> bytes:
    from numba.core.serialize import NumbaPickler

    class Pickler(NumbaPickler):  # type: ignore[misc]
        """Refers to classes of a running script by name, without a copy: its source is known."""

        def reducer_override(self, thing: Any) -> Any:
            if isinstance(thing, type) and thing.__module__ == "__main__":
                return getattr, (sys.modules["__main__"], thing.__qualname__)
            return super().reducer_override(thing)

    with io.BytesIO() as buffer:
        Pickler(buffer, protocol=4).dump((sig, result._reduce()))
        return buffer.getvalue()


def _rebuilt(sig: Any, payload: bytes, target_context: Any) -> Any:
    from numba.core.compiler import CompileResult

    known_sig, reduced = pickle.loads(payload)
    # A class that was defined again is a different one, and Numba would not find the kernel.
    return CompileResult._rebuild(target_context, *reduced) if known_sig == sig else None


def _candidates() -> list[Path]:
    """Where compiled kernels may lie, best first.

    `NUMBA_CACHE_DIR` is honoured. Otherwise it is the user's cache folder, or that for temporary
    files as a last resort.
    """
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    if chosen:
        return [Path(chosen).absolute() / "pacplan"]
    user = os.geteuid() if _HAS_OWNERS else os.environ.get("USERNAME", "user")
    folders = [user_cache_path("pacplan")]
    with contextlib.suppress(OSError):
        folders.append(Path(tempfile.gettempdir()) / f"pacplan-{user}")
    # If a user has no home, its folders have no absolute names.
    return [folder for folder in folders if folder.is_absolute()]


# Reading compiled code back means executing it. The checksums of the files reveal accidents, not
# attacks: whoever can write to a file can also write a checksum that fits. What protects the user is
# that nobody else can write to the folder, or put another one in its place.


def _distrust(folder: Path) -> str | None:
    """Why somebody else could have put something into a folder; None if nobody could.

    If the folder does not exist yet, the part of its path that exists is judged.
    """
    place, todo = Path(folder.anchor), list(folder.parts[1:])
    links = 0
    while True:
        try:
            status = place.lstat()
        except FileNotFoundError:
            return None
        except OSError as error:
            return f"{place}: {_reason(error)}"
        if stat.S_ISLNK(status.st_mode):
            links += 1
            if not _is_ours(status):
                return f"{place} is a link of another user"
            if links > 40:
                return f"{place} is a link that leads to itself"
            target = place.parent / os.readlink(place)
            place, todo = Path(target.anchor), [*target.parts[1:], *todo]
            continue
        if not _is_ours(status):
            return f"{place} belongs to another user"
        # In a folder with the sticky bit others can write, but not replace what is ours.
        shielded = bool(todo) and status.st_mode & stat.S_ISVTX
        if _others_can_write(status, is_last=not todo) and not shielded:
            return f"others can write to {place}"
        if not todo:
            return None if stat.S_ISDIR(status.st_mode) else f"{place} is not a folder"
        part = todo.pop(0)
        place = place.parent if part == ".." else place / part


def _is_ours(status: os.stat_result) -> bool:
    """Whether a file belongs to the user, or to the administrator, who can do anything anyway."""
    return not _HAS_OWNERS or status.st_uid in (0, os.geteuid())


def _others_can_write(status: os.stat_result, *, is_last: bool) -> bool:
    if not _HAS_OWNERS:
        return False
    if status.st_mode & stat.S_IWOTH:
        return True
    # Some systems give each user a group of one, and the group the right to write. (We make our own
    # folder, the last one, without it.)
    return bool(status.st_mode & stat.S_IWGRP) and (is_last or not _is_group_of_one(status.st_gid))


def _is_group_of_one(number: int) -> bool:
    import grp
    import pwd

    try:
        user, group = pwd.getpwuid(os.geteuid()), grp.getgrgid(number)
    except KeyError:
        return False
    return user.pw_gid == number and group.gr_name == user.pw_name and not group.gr_mem


def _read(path: Path, identity: bytes) -> bytes:
    """What a file holds for the kernel.

    Raises:
        FileNotFoundError: it is not there.
        OSError: it cannot be read.
        UnusableError: it holds something else, or somebody else can write to it.
    """
    with open(path, "rb", opener=lambda name, mode: os.open(name, mode | _OPEN_FLAGS)) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise UnusableError("it is not a file")
        if not _is_ours(status) or _others_can_write(status, is_last=True):
            raise UnusableError("others can write to it")
        content = file.read()
    digests = len(_MAGIC) + 64
    payload = content[digests:]
    if content[:digests] != _MAGIC + identity + hashlib.sha256(payload).digest():
        raise UnusableError("it is damaged")
    return payload


def _write(name: str, identity: bytes, payload: bytes) -> None:
    """Put a file into the first folder that takes it."""
    content = _MAGIC + identity + hashlib.sha256(payload).digest() + payload
    troubles, outcome = [], "each process compiles them for itself"
    for folder in _candidates():
        try:
            _make(folder)
            replace_file(folder / name, content)
        except (UnusableError, OSError) as error:
            if str(folder / name) in warned:
                return
            troubles.append(f"{folder} ({_reason(error)})")
        else:
            _tidy(folder, name)
            used.add(name)
            outcome = f"they are kept in {folder} instead"
            break
    else:
        troubles = troubles or ["any folder"]
    if troubles:
        warn_once(
            "folder",
            f"compiled kernels cannot be kept in {' or '.join(troubles)}; {outcome}. "
            "Set NUMBA_CACHE_DIR to a folder that only you can write to",
        )


def _make(folder: Path) -> None:
    """Make a folder for the user alone, if it is not there.

    Raises:
        OSError: it cannot be made.
        UnusableError: somebody else can write to it.
    """
    distrust = _distrust(folder)
    if distrust is None:
        missing = [place for place in (folder, *folder.parents) if not place.exists()]
        for place in reversed(missing):
            place.mkdir(mode=0o700, exist_ok=True)
        distrust = _distrust(folder)
    if distrust is not None:
        raise UnusableError(distrust)


def replace_file(path: Path, content: bytes) -> None:
    """Write a file that others see complete or not at all, even after a loss of power."""
    number, unfinished = tempfile.mkstemp(UNFINISHED, path.name[:40], path.parent)
    try:
        with open(number, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(unfinished)
        raise


def _touch(path: Path) -> None:
    """Note that a file is in use."""
    with contextlib.suppress(OSError):
        if path.stat().st_mtime < time.time() - _HOUR:
            os.utime(path)


def _tidy(folder: Path, newest: str) -> None:
    """Remove half-written files of processes that died, and kernels that are no longer used.

    Another process may be about to read one. If it vanishes, that process compiles it again.
    """
    now = time.time()
    kernels = []
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                status = entry.stat(follow_symlinks=False)
                if not stat.S_ISREG(status.st_mode) or entry.name == newest:
                    continue
                age, suffix = now - status.st_mtime, Path(entry.name).suffix
                if suffix == _SUFFIX:
                    kernels.append((age, status.st_size, entry.path))
                elif suffix in _LONGEST and age > _LONGEST[suffix]:
                    os.unlink(entry.path)
    total = 0
    for age, size, path in sorted(kernels):
        total += size
        if age > _LONGEST_UNUSED or total > _MOST_BYTES:
            with contextlib.suppress(OSError):
                os.unlink(path)


def _reason(error: Exception) -> str:
    return str(error.strerror if isinstance(error, OSError) else error)


def kept_in() -> Path | None:
    """The folder in which compiled kernels are kept; None if there is none that can be trusted."""
    trusted = (folder for folder in _candidates() if folder.is_dir() and _distrust(folder) is None)
    return next(trusted, None)


def keep_on_disk(dispatcher: Any) -> None:
    """Give a dispatcher a cache on disk."""
    with _surprises_from_numba():
        if not hasattr(dispatcher, "_cache"):
            raise AttributeError("dispatchers have no _cache")
        dispatcher._cache = KernelCache(dispatcher)


def place_of(dispatcher: Any, sig: Any) -> Path | None:
    """Where the kernel for a signature is kept, or will be; None if it cannot be kept."""
    with _surprises_from_numba():
        cache = dispatcher._cache
        identity = cache._identity(sig, dispatcher.targetctx.codegen())
        if identity is None:
            return None
        for folder in _candidates():
            with contextlib.suppress(UnusableError, OSError):
                _make(folder)
                if os.access(folder, os.W_OK):
                    return folder / str(cache._file_name(identity))
    return None
