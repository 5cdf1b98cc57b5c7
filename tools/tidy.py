#!/usr/bin/env python3
"""The house rules that a compiler does not know. Prints FILE:LINE: problem, one per line.

Each rule is a function over the tree that yields problems. The layer table and the list of banned
things are data, at the top, because those are what changes.
"""

import re
import sys
from collections import namedtuple
from pathlib import Path

from unnamed import unnamed

ROOT = Path(__file__).resolve().parent.parent

# Which folder may include which: ARCHITECTURE.md, "Folders". A folder may always include itself.
DOMAIN = ("base", "core")
LAYERS = {
    "src/base": (),
    "src/core": ("base",),
    "src/store": DOMAIN,
    "src/vault": DOMAIN,
    "src/keeper": ("base",),
    "src/keepers": (*DOMAIN, "keeper"),
    "src/files": ("base",),
    "src/images": (*DOMAIN, "files"),
    "src/plugins": (*DOMAIN, "keeper", "keepers"),
    "src/places": (*DOMAIN, "keeper", "keepers", "files", "images", "egress", "plugins"),
    "src/workspaces": (*DOMAIN, "files"),
    "src/snapshots": ("base", "files"),
    "src/egress": DOMAIN,
    "src/engine": (*DOMAIN, "keeper", "keepers", "store", "vault", "plugins", "places", "files",
                   "workspaces", "egress"),
    "src/api": (*DOMAIN, "engine"),
    "src/http": (*DOMAIN, "engine", "api"),
    "src/e2b": (*DOMAIN, "engine", "api"),
    "src/cli": (*DOMAIN, "keeper", "images", "workspaces", "plugins", "plugin_kit"),
    "src/app": None,  # sees everything
    "tools/plugin_kit": (*DOMAIN, "keeper", "plugins"),
    "sdk/cpp": ("base", "sdk"),
    "plugins": ("base", "keeper", "sdk"),
}

# What is banned, where it is allowed nevertheless, and what to write instead. A line that must use
# it states why: `// allowed: reason`.
Ban = namedtuple("Ban", "pattern allowed instead")
NOWHERE = r"$^"
TESTS = r"_test\.[ch]pp$|^tests/|^bench/"
# Decoders and schema code, which look into JSON by key. Everything else reads typed values.
JSON_DECODERS = "|".join((
    r"^src/base/json/",
    r"^src/core/config/(bindings|config_path|config_schema)\.cpp$",
    r"^src/core/output/agent_(line|failure)\.cpp$",
    r"^src/images/oci\.cpp$",
    r"^src/plugins/(message\.cpp$|manifest/)",
    r"^tools/plugin_kit/",
    r"^sdk/cpp/sdk/(wire|worker)\.cpp$",
))
BANS = (
    Ban(r"\basio::detached\b", NOWHERE, "TaskGroup::start, so that the task has an owner and an end"),
    Ban(r"\bco_spawn\b", r"^src/base/async/task_group\.|" + TESTS, "TaskGroup::start"),
    Ban(r"\bstd::j?thread\b", r"^src/(base|store|app)/|^(sdk|plugins)/|" + TESTS,
        "offload (base/async/offload.hpp): logic stays on the loop"),
    Ban(r"\bcatch\s*\(\s*\.\.\.\s*\)\s*\{\s*\}", NOWHERE, "a Result that says what happened"),
    Ban(r"\busing\s+namespace\s+std\b(?!::\w*literals)", NOWHERE, "the names themselves"),
    Ban(r"\b(sleep_for|usleep|nanosleep)\b", r"^bench/", "a wait for the event itself, or a Clock"),
    Ban(r"\b(throw|try)\b", r"^(?!src/core/)|" + TESTS, "Result: core neither throws nor catches"),
    Ban(r"\b(std::)?getenv\b", r"^src/(app|cli)/|^src/base/fault_point\.cpp|" + TESTS,
        "a value of the configuration, given by app/"),
    Ban(r"\b(std::)?(system|popen|rand|srand|gets|strcpy|sprintf)\s*\(", TESTS,
        "a typed call of base/"),
    Ban(r"\bstd::c(out|err|log)\b", r"^src/(app|cli)/|" + TESTS,
        "log (base/log.hpp)"),
    Ban(r"\bif_contains\(", JSON_DECODERS + "|" + TESTS,
        "the struct that declares the JSON, or peek (base/json/peek.hpp)"),
    Ban(r"\b(class|struct)\s+(\[\[\w+\]\]\s*)?\w*(Manager|Helper|Util|Utils|Impl|Data|Info)\b",
        NOWHERE, "a noun that says what it is"),
    Ban(r"\b\w+Id::parse\([^;]*\.str\(\)\)", TESTS,
        "the id itself: an id made from another kind of id breaks what the types promise"),
)

