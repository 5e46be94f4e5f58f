# SPDX-License-Identifier: Apache-2.0
"""Writes the parts of the site that follow from the project: MkDocs calls these functions.

A page asks for them with comments, which other viewers of Markdown do not show:

    <!-- help: build -->                        the output of `precache build --help`
    <!-- help: cluster/slurm -->                that of `precache cluster slurm --help`
    <!-- header: reader/include/.../x.hpp -->   a C++ header
    <!-- schema: formats/x.schema.json -->      a JSON Schema as tables

Files outside docs/ that a page links to (samples, CHANGELOG.md, ...) become pages of the site.
"""

import json
import os
import posixpath
import re
import subprocess
import textwrap
from pathlib import Path

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
TOOL = Path(os.environ.get("PRECACHE") or ROOT / "build" / "release" / "precache")
LINK = re.compile(r"(\]\(|^\[[^\]]+\]: )([^)\s#]+)(#[^)\s]*)?(\)|$)", re.MULTILINE)
FENCE = re.compile(r"^(```.*?^```)$", re.DOTALL | re.MULTILINE)
LANGUAGES = {".py": "python", ".cpp": "cpp", ".hpp": "cpp", ".sh": "bash", ".txt": "text"}
TOUR = "samples/tour.ipynb"
PROJECT_PAGES = ["CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "tests/README.md"]


def on_config(config):
    """Adds the pages that exist only in some states of the tree."""
    sections = {title: pages for entry in config.nav for title, pages in entry.items()}
    if (ROOT / TOUR).is_file():
        config.nav.insert(2, {"Tour": _mirrored(TOUR)})
    benchmarks = sorted((DOCS / "benchmarks").glob("*.md"), key=lambda page: (page.stem != "index", page))
    sections["Performance"] += [page.relative_to(DOCS).as_posix() for page in benchmarks]
    sections["Internals"] += [_mirrored(name) for name in PROJECT_PAGES]
    return config


def on_files(files, config):
    wanted, done = {*PROJECT_PAGES}, set()
    for page in DOCS.rglob("*.md"):
        wanted |= _outside(page.read_text(), page.relative_to(ROOT).parent.as_posix())
    while left := wanted - done:
        name = left.pop()
        done.add(name)
        text = _page_of(ROOT / name)
        if name.endswith(".md") or (ROOT / name).is_dir():
            wanted |= _outside(text, posixpath.dirname(name))
        files.append(File.generated(config, _mirrored(name), content=text))
    return files


def on_page_markdown(markdown, page, config, files):
    source = page.file.src_uri
    is_mirror = source.startswith("project/")
    name = source.removeprefix("project/").removesuffix("/index.md") if is_mirror else f"docs/{source}"
    folder = posixpath.dirname(name)
    markdown = _without_code(lambda text: LINK.sub(lambda link: _moved(link, folder, source), text), markdown)
    return re.sub(r"^<!-- (help|header|schema): (\S+) -->$", _generated, markdown, flags=re.MULTILINE)


def _without_code(change, markdown):
    parts = FENCE.split(markdown)
    return "".join(part if part.startswith("```") else change(part) for part in parts)


def _outside(markdown, folder):
    """The files of the project that a page links to and that are not in docs/."""
    found = set()

    def note(text):
        for link in LINK.finditer(text):
            name = posixpath.normpath(posixpath.join(folder, link[2]))
            if "://" not in link[2] and not name.startswith("docs/") and (ROOT / name).exists():
                found.add(name)
        return text

    _without_code(note, markdown)
    return found


def _mirrored(name):
    if (ROOT / name).is_dir():
        return f"project/{name}/index.md"
    return f"project/{name}" if name.endswith(".md") else f"project/{name}.md"


def _moved(link, folder, source):
    """A link of a page in `folder` of the project as one of the page `source` of the site."""
    opening, target, anchor, closing = link[1], link[2], link[3] or "", link[4]
    if "://" in target or target.startswith("mailto:"):
        return link[0]
    name = posixpath.normpath(posixpath.join(folder, target))
    if name.startswith("docs/"):
        goal = name.removeprefix("docs/")
    elif name == "README.md":
        goal = "index.md"
    else:
        goal = _mirrored(name)
    return f"{opening}{posixpath.relpath(goal, posixpath.dirname(source) or '.')}{anchor}{closing}"


def _page_of(path):
    """A file of the project as a page; of a folder, the list of its programs."""
    name = path.relative_to(ROOT).as_posix()
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.suffix in (".py", ".cpp", ".sh", ".ipynb"))
        return f"# `{name}/`\n\n" + "".join(f"- [{file.name}]({path.name}/{file.name})\n" for file in files)
    text = path.read_text()
    if path.suffix == ".md":
        return text
    if path.suffix == ".ipynb":
        return _notebook(json.loads(text))
    return f"# `{name}`\n\n```{LANGUAGES.get(path.suffix, 'text')}\n{text.rstrip()}\n```\n"


