"""Which fault points the source has (src/base/fault_point.hpp), and at which of them a test has
killed a process. A dying process appends its point's name to BERTH_FAULT_LOG, whatever kind of
test it is."""

import os
import re
from pathlib import Path

from stages import ROOT, heading, result

LOG = ROOT / "build" / "fault-points.log"
DEFINED_IN = "fault_point"
CALL = re.compile(r"\bfault_point\(([^;]*?)\);")
LITERAL = re.compile(r'"([a-z_]+\.[a-z_]+)"')


def begin(log=LOG):
    """Discards the hits of earlier tests; all programs that this process starts get the file."""
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text("")
    os.environ["BERTH_FAULT_LOG"] = str(log)


def sources(folder=ROOT / "src"):
    return {path: path.read_text() for path in sorted(folder.rglob("*.[ch]pp"))
            if path.stem != DEFINED_IN and not path.stem.endswith("_test")}


def in_sources(texts):
    """(names of all points, calls whose name is not a literal, each with its file)."""
    names, unreadable = set(), []
    for path, text in texts.items():
        for argument in CALL.findall(text):
            if literal := LITERAL.fullmatch(argument.strip()):
                names.add(literal.group(1))
            else:
                unreadable.append(f"{Path(path).name}: fault_point({argument}) needs a literal name.of_point")
    return names, unreadable


def problems(texts, noted):
    """The problems, one per line: points that no test hits, and hits of points that do not exist."""
    names, found = in_sources(texts)
    hit = set(noted.split())
    found += [f"{name}: no test kills a process at this fault point" for name in sorted(names - hit)]
    found += [f"{name}: a process died at this point, but the source does not have it"
              for name in sorted(hit - names)]
    return found if names else ["there is no fault point in the source"]


def judge(tally, log=LOG):
    """Counts one check. It is meaningful only after all stages."""
    heading("fault points")
    noted = log.read_text() if log.exists() else ""
    result(tally, "fault-points: a test kills a process at each of them",
           "\n".join(problems(sources(), noted)) or None)