# Words of a private dialect, and what an engineer would write. In comments, messages and documents.
DIALECT = (
    (r"(?<!there )(?<!this )\bis no\b(?! longer| more\b)", "is not a"),
    (r"\bwhoever\b", "the caller, process or user that it is"),
    (r"\b(is|are|was) told\b", "receives, or: is reported"),
)
NOT_OURS = r"^docs/adr/|^CHANGELOG\.md$|^docs/security-tests\.md$"

CODE_FOLDERS = ("src", "sdk", "plugins", "tests", "bench", "tools")
LINE_MAX = 100
LINE_MAX_PROSE = 120  # comments and raw strings
FILE_LINES_MAX = 600
FUNCTION_LINES_MAX = 70
FOLDER_FILES_MAX = 40  # tests aside
PURE_VIRTUALS_MAX = 12
README_LINES_MAX = 30
ARCHITECTURE_LINES_MAX = 300
NO_LAYER = ("src/boost",)  # compiled-once library sources

Source = namedtuple("Source", "path name text lines code")


def masked(text):
    """The text with comments, strings and characters blanked, so that rules see only code."""
    token = re.compile(
        r'//[^\n]*|/\*.*?\*/|R"([^\s()\\]*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"'
        r"|(?<![0-9A-Za-z_])'(?:\\.|[^'\\\n])+'", re.S)
    return token.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), text)


def sources(root):
    found = []
    for folder in CODE_FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in (".cpp", ".hpp") and path.is_file():
                text = path.read_text(encoding="utf-8")
                found.append(Source(path, path.relative_to(root).as_posix(), text,
                                    text.splitlines(), masked(text)))
    return found


def documents(root):
    found = [*root.glob("*.md"), *(root / "docs").rglob("*.md"), *(root / "src").glob("*/README.md")]
    return sorted(found)


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def layer_of(name):
    return next((layer for layer in LAYERS if name.startswith(layer + "/")), None)


def layers(root, code):
    """includes and names point down"""
    folders = {layer.split("/")[1] for layer in LAYERS if layer.startswith("src/")} | {"sdk", "plugin_kit"}
    namespaces = re.compile(r"(?<![\w:.>])(?:berth::)?(%s)::" % "|".join(sorted(folders - {"http"})))
    for source in code:
        layer = layer_of(source.name)
        if layer is None:
            if source.name.startswith("src/") and source.name.count("/") > 1 and \
                    not source.name.startswith(NO_LAYER):
                yield f"{source.name}:1: this folder is not in the layer table of tools/tidy.py"
            continue
        allowed = LAYERS[layer]
        own = (layer.split("/")[-1], *(allowed or folders))
        for found in namespaces.finditer(source.code):
            # An include that comes through another header would hide what a folder knows.
            if found.group(1) not in own:
                yield (f"{source.name}:{line_of(source.code, found.start())}: {layer} may not name "
                       f"{found.group(1)}:: (it sees {', '.join(allowed) or 'nothing'})")
        for number, line in enumerate(source.lines, 1):
            include = re.match(r'\s*#\s*include\s*"([^"/]+)/', line)
            if not include or allowed is None:
                continue
            seen = include.group(1)
            if seen in folders and seen not in allowed and seen != layer.split("/")[-1]:
                yield (f"{source.name}:{number}: {layer} may not see {seen}/ "
                       f"(it sees {', '.join(allowed) or 'nothing'}); pass a value or an interface")


def banned(root, code):
    """nothing banned is used"""
    for source in code:
        for ban in BANS:
            if re.search(ban.allowed, source.name):
                continue
            for found in re.finditer(ban.pattern, source.code):
                line = line_of(source.code, found.start())
                if not re.search(r"// allowed: \w", source.lines[line - 1]):
                    yield (f"{source.name}:{line}: '{found.group().strip()}' is banned; "
                           f"use {ban.instead}")


def remarks(root, code):
    """NOLINT has a reason and TODO a kind"""
    for source in code:
        for number, line in enumerate(source.lines, 1):
            if "NOLINT" in line and not re.search(r"NOLINT(NEXTLINE|BEGIN)?\([\w.,-]+\): \w", line) \
                    and "NOLINTEND" not in line:
                yield f"{source.name}:{number}: write NOLINT(check): and the reason"
            if re.search(r"\b(TODO|FIXME|XXX)\b", line) and not re.search(r"TODO\(\w+\): \w", line):
                yield f"{source.name}:{number}: write TODO(kind): and a sentence"