def _notebook(notebook):
    parts = []
    for cell in notebook["cells"]:
        text = "".join(cell["source"])
        parts.append(text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```")
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if "image/png" in data:
                picture = "".join(data["image/png"]).replace("\n", "")
                parts.append(f'<img alt="Output of the cell above" src="data:image/png;base64,{picture}">')
            elif shown := "".join(output.get("text") or data.get("text/plain") or ""):
                parts.append(f"```text\n{shown.rstrip()}\n```")
    return "\n\n".join(parts) + "\n"


def _generated(match):
    return {"help": _help, "header": _header, "schema": _schema}[match[1]](match[2])


def _help(command):
    if not TOOL.is_file():
        raise PluginError(f"no command at {TOOL}: build it, or set PRECACHE, to show its --help")
    words = [TOOL, "--help"] if command == "precache" else [TOOL, *command.split("/"), "--help"]
    environment = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1"}
    shown = subprocess.run(words, check=True, capture_output=True, text=True, env=environment).stdout
    return "```text\n" + "\n".join(_folded(line) for line in shown.strip().splitlines()) + "\n```"


def _folded(line, width=100):
    """A line of help, broken below the start of its description."""
    column = re.search(r"\S {2,}(?=\S)|^ {20,}", line)
    indent = " " * (column.end() if column else 2)
    return "\n".join(textwrap.wrap(line, width, subsequent_indent=indent)) or line


def _header(name):
    lines = (ROOT / name).read_text().splitlines()
    kept = [line for line in lines if not line.startswith(("// SPDX", "#pragma once", "#include"))]
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip()
    return f"```cpp\n{text}\n```"


def _schema(name):
    """Tables of a JSON Schema: one for the plain keys of its main object, one for each key that is an object."""
    schema = json.loads((DOCS / name).read_text())
    main = schema["$defs"].get("path", schema)  # inspect: a document has one of these per path
    plain, parts = [], []
    for key, value in main["properties"].items():
        inside = _inside(value, schema)
        rows = list(_rows(inside.get("properties", {}), schema)) if inside else []
        note = inside.get("description", "") if inside else ""
        plain.append(_row(key, value, schema, note))
        if rows:
            parts.append(f"**`{key}`**\n\n{_table(rows)}")
    return "\n\n".join([_table(plain), *parts])


def _table(rows):
    return "\n".join(["| key | type | meaning |", "|---|---|---|", *rows])


def _rows(properties, schema, prefix=""):
    for key, value in properties.items():
        inside = _inside(value, schema)
        yield _row(prefix + key, value, schema, inside.get("description", "") if inside else "")
        if inside and "$ref" not in value:
            mark = "[]." if _choice(value, "array") else "."
            yield from _rows(inside.get("properties", {}), schema, prefix + key + mark)


def _row(key, value, schema, note):
    meaning = value.get("description") or note
    return f"| `{key}` | {_kind(value, schema)} | {meaning} |".replace("\n", " ")


def _choice(value, kind):
    """The alternative of a value that has this type."""
    choices = value.get("anyOf") or [value]
    return next((choice for choice in choices if choice.get("type") == kind), None)


def _inside(value, schema):
    """The object that a value is, or that the elements of its list or map are."""
    if "$ref" in value:
        value = _target(value, schema)
    if found := _choice(value, "object"):
        values = found.get("additionalProperties")
        if "properties" not in found and isinstance(values, dict):
            return _inside(values, schema)
        return found
    found = _choice(value, "array")
    return _inside(found["items"], schema) if found and "items" in found else None


def _target(value, schema):
    return schema["$defs"][value["$ref"].rpartition("/")[2]]


def _kind(value, schema):
    if "$ref" in value:
        name = value["$ref"].rpartition("/")[2]
        return "min, max, mean or null" if name == "range" else _kind(_target(value, schema), schema)
    if "enum" in value:
        return ", ".join(f"`{json.dumps(word)}`" for word in value["enum"])
    if "const" in value:
        return f"`{json.dumps(value['const'])}`"
    if "anyOf" in value:
        return " or ".join(_kind(choice, schema) for choice in value["anyOf"])
    kind = value.get("type", "any")
    kind = " or ".join(kind) if isinstance(kind, list) else kind
    if kind == "array":
        return f"list of {_kind(value['items'], schema)}" if "items" in value else "list"
    return kind
