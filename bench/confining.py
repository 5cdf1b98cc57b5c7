"""What a sandbox costs, compared with posix_spawn and with similar tools."""

import contextlib
import json
import os
import shutil
import subprocess
from pathlib import Path

import lab

ROUNDS = 60
IDLE_ROUNDS = 15
IDLE_MS = 300
WAYS = 8
CROWD_S = 2
FEW, MANY = 200, 1000
ROOM_FOR_MANY_KB = 4 << 20
LIVE_ROUNDS = 15
STUBBORN, END_ROUNDS = 100, 20
HEAP_MB, HEAP_ROUNDS = 1024, 10

# The closest that each tool offers to our sandbox: all namespaces, the host's /usr read-only,
# private /tmp, /dev and /proc, no capabilities. None of them limits or filters anything.
BUBBLEWRAP = ["bwrap", "--unshare-all", "--new-session", "--die-with-parent", "--cap-drop", "ALL",
              "--clearenv", "--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin",
              "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64",
              "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--chdir", "/", "/bin/true"]
UNSHARE = ["unshare", "--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup", "--fork",
           "--mount-proc", "/bin/true"]
NAMESPACES = ("pid", "network", "ipc", "uts", "mount", "cgroup")


def oci_config():
    def mount(target, kind, source, *options):
        return {"destination": target, "type": kind, "source": source, "options": list(options)}

    return {
        "ociVersion": "1.0.0",
        "process": {"terminal": False, "user": {"uid": 0, "gid": 0}, "args": ["/bin/true"],
                    "env": ["PATH=/usr/bin:/bin"], "cwd": "/", "noNewPrivileges": True,
                    "capabilities": {}},
        "root": {"path": "rootfs", "readonly": True},
        "hostname": "sandbox",
        "mounts": [
            mount("/usr", "bind", "/usr", "rbind", "ro"),
            mount("/proc", "proc", "proc"),
            mount("/dev", "tmpfs", "tmpfs", "nosuid", "mode=755", "size=64k"),
            mount("/dev/shm", "tmpfs", "shm", "nosuid", "noexec", "nodev", "size=64m"),
            mount("/tmp", "tmpfs", "tmpfs", "nosuid", "nodev", "size=256m")],
        "linux": {"namespaces": [{"type": name} for name in NAMESPACES],
                  "resources": {"memory": {"limit": 512 << 20}, "pids": {"limit": 256}}}}


def make_bundle(folder):
    root = folder / "rootfs"
    for name in ("usr", "proc", "dev", "tmp"):
        (root / name).mkdir(parents=True)
    for name in ("bin", "lib", "lib64"):
        (root / name).symlink_to(f"usr/{name}")
    (folder / "config.json").write_text(json.dumps(oci_config()))
    return folder


@contextlib.contextmanager
def without_unified():
    """A mount namespace that hides the hybrid hierarchy, because crun 1.8 rejects it."""
    script = "umount /sys/fs/cgroup/unified && echo ready && exec sleep 3600"
    holder = subprocess.Popen(["unshare", "--mount", "sh", "-c", script], text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL)
    try:
        ready = holder.stdout.readline() == "ready\n"
        yield ["nsenter", "--target", str(holder.pid), "--mount"] if ready else None
    finally:
        holder.kill()
        holder.wait()
        holder.stdout.close()


def trial(command):
    """Nothing, or why a command does not run here."""
    words = [word.replace("@", f"trial-{os.getpid()}") for word in command]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True, check=False, timeout=30)
    return None if done.returncode == 0 else (done.stderr.strip() or f"status {done.returncode}")


def absolute(words):
    """Starting by name would also measure the PATH search."""
    return [shutil.which(words[0]) or words[0], *words[1:]]


def add_tool(tools, name, *candidates):
    """Adds the first command line that runs; otherwise reports why the tool is left out."""
    why = "not installed"
    for words in candidates:
        if shutil.which(words[0]) is None or shutil.which(name) is None:
            continue
        why = trial(absolute(words))
        if why is None:
            tools[name] = absolute(words)
            return
    print(f"skip  {name}: {why.splitlines()[0][:160]}", flush=True)


@contextlib.contextmanager
def other_tools(folder):
    """The command lines of the tools that work here, by name."""
    bundle = make_bundle(folder / "bundle")
    tools = {}
    add_tool(tools, "bwrap", BUBBLEWRAP)
    add_tool(tools, "unshare", UNSHARE)
    with contextlib.ExitStack() as stack:
        inside = None
        if os.geteuid() == 0 and Path("/sys/fs/cgroup/unified").exists():
            inside = stack.enter_context(without_unified())
        for name in ("crun", "runc"):
            run = [name, "--root", str(folder / f"{name}-state"), "run", "--bundle", str(bundle),
                   "bench-@"]
            add_tool(tools, name, run, *([[*inside, *absolute(run)]] if inside else []))
        yield tools


def measure(mode, folder, first, second, tools=None):
    """The program's output, as lists of numbers by name.

    Its files are removed at the very end: ext4 does not reuse the inode of a deleted file for a
    minute, and each new file meanwhile searches past all of them."""
    lines = "".join("\t".join([name, *words]) + "\n" for name, words in (tools or {}).items())
    done = subprocess.run([lab.PROGRAMS / "sandbox_cost", mode, lab.KEEPER, folder / f"{mode}-{first}-{second}",
                           str(first), str(second)],
                          input=lines, capture_output=True, text=True, check=False, timeout=900)
    if done.returncode != 0:
        raise RuntimeError(f"sandbox_cost {mode}: {done.stderr.strip()[-2000:]}")
    if done.stderr:
        print("note  " + done.stderr.strip().replace("\n", "\nnote  "), flush=True)
    return {name: [float(word) for word in words]
            for name, *words in (line.split() for line in done.stdout.splitlines())}