def shape(root, code):
    """lines and files keep their limits"""
    for source in code:
        if len(source.lines) > FILE_LINES_MAX:
            yield (f"{source.name}:{FILE_LINES_MAX}: {len(source.lines)} lines; a file has at most "
                   f"{FILE_LINES_MAX}")
        blank = source.code.splitlines()
        for number, line in enumerate(source.lines, 1):
            # A line that masking shortened ends in prose or a string that the formatter cannot
            # break.
            prose = len(blank[number - 1].rstrip()) <= LINE_MAX
            if len(line) > (LINE_MAX_PROSE if prose else LINE_MAX):
                yield f"{source.name}:{number}: {len(line)} columns; the limit is {LINE_MAX}"
            if line != line.rstrip():
                yield f"{source.name}:{number}: space at the end of the line"
        if source.text and not source.text.endswith("\n"):
            yield f"{source.name}:{len(source.lines)}: no newline at the end"


def functions_of(code):
    """Yields (offset of the opening brace, offset of its end) for each function of masked code."""
    inside, start = [], 0  # for each open brace: may it hold functions, and where one began
    for found in re.finditer(r"[;{}]", code):
        if found.group() == "{":
            head = code[start:found.start()]
            holds = re.search(r"\b(namespace|class|struct|union|extern)\b[^()=]*$", head) is not None
            scope = all(kind == "scope" for kind, _ in inside)
            is_value = re.search(r"[^=!<>]=[^=]", head.partition("(")[0]) is not None
            is_function = scope and not holds and "(" in head and not is_value
            inside.append(("scope" if holds and scope else "function" if is_function else "block",
                           found.start()))
        elif found.group() == "}" and inside:
            kind, opened = inside.pop()
            if kind == "function":
                yield opened, found.start()
        start = found.end()


def is_table(body):
    """Whether a function only returns a list: data, whose length says nothing about its logic."""
    steps = [line for line in body.splitlines() if re.match(r"  [^\s}]", line)]
    return "  return {" in steps and len(steps) <= 8


def functions(root, code):
    """functions keep their limit, blank lines and comments aside"""
    for source in code:
        for opened, closed in functions_of(source.code):
            body = source.code[opened:closed]
            lines = sum(1 for line in body.splitlines() if line.strip())
            if lines > FUNCTION_LINES_MAX and not re.search(TESTS, source.name) and \
                    not is_table(body):
                yield (f"{source.name}:{line_of(source.code, opened)}: a function of {lines} lines; "
                       f"the limit is {FUNCTION_LINES_MAX}")


def interfaces(root, code):
    """an interface has at most 12 pure virtual functions"""
    for source in code:
        for found in re.finditer(r"\b(?:class|struct)\s+(\w+)[^;{}()]*\{", source.code):
            depth, at = 1, found.end()
            while depth and at < len(source.code):
                depth += {"{": 1, "}": -1}.get(source.code[at], 0)
                at += 1
            pure = len(re.findall(r"\bvirtual\b[^;{}]*\)[^;{}()]*=\s*0\s*;", source.code[found.end():at]))
            if pure > PURE_VIRTUALS_MAX:
                yield (f"{source.name}:{line_of(source.code, found.start())}: {found.group(1)} has {pure} "
                       f"pure virtual functions; the limit is {PURE_VIRTUALS_MAX}: find the abilities in it")


def headers(root, code):
    """headers start with #pragma once and sources with their own header"""
    names = {source.name for source in code}
    for source in code:
        if source.name.endswith(".hpp"):
            if not source.text.startswith("#pragma once\n"):
                yield f"{source.name}:1: the first line is #pragma once"
            continue
        own = re.sub(r"(_test)?\.cpp$", ".hpp", source.name)
        if own not in names or not own.startswith("src/"):
            continue
        first = re.search(r'^#include ["<]([^">]+)[">]', source.text, re.M)
        if not first or "src/" + first.group(1) != own:
            yield f"{source.name}:1: the first include is \"{own[len('src/'):]}\""


