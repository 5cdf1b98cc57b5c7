"""Images: what goes in comes out, hostile content is rejected, and nothing partial is left."""

import contextlib
import fcntl
import gzip
import hashlib
import io
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import tarfile
import tempfile
from pathlib import Path
from unittest import mock

import machine
import runs_support as runs
from support import BERTH, BerthTest, as_user, clean_environment

ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())


def tar_of(entries, mode="w"):
    """A tar as bytes. An entry is (path, content), or a TarInfo for special cases."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as tar:
        for entry in entries:
            if isinstance(entry, tarfile.TarInfo):
                tar.addfile(entry)
                continue
            path, content = entry
            member = tarfile.TarInfo(path)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return out.getvalue()


def member(path, kind, target=""):
    made = tarfile.TarInfo(path)
    made.type, made.linkname = kind, target
    return made


class Layout:
    """An OCI layout with what real tools never write: layers that are changed, damaged, or of
    another size or machine. Valid layouts are made by `umoci` (OtherTools)."""

    bytes_promised_too_many = 0  # of each blob

    def __init__(self, folder, layers, architecture=ARCHITECTURE, **config):
        self.folder = folder
        (folder / "blobs" / "sha256").mkdir(parents=True)
        packed = [gzip.compress(layer) for layer in layers]
        listed = [self.blob(data, "application/vnd.oci.image.layer.v1.tar+gzip") for data in packed]
        described = self.document({
            "architecture": architecture, "os": "linux", "config": config,
            "rootfs": {"type": "layers", "diff_ids": [self.digest(layer) for layer in layers]},
        }, "application/vnd.oci.image.config.v1+json")
        self.manifest = self.document({"schemaVersion": 2, "config": described, "layers": listed},
                                      "application/vnd.oci.image.manifest.v1+json")
        self.manifest["platform"] = {"os": "linux", "architecture": architecture}
        inner = self.document({"schemaVersion": 2, "manifests": [
            {**self.manifest, "digest": self.digest(b"other"),
             "platform": {"os": "linux", "architecture": "pdp11"}}, self.manifest,
        ]}, "application/vnd.oci.image.index.v1+json")
        (folder / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [inner]}))
        (folder / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
        self.layers = [self.path(layer["digest"]) for layer in listed]

    @staticmethod
    def digest(data):
        return "sha256:" + hashlib.sha256(data).hexdigest()

    def path(self, digest):
        return self.folder / "blobs" / "sha256" / digest.removeprefix("sha256:")

    def blob(self, data, kind):
        digest = self.digest(data)
        self.path(digest).write_bytes(data)
        return {"mediaType": kind, "digest": digest,
                "size": len(data) + self.bytes_promised_too_many}

    def document(self, value, kind):
        return self.blob(json.dumps(value).encode(), kind)


class ImageTest(BerthTest):
    def image(self, *words, **variables):
        return self.run_berth("image", *words, "--home", self.home, "--json", **variables)

    def did(self, *words, **variables):
        done = self.image(*words, **variables)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def refused(self, *words, code, status, says=(), **variables):
        done = self.image(*words, **variables)
        self.assertEqual(done.returncode, status, done.stderr)
        error = json.loads(done.stderr)
        self.assertEqual(error["code"], code, done.stderr)
        for text in says:
            self.assertIn(text, done.stderr)
        return error

    def write(self, name, data):
        path = self.folder / name
        path.write_bytes(data)
        return path

    def root_of(self, name):
        return self.folder / self.did("inspect", name)["root"]

    def names(self):
        return [name for image in self.did("list") for name in image["names"]]

    def assert_nothing_left(self):
        store = self.home / "images"
        left = [str(path) for part in ("by-digest", "names", "drafts")
                for path in (store / part).iterdir()]
        self.assertEqual(left, [])

    def need_sandboxes(self):
        if why_not := machine.why_no_sandbox():
            self.skipTest(why_not)

    def environment(self, server, name, image):
        """Its id, as soon as the server has recorded what it starts from."""
        made = server.post(f"/api/companies/{server.company()}/environments",
                           {"name": name, "driver": "sandbox",
                            "config": {"provider": "linux", "image": image}})
        self.assertEqual(made.status, 201, made.text)
        self.assertTrue(runs.eventually(lambda: made.json["id"] in self.noted()))
        return made.json["id"]

    def noted(self):
        file = self.home / "images" / "environments.json"
        return file.read_text() if file.exists() else ""


class Images(ImageTest):
    def test_the_host_is_there_before_anything_is_imported(self):
        self.assertEqual(self.names(), ["host"])
        shown = self.run_berth("image", "list", "--home", self.home, "--json")
        self.assertIn('"kind": "host"', shown.stdout)

    def test_a_directory_a_tar_and_a_compressed_tar_of_it_are_one_image(self):
        source = self.folder / "tree"
        (source / "etc").mkdir(parents=True)
        (source / "etc" / "motd").write_text("welcome\n")
        (source / "bin").symlink_to("usr/bin")
        digests = {self.did("import", source, "from-directory")["digest"]}
        for mode in ("w", "w:gz", "w:xz", "w:bz2"):
            path = self.folder / f"tree-{mode[2:]}.tar"
            with tarfile.open(path, mode) as tar:
                tar.add(source, arcname=".")
            digests.add(self.did("import", path, f"from-tar-{mode[2:] or 'plain'}")["digest"])
        self.assertEqual(len(digests), 1)
        self.assertEqual((self.root_of("from-directory") / "etc" / "motd").read_text(), "welcome\n")
        self.assertEqual(len(self.did("list")), 2, "the host and the one image")

    def test_a_tar_comes_through_a_pipe(self):
        tar = self.write("a.tar", tar_of([("f", b"piped")]))
        with tar.open("rb") as file, subprocess.Popen(["cat"], stdin=file,
                                                      stdout=subprocess.PIPE) as cat:
            done = subprocess.run(
                [BERTH, "image", "import", "/dev/stdin", "a", "--home", str(self.home)],
                stdin=cat.stdout, capture_output=True, text=True, env=clean_environment(),
                timeout=60, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual((self.root_of("a") / "f").read_bytes(), b"piped")

    def test_a_layer_that_was_changed_is_refused_and_nothing_is_left(self):
        layout = Layout(self.folder / "oci", [tar_of([("f", b"1")])])
        layout.layers[0].write_bytes(gzip.compress(tar_of([("f", b"2")])))
        self.refused("import", layout.folder, "a", code="image_digest_mismatch", status=1)
        self.assert_nothing_left()

    def test_a_layer_that_was_damaged_is_told_by_its_digest_though_it_is_no_tar_any_more(self):
        layout = Layout(self.folder / "oci", [tar_of([("f", os.urandom(5000))])])
        whole = layout.layers[0].read_bytes()
        flipped = bytearray(whole)
        flipped[len(whole) // 2] ^= 1
        for what, bytes_left in (("a bit is flipped", bytes(flipped)), ("cut off", whole[:3000])):
            with self.subTest(what):
                layout.layers[0].write_bytes(bytes_left)
                self.refused("import", layout.folder, "a", code="image_digest_mismatch", status=1,
                             says=["fetch it again"])
                self.assert_nothing_left()

    def test_a_size_that_is_not_the_layers_is_refused(self):
        with mock.patch.object(Layout, "bytes_promised_too_many", 1):
            layout = Layout(self.folder / "oci", [tar_of([("f", b"1")])])
        self.refused("import", layout.folder, "a", code="image_invalid", status=1,
                     says=["the document above it says"])
        self.assert_nothing_left()

    def test_another_architecture_is_refused(self):
        layout = Layout(self.folder / "oci", [tar_of([("f", b"1")])], architecture="pdp11")
        self.refused("import", layout.folder, "a", code="image_invalid", status=1,
                     says=[ARCHITECTURE])

    def test_an_expected_digest_is_insisted_on(self):
        tar = self.write("a.tar", tar_of([("f", b"1")]))
        digest = Layout.digest(tar.read_bytes())
        self.refused("import", tar, "a", "--digest", "sha256:" + "0" * 64,
                     code="image_digest_mismatch", status=1, says=[digest])
        self.assert_nothing_left()
        self.did("import", tar, "a", "--digest", digest)

    def test_hostile_entries_are_named_and_nothing_is_left(self):
        (self.folder / "victim").write_text("untouched")
        for what, entries, says in (
                ("parent", [("../victim", b"x")], "../victim"),
                ("absolute", [(str(self.folder / "victim"), b"x")], "absolute"),
                ("link", [member("d", tarfile.SYMTYPE, str(self.folder)), ("d/victim", b"x")],
                 "symbolic link"),
                ("hard link", [member("h", tarfile.LNKTYPE, "../../victim")], "hard link"),
                ("device", [member("kmem", tarfile.CHRTYPE)], "kmem"),
                ("pipe", [member("p", tarfile.FIFOTYPE)], "pipe")):
            with self.subTest(what):
                tar = self.write("hostile.tar", tar_of([("good", b"x"), *entries]))
                self.refused("import", tar, "a", code="image_invalid", status=1, says=[says])
                self.assertEqual((self.folder / "victim").read_text(), "untouched")
                self.assert_nothing_left()

    def test_what_is_no_image_is_refused(self):
        self.refused("import", self.folder / "missing", "a", code="file_not_found", status=3)
        self.refused("import", self.write("text", b"hello"), "a", code="image_invalid", status=1)
        tar = tar_of([("f", b"x" * 100_000)])
        self.refused("import", self.write("cut.tar", tar[:5000]), "a", code="image_invalid", status=1)
        self.refused("import", self.write("ok.tar", tar), "Not/A Name", code="validation_failed",
                     status=1)
        self.assert_nothing_left()

    def test_a_full_disk_leaves_nothing(self):
        if os.geteuid() != 0:
            self.skipTest("mounting a small file system needs root")
        tar = self.write("large.tar", tar_of([("small", b"x"), ("large", b"x" * (8 << 20))]))
        self.home.mkdir()
        # In its own mount namespace, which disappears with the shell whatever happens.
        script = """mount -t tmpfs -o size=2m tmpfs "$2" || exit 77
            "$1" image import "$3" a --home "$2" --json; echo $?
            cd "$2"/images && find by-digest names drafts -mindepth 1
            head -c 200000 "$3" > /dev/null && df --output=used -B1 . | tail -1"""
        done = subprocess.run(
            ["unshare", "--mount", "sh", "-c", script, "sh", BERTH, str(self.home), str(tar)],
            capture_output=True, text=True, env=clean_environment(), timeout=60, check=False)
        if done.returncode == 77 or "unshare" in done.stderr:
            self.skipTest("no mount namespaces here: " + done.stderr)
        lines = done.stdout.split()
        self.assertEqual(lines[0], "1", done.stdout + done.stderr)
        self.assertEqual(len(lines), 2, "something was left: " + done.stdout)
        self.assertLess(int(lines[1]), 200_000)
        error = json.loads(done.stderr)
        self.assertEqual(error["code"], "store_full")
        self.assertIn("nothing was left behind", error["error"])

    def test_an_import_that_is_killed_leaves_a_draft_that_the_next_one_removes(self):
        read, write = os.pipe()
        process = subprocess.Popen(
            [BERTH, "image", "import", "/dev/stdin", "a", "--home", str(self.home)], stdin=read,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=clean_environment())
        os.close(read)
        with contextlib.closing(os.fdopen(write, "wb")) as pipe:
            # More than the pipe holds, so that the first file is being unpacked when this returns.
            pipe.write(tar_of([("f", b"x" * (4 << 20))])[:3 << 20])
            pipe.flush()
            drafts = list((self.home / "images" / "drafts").iterdir())
            self.assertEqual(len(drafts), 1)
            self.assertEqual(self.did("gc")["drafts"], 0, "the draft of a living import was removed")
            process.kill()
            process.wait()
        self.assertEqual(self.names(), ["host"])
        self.assertEqual(self.did("gc")["drafts"], 1)
        self.assert_nothing_left()

    def test_an_import_that_is_interrupted_takes_its_draft_along_and_says_so(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(number):
                # A shell that starts the tests in the background may ignore SIGINT, and children
                # inherit that.
                process = subprocess.Popen(
                    [BERTH, "image", "import", "/dev/stdin", "a", "--home", str(self.home)],
                    stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                    env=clean_environment(),
                    preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
                self.addCleanup(process.kill)
                process.stdin.write(tar_of([("f", b"x" * (4 << 20))])[:3 << 20])
                process.stdin.flush()
                self.assertEqual(len(list((self.home / "images" / "drafts").iterdir())), 1)
                process.send_signal(number)
                self.assertEqual(process.wait(20), 128 + number)
                self.assertIn(b"was interrupted; nothing was left behind", process.stderr.read())
                process.stdin.close()
                process.stderr.close()
                self.assert_nothing_left()

    def test_a_kill_at_any_step_leaves_a_store_that_gc_puts_in_order(self):
        tar = self.write("1.tar", tar_of([("f", b"1")]))
        for step in ("image.unpacked", "image.published"):
            with self.subTest(step):
                killed = self.image("import", tar, "a", BERTH_FAULT_POINT=step)
                self.assertEqual(killed.returncode, -signal.SIGKILL, killed.stderr)
                self.assertNotIn("a:latest", self.names())
                self.did("gc")
                self.assert_nothing_left()
        self.did("import", tar, "a")
        killed = self.image("rm", "a", "--yes", BERTH_FAULT_POINT="image.retired")
        self.assertEqual(killed.returncode, -signal.SIGKILL, killed.stderr)
        self.refused("inspect", "a", code="image_not_found", status=3)
        self.did("gc")
        self.assert_nothing_left()
        self.did("import", tar, "a")
        self.did("inspect", "a", "--verify")

    def test_a_name_moves_and_gc_takes_what_has_none(self):
        first = self.did("import", self.write("1.tar", tar_of([("f", b"1")])), "a")
        second = self.did("import", self.write("2.tar", tar_of([("f", b"2")])), "a")
        self.assertEqual(self.did("inspect", "a")["digest"], second["digest"])
        self.assertEqual(self.did("gc")["digests"], [first["digest"]])
        self.refused("inspect", first["digest"], code="image_not_found", status=3)
        self.did("rm", "a", "--yes")
        self.refused("rm", "a", "--yes", code="image_not_found", status=3)
        self.assert_nothing_left()

    def test_an_image_in_use_is_neither_removed_nor_collected(self):
        made = self.did("import", self.write("1.tar", tar_of([("f", b"1")])), "a")
        folder = self.home / "images" / "by-digest" / made["digest"].replace(":", "-")
        (folder / "holds").mkdir(exist_ok=True)
        (folder / "holds" / "lease-1").touch()
        error = self.refused("rm", "a", "--yes", code="image_in_use", status=4, says=["lease-1"])
        self.assertEqual(error["details"]["holders"], ["lease-1"])
        (folder / "holds" / "lease-1").unlink()
        # A process that works with the image holds a lock on its folder.
        descriptor = os.open(folder, os.O_RDONLY)
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        self.refused("rm", "a", "--yes", code="image_in_use", status=4)
        os.close(descriptor)
        self.did("rm", "a", "--yes")

    def test_an_image_that_an_environment_names_goes_only_by_force(self):
        self.need_sandboxes()
        server = self.serve()
        pinned = self.did("import", self.write("1.tar", tar_of([("f", b"1")])), "o:1")["digest"]
        self.environment(server, "pinned", pinned)
        self.did("import", self.write("2.tar", tar_of([("f", b"2")])), "o:1")
        self.assertEqual(self.did("gc")["digests"], [])
        self.refused("rm", pinned, "--yes", code="image_in_use", status=4, says=["pinned", "--force"])
        server.stop()
        self.assertEqual(self.did("gc")["digests"], [], "without a server it is not forgotten")
        self.refused("rm", pinned, "--yes", code="image_in_use", status=4, says=["pinned"])
        self.assertEqual(self.did("rm", pinned, "--yes", "--force")["digests"], [pinned])

    def test_an_image_is_free_again_when_its_environment_is_gone(self):
        self.need_sandboxes()
        server = self.serve()
        digest = self.did("import", self.write("1.tar", tar_of([("f", b"1")])), "a")["digest"]
        named = self.environment(server, "named", "a")
        self.refused("rm", "a", "--yes", code="image_in_use", status=4, says=["named"])
        gone = server.request("DELETE", f"/api/environments/{named}")
        self.assertEqual(gone.status, 200, gone.text)
        self.assertTrue(runs.eventually(lambda: named not in self.noted()), self.noted())
        self.assertEqual(self.did("rm", "a", "--yes")["digests"], [digest])

    def test_a_sandbox_run_that_is_killed_holds_nothing_and_leaves_no_folder_for_long(self):
        runtime = self.folder / "r"
        runtime.mkdir(mode=0o700)
        at_home = {"XDG_RUNTIME_DIR": str(runtime)}
        self.need_sandboxes()
        tree = self.folder / "tree"
        (tree / "bin").mkdir(parents=True)
        shutil.copy(Path(BERTH).parent / "berth-keeper", tree / "bin" / "keeper")
        self.did("import", tree, "tiny")
        process = subprocess.Popen(
            [BERTH, "sandbox", "run", "-q", "--home", str(self.home), "--image", "tiny", "--",
             "/bin/keeper", "serve-stdio", "/tmp/x"], stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=clean_environment(**at_home))
        self.addCleanup(process.stdin.close)
        self.addCleanup(process.kill)
        keepers = lambda: list(runtime.glob("berth-run-*/*/keeper/keeper"))
        self.assertTrue(runs.eventually(keepers), "no keeper was started")
        self.refused("rm", "tiny", "--yes", code="image_in_use", status=4)
        left, = runtime.glob("berth-run-*")
        process.kill()
        process.wait()
        self.did("rm", "tiny", "--yes")

        # Its keeper would wait half a minute for a server to come back.
        card = keepers()[0].read_text().splitlines()
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(next(line.split()[1] for line in card if line.startswith("pid "))), signal.SIGTERM)

        def is_swept():
            done = self.run_berth("sandbox", "run", "-q", "--home", self.home, "--", "true", **at_home)
            self.assertEqual(done.returncode, 0, done.stderr)
            return not left.exists()
        self.assertTrue(runs.eventually(is_swept, limit_s=60, every_s=0.5), left)
        self.assertEqual(list(runtime.iterdir()), [])

    def test_a_tree_that_was_changed_is_noticed(self):
        self.did("import", self.write("1.tar", tar_of([("f", b"1")])), "a")
        self.did("inspect", "a", "--verify")
        (self.root_of("a") / "f").write_bytes(b"2")
        self.refused("inspect", "a", "--verify", code="image_digest_mismatch", status=1)
        self.did("import", self.folder / "1.tar", "a")
        self.did("inspect", "a", "--verify")

    def test_a_server_and_the_command_line_share_the_store(self):
        self.serve()
        self.did("import", self.write("1.tar", tar_of([("f", b"1")])), "a")
        self.assertEqual(self.names(), ["a:latest", "host"])

    def test_without_mmdebstrap_the_remedy_is_named(self):
        empty = self.folder / "bin"
        empty.mkdir()
        if not shutil.which("apt-get"):
            self.skipTest("this machine has no apt, so that another error comes first")
        error = self.refused("build-debian", "debian", code="command_not_found", status=3,
                             PATH=str(empty))
        self.assertIn("apt-get install mmdebstrap", json.dumps(error))

    def tool(self, name, script):
        """A program of that name in a folder for PATH."""
        folder = self.folder / "tools"
        folder.mkdir(exist_ok=True)
        (folder / name).write_text("#!/bin/sh\n" + script)
        (folder / name).chmod(0o755)
        return folder

    def test_a_debian_has_a_localhost_and_nothing_of_this_machine(self):
        if not shutil.which("apt-get"):
            self.skipTest("this machine has no apt")
        # Like mmdebstrap, but with a tree that is created quickly.
        tools = self.tool("mmdebstrap", """tree=$(mktemp -d) && mkdir "$tree/etc"
            echo vm >"$tree/etc/hostname"; echo nameserver 10.0.0.1 >"$tree/etc/resolv.conf"
            for word in "$@"; do
              case $word in --customize-hook=*) sh -c "${word#*=}" exec "$tree" || exit 1;; esac
            done
            tar -C "$tree" -c . && rm -r "$tree"
            """)
        self.did("build-debian", "debian", PATH=f"{tools}:{os.environ['PATH']}")
        etc = self.root_of("debian") / "etc"
        self.assertEqual([path.name for path in etc.iterdir()], ["hosts"])
        self.assertIn("127.0.0.1\tlocalhost\n", (etc / "hosts").read_text())
        self.assertEqual((etc / "hosts").stat().st_mode & 0o777, 0o644)

    def test_an_ordinary_user_is_told_what_mmdebstrap_lacks(self):
        if os.geteuid() != 0 or not shutil.which("apt-get"):
            self.skipTest("needs root, to be somebody without ids of his own, and apt")
        nobody, setpriv = 65534, shutil.which("setpriv")
        tools = self.tool("mmdebstrap", "exit 1\n")
        os.chown(self.folder, nobody, nobody)

        def refused():
            done = subprocess.run(
                [setpriv, *as_user(nobody)[1:], BERTH, "image", "build-debian", "debian", "--json",
                 "--home", str(self.home)], capture_output=True, text=True, timeout=60, check=False,
                env=clean_environment(PATH=str(tools), HOME=str(self.folder)))
            if "setpriv" in done.stderr:
                self.skipTest(f"nobody cannot run {BERTH}: {done.stderr}")
            return done.returncode, json.loads(done.stderr)
        status, error = refused()
        self.assertEqual((status, error["code"]), (3, "command_not_found"), error)
        self.assertIn("apt-get install uidmap", json.dumps(error))
        for name in ("newuidmap", "newgidmap"):
            self.tool(name, "exit 1\n")
        status, error = refused()
        self.assertEqual((status, error["code"]), (1, "config_invalid"), error)
        self.assertIn("/etc/subuid has no ids for 'nobody'", json.dumps(error))
        self.assertIn("usermod --add-subuids", json.dumps(error))

    def test_a_suite_that_no_source_offers_is_refused(self):
        self.refused("build-debian", "debian", "--suite", "no-such-suite", code="config_invalid",
                     status=1, says=["no-such-suite"])

    def test_every_command_has_an_example(self):
        for command in ("import", "build-debian", "list", "inspect", "rm", "gc"):
            done = self.run_berth("image", command, "--help")
            self.assertEqual(done.returncode, 0)
            self.assertIn(f"Example: berth image {command}", done.stdout)


class OtherTools(ImageTest):
    """Layouts and archives that Debian's umoci and skopeo made."""

    def tool(self, *words):
        done = subprocess.run(list(map(str, words)), cwd=self.folder, capture_output=True, text=True,
                              env={"PATH": os.environ["PATH"], "HOME": str(self.folder)}, check=False)
        self.assertEqual(done.returncode, 0, f"{words}: {done.stdout}{done.stderr}")

    def umoci(self, verb, *words):
        self.tool("umoci", verb, "--image", "made:app", *words)

    def insert(self, target, *words, **files):
        """A layer with these files below `target`."""
        source = Path(tempfile.mkdtemp(dir=self.folder))
        for name, content in files.items():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes(content)
        source.chmod(0o755)
        self.umoci("insert", *(() if os.geteuid() == 0 else ("--rootless",)), *words, source, target)

    def make_layout(self):
        """Two versions of a small system: the second replaces, removes or hides parts of the first."""
        busybox = shutil.which("busybox")
        needed = re.findall(r"(/\S+) \(0x", subprocess.run(["ldd", busybox], capture_output=True, text=True,
                                                         check=False).stdout)
        tree = self.folder / "tree"
        for file in (busybox, *needed):
            copy = tree / ("bin/busybox" if file == busybox else file.lstrip("/"))
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, copy)
        for name in ("sh", "cat", "ls", "id"):
            (tree / "bin" / name).symlink_to("busybox")
        for path in [tree, *(path for path in tree.rglob("*") if path.is_dir())]:
            path.chmod(0o755)
        self.tool("umoci", "init", "--layout", "made")
        self.umoci("new")
        for folder in sorted(tree.iterdir()):
            self.umoci("insert", *(() if os.geteuid() == 0 else ("--rootless",)), folder, f"/{folder.name}")
        self.insert("/etc", a=b"1", b=b"1")
        self.insert("/var", old=b"1")
        self.insert("/opt", **{"x/y": b"1"})
        self.umoci("insert", "--whiteout", "/etc/a")
        self.insert("/etc", b=b"2", c=b"3")
        self.insert("/var", "--opaque", new=b"2")
        self.umoci("insert", "--whiteout", "/opt")
        self.umoci("config", "--config.workingdir", "/etc", "--config.env", "GREETING=hello there",
                   "--config.cmd", "/bin/sh")
        return self.folder / "made"

    def assert_is_the_second_version(self, name):
        root = self.root_of(name)
        found = {str(path.relative_to(root)): path.read_bytes() for folder in ("etc", "var", "opt")
                 for path in (root / folder).rglob("*") if path.is_file()}
        self.assertEqual(found, {"etc/b": b"2", "etc/c": b"3", "var/new": b"2"})
        self.assertEqual(os.readlink(root / "bin" / "sh"), "busybox")
        self.did("inspect", name, "--verify")

    def test_a_layout_of_umoci_is_unpacked_layer_by_layer(self):
        layout = self.make_layout()
        manifest, = json.loads((layout / "index.json").read_text())["manifests"]
        made = self.did("import", layout, "team/app:1")
        self.assertEqual((made["kind"], made["sourceDigest"]), ("oci", manifest["digest"]))
        self.assertEqual((made["config"]["env"], made["config"]["workdir"]),
                         ({"GREETING": "hello there"}, "/etc"))
        self.assert_is_the_second_version("team/app:1")

    def test_archives_of_skopeo_hold_the_image_of_their_layout(self):
        layout = self.make_layout()
        direct = self.did("import", layout, "direct")
        for kind in ("docker-archive", "oci-archive"):
            with self.subTest(kind):
                self.tool("skopeo", "copy", "--insecure-policy", "oci:made:app", f"{kind}:{kind}.tar:team/app:1")
                made = self.did("import", self.folder / f"{kind}.tar", kind)
                self.assertEqual(made["config"], direct["config"])
                self.assert_is_the_second_version(kind)
        self.assertEqual(self.did("inspect", "oci-archive")["digest"], direct["digest"])

    def test_a_layout_that_skopeo_wrote_of_a_docker_archive_is_the_same_again(self):
        self.make_layout()
        self.tool("skopeo", "copy", "--insecure-policy", "oci:made:app", "docker-archive:there.tar:team/app:1")
        self.tool("skopeo", "copy", "--insecure-policy", "docker-archive:there.tar", "oci:back:app")
        self.did("import", self.folder / "back", "back")
        self.assert_is_the_second_version("back")

    def test_a_command_runs_in_a_sandbox_of_what_they_made(self):
        self.need_sandboxes()
        layout = self.make_layout()
        self.tool("skopeo", "copy", "--insecure-policy", "oci:made:app", "docker-archive:app.tar:team/app:1")
        for source in (layout, self.folder / "app.tar"):
            with self.subTest(source.name):
                self.did("import", source, "app")
                done = self.run_berth("sandbox", "run", "-q", "--home", self.home, "--image", "app", "--",
                                      "/bin/sh", "-c", "pwd; echo $GREETING; cat b c; ls /var; ls /opt")
                self.assertEqual((done.returncode, done.stdout.split("\n")[:4]),
                                 (1, ["/etc", "hello there", "23new", ""]), done.stderr)
        server = self.serve()
        run = runs.wait_for_end(server, runs.start(server, "cat", "/etc/b", "/etc/c", environmentId=(
            self.environment(server, "theirs", "app"))))
        self.assertEqual((run["status"], runs.output(server, run["id"])), ("succeeded", "23"), run)
