"""Files that are complete or untouched, and nothing foreign replaced."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from refused_writes import small_disk

from sparsecv_mio import files
from sparsecv_mio.errors import BadInput
from sparsecv_mio.files import JsonLines, check_readable, check_writable, replacing, special, write_bytes, write_text


def test_a_file_is_replaced_and_keeps_its_permissions(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text("old")
    file.chmod(0o600)
    write_text(file, ["new", " text"])
    assert file.read_text() == "new text" and stat.S_IMODE(file.stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["a.json"]


def test_a_full_disk_leaves_the_old_file(tmp_path: Path) -> None:
    file = tmp_path / "a.bin"
    file.write_text("old")
    with small_disk(1000), pytest.raises(BadInput, match=r"cannot write checkpoint .*a\.bin: File too large"):
        write_bytes(file, [b"x" * 100_000], "checkpoint")
    assert file.read_text() == "old" and os.listdir(tmp_path) == ["a.bin"]


def test_a_writer_that_fails_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), replacing(tmp_path / "figure.png") as temporary:
        temporary.write_text("half")
        raise RuntimeError
    assert os.listdir(tmp_path) == []


def test_files_beside_go_along(tmp_path: Path) -> None:
    with replacing(tmp_path / "model.nl") as temporary:
        temporary.write_text("model")
        temporary.with_suffix(".col").write_text("names")
    assert sorted(os.listdir(tmp_path)) == ["model.col", "model.nl"]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    link = tmp_path / "link.json"
    link.symlink_to(tmp_path / "far" / "target.json")
    for text in ("first", "second"):
        write_text(link, [text])
        assert link.is_symlink() and (tmp_path / "far" / "target.json").read_text() == text


def test_a_pipe_is_written_through_or_refused(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(BadInput, match="it is a pipe"):
        write_text(pipe, ["text"])
    with pytest.raises(BadInput, match="--checkpoint: .* is a pipe"):
        check_writable(pipe, "--checkpoint")
    check_writable(pipe, "--json", through=True)
    got: list[str] = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_text()))
    reader.start()
    write_text(pipe, ["some ", "text"], through=True)
    reader.join()
    assert got == ["some text"] and stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.parametrize("through", [False, True])
def test_a_device_is_never_replaced(through: bool) -> None:
    with pytest.raises(BadInput, match="cannot write file /dev/full: (it is a device|No space left on device)"):
        write_text("/dev/full", ["text"], through=through)
    assert special("/dev/full") == "a device"


@pytest.mark.parametrize("name", ["x" * 300, "nul\0nul", "loop", "no/where"])
def test_names_that_cannot_be(name: str, tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    place = f"{tmp_path}/{name}"
    asked = lambda: check_writable(place, "--json"), lambda: write_text(place, [""]), lambda: check_readable(place)
    for ask in asked:
        with pytest.raises(BadInput) as caught:
            ask()
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("place", "word"), [("/dev/zero", "a device"), ("/", "a folder"), ("pipe", "a pipe")])
def test_only_regular_files_are_read(place: str, word: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(BadInput, match=f"cannot read fold file .*: it is {word}"):
        check_readable(tmp_path / place, "fold file")


def test_the_size_of_what_is_read_is_limited(tmp_path: Path) -> None:
    file = tmp_path / "large"
    with file.open("wb") as stream:
        stream.truncate(10**12)
    with pytest.raises(BadInput, match="its 1,000,000,000,000 bytes exceed the limit of 1,000 bytes"):
        check_readable(file, most=1000)


def test_what_a_killed_write_left_is_swept_once_it_is_old(tmp_path: Path) -> None:
    old, young, other = (tmp_path / f".sparsecv-{word}" for word in ("0" * 16, "1" * 16, "mine"))
    for folder in (old, young, other):
        folder.mkdir()
        (folder / "a.json").write_text("half")
    long_ago = time.time() - 2.0 * files.LEFT_BEHIND
    for folder in (old, other):
        os.utime(folder, (long_ago, long_ago))
    assert files.remove_stale_folders(tmp_path) == 1 and not old.exists() and young.exists() and other.exists()
    assert files.remove_stale_folders(tmp_path / "nowhere") == 0


def test_lines_of_two_runs_never_mix(tmp_path: Path) -> None:
    place = tmp_path / "steps.jsonl"
    place.write_text("of a run before\n")
    first = JsonLines(place, "progress-json")
    first.write({"line": 1})
    code = "import sys; from sparsecv_mio.files import JsonLines; JsonLines(sys.argv[1], 'progress-json').write({})"
    second = subprocess.run([sys.executable, "-c", code, str(place)], capture_output=True, text=True, check=False)
    if sys.platform != "win32":
        assert f"another run is writing {place}; give each run a separate file" in second.stderr
        first.write({"line": 2})
        assert [json.loads(line) for line in place.read_text().splitlines()] == [{"line": 1}, {"line": 2}]
    first.close()
    JsonLines(place, "progress-json").close()
    assert place.read_text() == ""  # a later run begins again