def folders(root, code):
    """each folder of src/ has a README of at most 30 lines and at most 40 files, tests aside"""
    for folder in sorted(path for path in (root / "src").rglob("*") if path.is_dir()):
        files = [each for each in folder.iterdir() if each.is_file() and
                 not re.search(r"_(test|fuzz)\.cpp$|_fixture\.hpp$", each.name)]
        if len(files) > FOLDER_FILES_MAX:
            yield (f"{folder.relative_to(root).as_posix()}: {len(files)} files; "
                   f"a folder has at most {FOLDER_FILES_MAX}: find the rooms in it")
    for folder in sorted(path for path in (root / "src").iterdir() if path.is_dir()):
        name = folder.relative_to(root).as_posix()
        if name in NO_LAYER:
            continue
        readme = folder / "README.md"
        if not readme.exists():
            yield f"{name}: write {name}/README.md: purpose, main types, what may not be done here"
        elif len(readme.read_text(encoding="utf-8").splitlines()) > README_LINES_MAX:
            yield f"{name}/README.md:{README_LINES_MAX}: at most {README_LINES_MAX} lines"


def prose(root, code):
    """documents have one title and links that lead somewhere"""
    for path in documents(root):
        name = path.relative_to(root).as_posix()
        text = path.read_text(encoding="utf-8")
        plain = re.sub(r"^```.*?^```", lambda found: "\n" * found.group().count("\n"), text,
                       flags=re.S | re.M)
        titles = re.findall(r"^# ", plain, re.M)
        if len(titles) != 1 or not text.startswith("# "):
            yield f"{name}:1: a document starts with its one title"
        for link in re.finditer(r"\]\(([^)#\s]+)[^)]*\)", plain):
            target = link.group(1)
            if not re.match(r"[a-z]+:", target) and not (path.parent / target).exists():
                yield f"{name}:{line_of(plain, link.start())}: {target} does not exist"
    architecture = root / "ARCHITECTURE.md"
    if architecture.exists():
        length = len(architecture.read_text(encoding="utf-8").splitlines())
        if length > ARCHITECTURE_LINES_MAX:
            yield f"ARCHITECTURE.md:{length}: at most {ARCHITECTURE_LINES_MAX} lines"


def words(root, code):
    """comments, messages and documents are in plain English"""
    texts = [(source.name, "\n".join(
        line if blank.strip() != line.strip() else "" for line, blank in
        zip(source.lines, source.code.splitlines()))) for source in code
        if not re.search(TESTS, source.name)]
    texts += [(path.relative_to(root).as_posix(), path.read_text(encoding="utf-8"))
              for path in documents(root)]
    for name, text in texts:
        if re.search(NOT_OURS, name):
            continue
        plain = re.sub(r"`[^`\n]*`", "", text)
        for pattern, instead in DIALECT:
            for found in re.finditer(pattern, plain, re.I):
                yield (f"{name}:{line_of(plain, found.start())}: '{found.group()}': "
                       f"write {instead}")


def promises(root, code):
    """every test that docs/guarantees.md names exists"""
    document = root / "docs" / "guarantees.md"
    if not document.exists():
        return
    made = {".".join(found) for source in code if re.search(TESTS, source.name)
            for found in re.findall(r"^(?:TYPED_)?TEST(?:_F|_P)?\((\w+),\s*(\w+)\)", source.text, re.M)}
    for path in (root / "tests" / "e2e").glob("*_test.py"):
        made |= {f"{path.name}: {name}" for name in
                 re.findall(r"def test_(\w+)", path.read_text(encoding="utf-8"))}
    for path in (root / "tests" / "web").glob("*.test.mjs"):
        made |= {f"web.{name}" for name in
                 re.findall(r'^test\("([^"]+)"', path.read_text(encoding="utf-8"), re.M)}
    for number, line in enumerate(document.read_text(encoding="utf-8").splitlines(), 1):
        last_file = ""
        for word in re.findall(r"`([^`]+)`", line.rpartition(" | ")[2] if line.startswith("|") else ""):
            if "/" in word or word == "static_assert":
                continue
            file = re.match(r"\w+_test\.py", word)
            last_file = file.group() if file else last_file
            wanted = word if file or "." in word else f"{last_file}: {word}"
            start = re.sub(r"(\*|\.\.\.)$", "", wanted)
            if not any(name == wanted or (start != wanted or wanted == last_file) and
                       name.startswith(start) for name in made):
                yield f"docs/guarantees.md:{number}: there is no test {word}"


RULES = (layers, banned, remarks, shape, functions, interfaces, headers, folders, prose, words,
         promises, unnamed)


def problems(root=ROOT):
    """Yields (rule, what it promises, list of problems)."""
    code = sources(root)
    for rule in RULES:
        yield rule.__name__, rule.__doc__, list(rule(root, code))


def main():
    status = 0
    for _, _, found in problems():
        for problem in found:
            print(problem)
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
