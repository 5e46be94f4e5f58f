# SPDX-License-Identifier: Apache-2.0
"""Third-party archivers list and extract tar shards without a warning."""

import os
import shutil
import subprocess

import pytest

import images
from reference import SMALL

LIST_WITH_PERL = """
my $archive = Archive::Tar->new($ARGV[0]) or die Archive::Tar->error;
for my $file ($archive->get_files) { print $file->full_path, " ", md5_hex($file->get_content), "\\n"; }
"""


def run_client(*command):
    """Returns the client's output; it must not write to standard error."""
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    done = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, env={**os.environ, "LC_ALL": "C.UTF-8"}
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.fixture(scope="module", params=("dataset", "packed"))
def shard(request, run, build, animals, tmp_path_factory):
    """A shard of tensors or of packed images, and the names of its entries."""
    source, files = animals
    out = tmp_path_factory.mktemp("shard") / "out"
    if request.param == "dataset":
        (path,) = build(source, out, "--shards", "1", *SMALL.options()).shard_paths()
        return path, sorted(name for key in files for name in (f"{key}.npy", f"{key}.cls"))
    run("pack", source, out, "--format", "tar", "--quiet")
    (path,) = out.glob("*.tar")
    return path, None


def contents(folder):
    paths = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


@pytest.fixture
def expected(shard):
    """The entries as Python's tarfile reads them."""
    import tarfile

    path, names = shard
    with tarfile.open(path) as archive:
        found = {member.name: archive.extractfile(member).read() for member in archive}
    assert names is None or sorted(found) == names
    return found


def test_perl_reads_every_entry(shard, expected):
    import hashlib

    lines = run_client("perl", "-MArchive::Tar", "-MDigest::MD5=md5_hex", "-e", LIST_WITH_PERL, shard[0]).splitlines()
    assert dict(line.rsplit(" ", 1) for line in lines) == {
        name: hashlib.md5(content).hexdigest() for name, content in expected.items()
    }


@pytest.mark.parametrize("client", (("tar",), ("bsdtar",), ("busybox", "tar")), ids=("gnu", "bsd", "busybox"))
def test_archivers_list_and_extract_every_entry(shard, expected, tmp_path, client):
    listed = run_client(*client, "-tvf", shard[0]).splitlines()
    assert [line.split()[-1] for line in listed] == list(expected)
    assert all(line.startswith("-rw-r--r--") for line in listed)
    run_client(*client, "-xf", shard[0], "-C", tmp_path)
    assert contents(tmp_path) == expected


@pytest.mark.parametrize("client", (("tar",), ("bsdtar",), ("busybox", "tar")), ids=("gnu", "bsd", "busybox"))
def test_archivers_read_names_from_pax_headers(build, tmp_path, client):
    for number in range(3):
        images.draw_unique(tmp_path / "images" / "cat" / f"{'long-name-' * 15}{number}.png", number)
    (path,) = build(tmp_path / "images", tmp_path / "out", *SMALL.options()).shard_paths()
    names = run_client(*client, "-tf", path).splitlines()
    assert sorted(names) == sorted(
        f"cat/{'long-name-' * 15}{number}.{end}" for number in range(3) for end in ("npy", "cls")
    )