def shown(times):
    return ", ".join(f"{name} {p50:.0f} (least {least:.0f})"
                     for name, (p50, _, least) in times.items())


def starts(report, folder, tools):
    times = measure("start", folder, ROUNDS, 0, tools)
    cold, spawn = times["cold"][0], times["posix_spawn"][0]
    print(f"note  p50 of {ROUNDS}, us: {shown(times)}", flush=True)
    if "bwrap" in times:
        report.line("sandbox, cold start, times bwrap", cold / times["bwrap"][0],
                    f"{cold:.0f} us to the exit of true, bubblewrap {times['bwrap'][0]:.0f} us",
                    at_most=0.6)
    report.line("sandbox, cold start, times posix_spawn", cold / spawn,
                f"{cold:.0f} us, posix_spawn and wait {spawn:.0f} us; with its end "
                f"{times['cold-and-end'][0]:.0f} us", at_most=5.0)
    for name, text in (("ready", "first exec in a ready one"), ("held", "exec in a held one")):
        report.line(f"sandbox, {text}, times posix_spawn", times[name][0] / spawn,
                    f"{times[name][0]:.0f} us, posix_spawn and wait {spawn:.0f} us", at_most=1.5)


def idle_starts(report, folder, tools):
    if "bwrap" not in tools:
        return
    times = measure("start", folder, IDLE_ROUNDS, IDLE_MS, {"bwrap": tools["bwrap"]})
    report.line("sandbox, start after idling, times bwrap", times["cold"][0] / times["bwrap"][0],
                f"{IDLE_MS} ms of quiet before each, us: {shown(times)}", at_most=1.0)


def crowd(report, folder, tools):
    if "bwrap" not in tools:
        return
    others = {name: tools[name] for name in ("bwrap", "unshare") if name in tools}
    rates = measure("crowd", folder, WAYS, CROWD_S, others)
    ours, bubblewrap = rates["ours"][0], rates["bwrap"][0]
    text = f"{ours:.0f} sandboxes/s, ended too; bubblewrap {bubblewrap:.0f}/s"
    if os.geteuid() == 0:
        # The time of the kernel alone; no program that keeps a sandbox can be faster.
        floor = float(lab.output_of([lab.PROGRAMS / "bare_sandbox", WAYS, CROWD_S]))
        text += f", the kernel's part alone {floor:.0f}/s"
    if "unshare" in rates:
        # A reference point: new namespaces, and the start of two programs.
        text += f", unshare, which makes namespaces and nothing else, {rates['unshare'][0]:.0f}/s"
    report.line(f"sandbox, {WAYS} at once, times bwrap", ours / bubblewrap, text, at_least=3.0)
    for name, what in (("ready", "a burst in sandboxes of a pool"), ("held", "in held sandboxes")):
        report.line(f"sandbox, {WAYS} at once, {what}, times bwrap", rates[name][0] / bubblewrap,
                    f"{rates[name][0]:.0f} commands/s; bubblewrap {bubblewrap:.0f}/s", at_least=3.0)


def available_kb():
    text = Path("/proc/meminfo").read_text(encoding="ascii")
    return next(int(line.split()[1]) for line in text.splitlines() if "MemAvailable" in line)


def live(report, folder):
    counts = [FEW, MANY] if available_kb() > ROOM_FOR_MANY_KB else [FEW]
    for count in counts:
        found = {name: values[0] for name, values in measure("live", folder, count,
                                                             LIVE_ROUNDS).items()}
        # Available memory counts everything but fluctuates; the sum of the parts misses unaccounted
        # memory.
        each_kb = max(found["available-kb"], found["parts-kb"])
        report.line(f"sandbox, kB of each of {count} idle", each_kb,
                    f"available memory {found['available-kb']:.0f}, sum of parts "
                    f"{found['parts-kb']:.0f}, of it slab {found['slab-kb']:.0f} and processes "
                    f"{found['processes-kb']:.0f}; 1,000 take {each_kb:.0f} MB", at_most=600)
        for name, text in (("cold", "start"), ("held", "exec")):
            one, many = found[f"{name}-beside-one"], found[f"{name}-beside-all"]
            report.line(f"sandbox, {text} beside {count}, beside 1", many / one,
                        f"{many:.0f} us, beside one {one:.0f} us; posix_spawn "
                        f"{found['spawn-beside-all']:.0f} us and "
                        f"{found['spawn-beside-one']:.0f} us", at_most=1.5)


def end(report, folder):
    times = measure("end", folder, STUBBORN, END_ROUNDS)
    p50, p95, _ = times["end"]
    report.line(f"sandbox, end with {STUBBORN} stubborn, ms p95", p95 / 1000,
                f"p50 {p50 / 1000:.1f} ms; until the keeper has exited too "
                f"{times['exit'][0] / 1000:.1f} ms", at_most=50)


def heap(report, folder):
    found = measure("heap", folder, HEAP_MB, HEAP_ROUNDS)
    small, large = found["small"][0], found["large"][0]
    report.line("sandbox, start by a large process, small", large / small,
                f"{large:.0f} us with a heap of {HEAP_MB} MB, {small:.0f} us without", at_most=1.5)


def sandbox(report):
    """A command in our own sandbox: cold, ready and held; many sandboxes; their memory and their
    end."""
    with lab.scratch() as folder, other_tools(folder) as tools:
        starts(report, folder, tools)
        idle_starts(report, folder, tools)
        crowd(report, folder, tools)
        end(report, folder)
        heap(report, folder)
        live(report, folder)
