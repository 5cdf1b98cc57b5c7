"""Names in unnamed namespaces. Several sources of a library are compiled as one (berth_compile_in_batches), where two
such names are one; which sources meet depends on their number, so no two of a library may share a name at all."""

import re
from collections import defaultdict

# A library is a folder with its subfolders; these subfolders are libraries of their own.
OWN_LIBRARIES = ()
EXEMPT = ()

NAMESPACE = re.compile(r"(?:^|\s)(?:inline\s+)?namespace(?:\s+([\w:]+))?\s*$")
TYPE = re.compile(r"(?:enum\s+class|enum|struct|class|union)\s+(\w+)\s*(?:final\s*)?(?::(?!:)|$)")
PLAIN = re.compile(r"(?:using|concept)\s+(\w+)\s*(?:=|$)")
ENUM_MACRO = re.compile(r"BOOST_DEFINE_ENUM_CLASS\((\w+),")
NO_NAME = re.compile(r"(?:using|namespace|friend|static_assert|extern|[A-Z][A-Z_]+)\b")
DIRECTIVE = re.compile(r"^[ \t]*#(?:.*\\\n)*.*$", re.M)
ATTRIBUTE = re.compile(r"\[\[\w+(?:\([^)]*\))?\]\]")
WORD_BEFORE = re.compile(r"(::\s*)?(\w+)\s*(?:\[[^\]]*\])?\s*$")
NOT_CALLED = ("alignas", "decltype", "explicit", "noexcept", "requires")


def in_code(code):
    """Yields (enclosing namespace, name, offset) for each name that an unnamed namespace of the masked code declares."""
    code = DIRECTIVE.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), code)
    opened, parens, begin = [], 0, 0  # opened: a namespace's name, "" for an unnamed one, None for other braces
    for mark in re.finditer(r"[{}();]", code):
        kind, at = mark.group(), mark.start()
        if kind in "()":
            parens += 1 if kind == "(" else -1
            continue
        outside = None not in opened and parens == 0
        if kind == "{":
            head = code[begin:at]
            namespace = NAMESPACE.search(head) if outside else None
            opened.append((namespace.group(1) or "") if namespace else None)
        elif kind == "}" and opened:
            opened.pop()
        if not outside and not (kind == "}" and None not in opened and parens == 0):
            continue
        scope = opened[:-1] if kind == "{" else opened
        if kind != "}" and "" in scope and (name := declared(code[begin:at])):
            yield "::".join(filter(None, scope)), name, at
        begin = at + 1


def declared(head):
    """The name that the start of a declaration declares, or None: a member that is defined outside of its class has one."""
    head = without_template(ATTRIBUTE.sub("", head).strip())
    if found := TYPE.match(head) or PLAIN.match(head) or ENUM_MACRO.match(head):
        return found.group(1)
    if not re.match(r"[A-Za-z_:]", head) or NO_NAME.match(head):
        return None
    angles = 0
    for at, letter in enumerate(head):
        if letter == "<":
            angles += 1
        elif letter == ">" and head[at - 1] != "-":
            angles -= 1
        elif angles == 0 and letter in "(=":
            found = WORD_BEFORE.search(head[:at])
            if found and found.group(2) not in NOT_CALLED:
                return own_name(found)
    return own_name(WORD_BEFORE.search(head))


def own_name(found):
    return None if not found or found.group(1) or found.group(2) == "operator" else found.group(2)


def without_template(head):
    while head.startswith("template"):
        depth = 0
        for at, letter in enumerate(head):
            depth += {"<": 1, ">": -1}.get(letter, 0)
            if letter == ">" and depth == 0:
                head = head[at + 1:].strip()
                break
        else:
            return ""
    return re.sub(r"^requires\s+[\w:]+(?:<[^>]*>)?\s*", "", head)


def programs(root):
    """The sources of each test program of tests/, as its CMakeLists.txt lists them."""
    for listing in sorted((root / "tests").glob("*/CMakeLists.txt")):
        for name, words in re.findall(r"berth_test\((\w+)[^)]*?\bSOURCES\s+([^)]*?)\s*(?:DEPENDS|GROUPS|\))",
                                      listing.read_text(encoding="utf-8")):
            yield name, {(listing.parent / word).relative_to(root).as_posix() for word in words.split()
                         if "$" not in word and ".." not in word}


def library_of(name):
    own = next((folder for folder in OWN_LIBRARIES if name.startswith(folder + "/")), None)
    folder = own or "/".join(name.split("/")[:2])
    return folder + ("_test" if name.endswith("_test.cpp") else "")


def compiled_together(root, code):
    """(library or program, sources): what may be compiled as one."""
    groups = defaultdict(list)
    for source in code:
        if source.name.endswith(".cpp") and source.name.startswith(("src/", "sdk/")) and \
                not source.name.endswith("_fuzz.cpp"):
            groups[library_of(source.name)].append(source)
    for program, names in programs(root):
        groups[program] = [source for source in code if source.name in names]
    return groups.items()


def unnamed(root, code):
    """a name in an unnamed namespace is the only one in its library or test program"""
    for library, together in compiled_together(root, code):
        if library in EXEMPT:
            continue
        first = {}
        for source in together:
            for scope, name, offset in in_code(source.code):
                before = first.setdefault((scope, name), source.name)
                if before != source.name:
                    yield (f"{source.name}:{source.code.count(chr(10), 0, offset) + 1}: '{name}' is in an unnamed namespace "
                           f"of {before} too, and {library} is compiled in batches; rename one, or share it")
