"""Prepares a release: the source distribution, a wheel of it, and the recipes.    release.py URL OUT [--archive URL] [--no-wheel]

URL is the address of the repository. See README.md beside this file."""

import argparse
import hashlib
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
RECIPES = ("conda/recipe.yaml", "spack/py_gpuglue/package.py")
LINK = re.compile(r"(!?)\]\((?!https?:|#|mailto:)([^)\s]+)\)")


def run(*command, **options):
    subprocess.run([str(word) for word in command], check=True, **options)


def version():
    return re.search(r"version: '([\d.]+)'", (ROOT / "meson.build").read_text()).group(1)


def absolute(text, url, tag):
    """A page whose relative links are absolute."""
    return LINK.sub(lambda link: f"{link[1]}]({url}/blob/{tag}/{link[2]})", text)


def addresses(url, tag):
    return f"""
[project.urls]
Homepage = "{url}"
Documentation = "{url}/blob/{tag}/docs/index.md"
Source = "{url}"
Issues = "{url}/issues"
Changelog = "{url}/blob/{tag}/CHANGELOG.md"
"""


def prepare(directory, url, tag):
    """A clone of the last commit, in which the metadata and the README have addresses; as a commit, which an sdist is made of."""
    run("git", "clone", "-q", ROOT, directory)
    pyproject, readme = directory / "pyproject.toml", directory / "README.md"
    pyproject.write_text(pyproject.read_text() + addresses(url, tag))
    readme.write_text(absolute(readme.read_text(), url, tag))
    run("git", "-c", "user.name=release", "-c", "user.email=release@localhost", "commit", "-qam", tag, cwd=directory)


def build(kind, source, out):
    run(sys.executable, "-m", "build", f"--{kind}", "--no-isolation", "--outdir", out, source, stdout=subprocess.DEVNULL)


def build_wheel(sdist, out):
    with tempfile.TemporaryDirectory() as place, tarfile.open(sdist) as packed:
        packed.extractall(place, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
        (source,) = Path(place).iterdir()
        build("wheel", source, Path(place) / "raw")
        run(sys.executable, ROOT / "tests/wheel/check_wheel.py", "--retag", out, *(Path(place) / "raw").glob("*.whl"))


def fill(out, words):
    for name in RECIPES:
        text = (HERE / name).read_text()
        for word, value in words.items():
            text = text.replace(f"@{word}@", value)
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_text(text)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("url", help="address of the repository")
    parser.add_argument("out", type=Path)
    parser.add_argument("--archive", help="address of the source distribution, by default below the repository's")
    parser.add_argument("--no-wheel", action="store_true")
    options = parser.parse_args()
    url, out, tag = options.url.rstrip("/"), options.out.resolve(), f"v{version()}"
    if not re.fullmatch(r"https?://[^\s\"]+", url):
        parser.error(f"URL is {options.url!r}: expected the address of the repository, such as https://example.org/gpuglue")
    name = f"gpuglue-{version()}.tar.gz"
    with tempfile.TemporaryDirectory() as directory:
        prepare(Path(directory) / "tree", url, tag)
        build("sdist", Path(directory) / "tree", out)
    sdist = out / name
    if not options.no_wheel:
        build_wheel(sdist, out)
    archive = options.archive or f"{url}/releases/download/{tag}/{name}"
    fill(out, {"VERSION": version(), "URL": url, "ARCHIVE": archive, "SHA256": hashlib.sha256(sdist.read_bytes()).hexdigest()})
    print(f"{out}: {name}, {'' if options.no_wheel else 'a wheel, '}{', '.join(RECIPES)}")


if __name__ == "__main__":
    main()
