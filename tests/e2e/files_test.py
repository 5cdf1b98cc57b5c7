"""Files in and out of leased places: what goes in comes back, and nothing leads out."""

import hashlib
import http.client
import io
import os
import shutil
import subprocess
import tarfile
import unittest
from urllib.parse import quote

import plugins_test
import runs_support as runs
import sandbox_test
from support import BERTH, BerthTest, clean_environment

BODY_MAX = 64 << 20
BYTES = bytes(range(256)) * 1000


def tar_of(*members):
    """A tar as bytes; a member is (path, content) or a TarInfo."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for one in members:
            content = b""
            if not isinstance(one, tarfile.TarInfo):
                path, content = one
                one = tarfile.TarInfo(path)
                one.size = len(content)
            tar.addfile(one, io.BytesIO(content))
    return out.getvalue()


def special(path, kind, target=""):
    made = tarfile.TarInfo(path)
    made.type, made.linkname = kind, target
    return made


class Place:
    """A lease that a run holds, and its files."""

    def __init__(self, test, server, **more):
        self.test, self.server = test, server
        self.run = runs.start(server, "sleep", "1000", **more)
        runs.wait_until(server, self.run, {"running"})
        test.addCleanup(self.end)
        self.lease = next(one["id"] for one in runs.leases(server)
                          if one["heartbeatRunId"] == self.run)

    def end(self):
        self.server.post(f"/api/heartbeat-runs/{self.run}/cancel", {})
        runs.wait_for_end(self.server, self.run)
        self.test.assertTrue(runs.eventually(lambda: not runs.unfinished_leases(self.server)))

    def files(self, verb, path, body=None, **query):
        return self.ask(verb, "files", path, body, **query)

    def archive(self, verb, path, body=None):
        return self.ask(verb, "archive", path, body)

    def ask(self, verb, what, path, body, **query):
        rest = "".join(f"&{name}={value}" for name, value in query.items())
        return self.server.request(
            verb, f"/api/environment-leases/{self.lease}/{what}?path={quote(path)}{rest}", body)

    def said(self, script):
        done = self.server.post(f"/api/environment-leases/{self.lease}/exec",
                                {"argv": ["sh", "-c", script]})
        self.test.assertEqual(done.status, 200, done.text)
        self.test.assertEqual(done.json["exitCode"], 0, done.text)
        return done.json["stdoutText"]


class FilesOfAPlace:
    """What every place guarantees."""

    # A file with two names is copied out only if neither can lie outside, with its content.
    takes_hard_links = False

    def refused(self, answer, status=422, code="path_refused"):
        self.assertEqual((answer.status, answer.json["code"]), (status, code), answer.text)

    def test_a_file_goes_in_and_comes_back(self):
        place = self.place()
        self.assertEqual(place.files("PUT", "in/deep/data", b"old").status, 201)
        put = place.files("PUT", "in/deep/data", BYTES, mode="0640")
        self.assertEqual((put.status, put.bytes), (204, b""))
        self.assertEqual(place.said("stat -c '%a %s' in/deep/data; cat in/deep/data | wc -c"),
                         f"640 {len(BYTES)}\n{len(BYTES)}\n")
        got = place.files("GET", "in/deep/data")
        self.assertEqual((got.status, got.bytes), (200, BYTES))
        self.assertEqual(got.headers["Content-Type"], "application/octet-stream")
        self.assertEqual((got.headers["X-Eof"], got.headers["X-File-Mode"]), ("true", "0640"))
        part = place.files("GET", "in/deep/data", offset=100, limitBytes=50)
        self.assertEqual(part.bytes, BYTES[100:150])
        self.assertEqual((part.headers["X-Eof"], part.headers["X-Next-Offset"]), ("false", "150"))
        behind = place.files("GET", "in/deep/data", offset=10**9)
        self.assertEqual((behind.bytes, behind.headers["X-Eof"]), (b"", "true"))
        place.said("echo more >> in/deep/data && rm in/deep/data && touch in/deep/mine")
        self.assertEqual(place.files("DELETE", "in").status, 204)
        self.assertEqual(place.said("ls"), "")

    def test_changes_leave_a_trail(self):
        place = self.place()
        place.files("PUT", "a", b"x")
        place.archive("PUT", "b", tar_of(("c", b"y")))
        place.files("DELETE", "a")
        rows = place.server.get(f"/api/companies/{place.server.company()}/activity").json
        seen = {row["action"]: row for row in rows if row["entityId"] == place.lease}
        for action, path in [("environment.lease_file_write", "a"), ("environment.lease_unpack", "b"),
                             ("environment.lease_file_remove", "a")]:
            self.assertEqual(seen[action]["details"]["path"], path, rows)

    def test_a_folder_goes_out_as_an_archive_and_in_again(self):
        place = self.place()
        place.said("mkdir -p a/b/empty && echo text > a/b/file && chmod 751 a/b/file &&"
                   " ln -s b/file a/link")
        tar = place.archive("GET", "a")
        self.assertEqual((tar.status, tar.headers["Content-Type"]), (200, "application/x-tar"))
        with tarfile.open(fileobj=io.BytesIO(tar.bytes)) as members:
            self.assertEqual(sorted(members.getnames()), ["b", "b/empty", "b/file", "link"])
        for step in ("into nothing", "over itself"):
            with self.subTest(step):
                self.assertEqual(place.archive("PUT", "deep/copy", tar.bytes).status, 204)
                self.assertEqual(
                    place.said("diff -r a deep/copy && stat -c %a deep/copy/b/file && ls -A . deep"),
                    "751\n.:\na\ndeep\n\ndeep:\ncopy\n")
        self.refused(place.archive("PUT", "x", b"no tar at all" * 100), code="unprocessable")

    def test_nothing_leads_out_of_the_place(self):
        place = self.place()
        place.said("ln -s /etc/passwd link && ln -s / up && mkfifo pipe && echo x > twice &&"
                   " ln twice again")
        for path in ("../x", "a/../../x", "link", "up/etc/passwd", "pipe"):
            with self.subTest(path):
                self.refused(place.files("GET", path))
        if self.takes_hard_links:
            self.assertEqual(place.files("GET", "twice").bytes, b"x\n")
        else:
            self.refused(place.files("GET", "twice"))
        for path in ("../x", "up/tmp/berth-planted", "pipe", "link", ""):
            with self.subTest(path):
                self.refused(place.files("PUT", path, b"x"))
        for path in ("up/tmp", "", ".", "/"):
            with self.subTest(path):
                self.refused(place.files("DELETE", path))
        self.refused(place.archive("GET", "."))
        for bad in (("../evil", b"x"), ("/tmp/berth-planted", b"x"), ("up/tmp/berth-planted", b"x"),
                    special("fifo", tarfile.FIFOTYPE), special("device", tarfile.CHRTYPE),
                    special("hard", tarfile.LNKTYPE, "/etc/passwd")):
            with self.subTest(bad):
                self.refused(place.archive("PUT", "", tar_of(("good", b"x"), bad)))
        self.assertEqual(place.said("ls -A; ls /tmp/berth-planted 2>/dev/null || true"),
                         "again\nlink\npipe\ntwice\nup\n")
        self.assertFalse(os.path.exists("/tmp/berth-planted"))

    def test_what_is_not_there_is_said(self):
        place = self.place()
        for verb in ("GET", "DELETE"):
            self.refused(place.files(verb, "none"), 404, "file_not_found")
        self.refused(place.archive("GET", "none"), 404, "file_not_found")
        self.refused(place.files("PUT", "x", b"", mode="9"), 400, "validation_failed")
        self.refused(place.files("GET", "x", limitBytes=0), 400, "validation_failed")
        place.end()
        for answer in (place.files("GET", ""), place.files("PUT", "x", b""), place.archive("GET", "")):
            self.refused(answer, 409, "conflict")

    def test_what_is_too_large_is_refused_and_can_be_read_in_parts(self):
        place = self.place()
        place.said(f"head -c {BODY_MAX + 5} /dev/urandom > big")
        for answer in (place.files("GET", "big"), place.archive("GET", "")):
            self.refused(answer, 413, "body_too_large")
            self.assertTrue(answer.json["remedy"])
        end = place.files("GET", "big", offset=BODY_MAX, limitBytes=100)
        self.assertEqual((len(end.bytes), end.headers["X-Eof"]), (5, "true"))
        connection = http.client.HTTPConnection("127.0.0.1", place.server.port, timeout=20)
        self.addCleanup(connection.close)
        connection.putrequest("PUT", f"/api/environment-leases/{place.lease}/files?path=x")
        connection.putheader("Content-Length", str(BODY_MAX + 1))
        connection.endheaders()
        self.assertEqual(connection.getresponse().status, 413)

    def test_odd_names_are_listed_so_that_they_can_be_told_apart(self):
        place = self.place()
        place.said(r"""printf 'x' > "$(printf 'new\nline')"; touch "$(printf 'bad\377')" """
                   r"""'bad\xff' "$(printf 'esc\033[2J')" 'ä ö' ./-rf; mkdir folder; chmod 700 folder;"""
                   r""" ln -s '../a b' link; mkfifo pipe""")
        listed = place.files("GET", "")
        self.assertEqual(listed.headers["Content-Type"], "application/json")
        rows = {row["name"]: row for row in listed.json["entries"]}
        self.assertEqual(set(rows), {r"new\x0aline", r"bad\xff", r"bad\\xff", r"esc\x1b[2J", "ä ö", "-rf",
                                     "folder", "link", "pipe"})
        self.assertFalse(listed.json["isTruncated"])
        self.assertEqual((rows[r"new\x0aline"]["type"], rows[r"new\x0aline"]["bytes"]), ("file", 1))
        self.assertEqual((rows["folder"]["type"], rows["folder"]["mode"]), ("directory", "0700"))
        self.assertEqual((rows["link"]["type"], rows["link"]["target"]), ("symbolic_link", "../a b"))
        self.assertEqual(rows["pipe"]["type"], "pipe")
        self.assertRegex(rows["pipe"]["mtime"], r"^20\d\d-")

    def berth(self, *words):
        done = self.run_berth("--home", self.home, *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_a_link_that_leads_out_is_copied_only_when_asked_for(self):
        place = self.place()
        place.said("mkdir -p venv/bin && ln -s /usr/bin/python3 venv/bin/python && echo x > venv/cfg")
        new = self.folder / "deep" / "new"
        refused = self.run_berth("--home", self.home, "cp", f"{place.lease}:venv", new)
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("bin/python", refused.stderr)
        self.assertIn("--links", refused.stderr)
        self.assertFalse(new.parent.exists(), "a copy that is refused leaves no folder")
        self.berth("cp", "--links", f"{place.lease}:venv", new)
        self.assertEqual(os.readlink(new / "bin" / "python"), "/usr/bin/python3")
        self.assertEqual((new / "cfg").read_text(), "x\n")

    def test_files_of_the_caller_with_two_names_go_in(self):
        place = self.place()
        here = self.folder / "here"
        here.mkdir()
        (here / "one").write_bytes(BYTES)
        os.link(here / "one", here / "two")
        self.berth("cp", here, f"{place.lease}:in")
        self.assertEqual(place.said("cmp in/one in/two; wc -c < in/one").split(), [str(len(BYTES))])

    def test_the_command_line_copies_files_and_folders_both_ways(self):
        place = self.place()
        here = self.folder / "here"
        (here / "sub").mkdir(parents=True)
        (here / "sub" / "tool").write_bytes(BYTES * 70)  # more than one part
        (here / "sub" / "tool").chmod(0o751)
        (here / "link").symlink_to("sub/tool")
        berth = self.berth
        berth("cp", here, f"{place.lease}:tree")
        berth("cp", here / "sub" / "tool", f"{place.lease}:")
        self.assertEqual(place.said("stat -c %a tool tree/sub/tool; cmp tool tree/link; ls -A"),
                         "751\n751\ntool\ntree\n")
        self.assertIn("tool", berth("ls", f"{place.lease}:tree/sub"))
        berth("cp", f"{place.lease}:tree", self.folder / "back")
        berth("cp", f"{place.lease}:tree/sub/tool", self.folder)
        for copy in (self.folder / "tool", self.folder / "back" / "sub" / "tool"):
            self.assertEqual(copy.read_bytes(), BYTES * 70)
            self.assertEqual(copy.stat().st_mode & 0o777, 0o751)
        self.assertEqual(os.readlink(self.folder / "back" / "link"), "sub/tool")
        wrong = self.run_berth("--home", self.home, "cp", "a", "b")
        self.assertNotEqual(wrong.returncode, 0)
        missing = self.run_berth("--home", self.home, "cp", f"{place.lease}:none", self.folder / "x")
        self.assertIn("none", missing.stderr)
        self.assertFalse((self.folder / "x").exists())

    def test_what_this_machine_does_not_take_is_told_by_its_own_path(self):
        place = self.place()
        place.said("echo x > f; mkdir d; echo x > d/f")
        for name in ("f", "d"):
            refused = self.run_berth("--home", self.home, "cp", f"{place.lease}:{name}", "/proc/1/task/")
            self.assertNotEqual(refused.returncode, 0, name)
            self.assertIn("on this machine, in '/proc/1/task", refused.stderr)
            self.assertIn("name a folder of this machine", refused.stderr)


class LargeFiles:
    """More than one request can carry, in places on this machine."""

    # The time of a single file, to the second.
    THEN = 1_600_000_000

    def large(self, path, size=BODY_MAX + 12345):
        with open(path, "wb") as out:
            for _ in range(size >> 20):
                out.write(os.urandom(1 << 20))
            out.write(os.urandom(size & 0xFFFFF))
        os.utime(path, (self.THEN, self.THEN))
        return hashlib.sha256(path.read_bytes()).hexdigest()

    def test_a_file_keeps_its_time_both_ways(self):
        place = self.place()
        mine = self.folder / "mine"
        mine.write_bytes(b"x")
        os.utime(mine, (self.THEN, self.THEN))
        self.berth("cp", mine, f"{place.lease}:there")
        self.assertEqual(place.said("stat -c %Y there"), f"{self.THEN}\n")
        self.berth("cp", f"{place.lease}:there", self.folder / "back")
        self.assertEqual((self.folder / "back").stat().st_mtime, self.THEN)

    def test_a_log_that_grows_is_read(self):
        place = self.place()
        writer = subprocess.Popen(
            [BERTH, "--home", self.home, "exec", place.lease, "--", "sh", "-c",
             "echo first > log; while :; do echo a line of a log >> log; done"],
            env=clean_environment())
        self.addCleanup(writer.wait)
        self.addCleanup(writer.terminate)
        self.assertTrue(runs.eventually(
            lambda: len(place.files("GET", "log", limitBytes=100).bytes) == 100))
        for _ in range(20):
            part = place.files("GET", "log", offset=0, limitBytes=5)
            self.assertEqual((part.status, part.bytes), (200, b"first"), part.text)
        whole = place.files("GET", "log")
        self.assertEqual(whole.status, 200)
        self.assertEqual(len(whole.bytes), int(whole.headers["X-File-Bytes"]))
        self.berth("cp", f"{place.lease}:log", self.folder)
        self.assertTrue((self.folder / "log").read_bytes().startswith(b"first\na line"))

    def test_a_large_file_goes_in_and_out(self):
        place = self.place()
        mine = self.folder / "-big one"
        digest = self.large(mine)
        mine.chmod(0o640)
        for step in ("new", "over itself"):
            with self.subTest(step):
                self.berth("cp", mine, f"{place.lease}:deep/er/")
                self.assertEqual(place.said("cd deep/er && stat -c '%a %Y' ./-big*; ls -A | wc -l;"
                                            " sha256sum < './-big one'").split(),
                                 ["640", str(self.THEN), "1", digest, "-"])
        self.berth("cp", f"{place.lease}:deep/er/-big one", self.folder / "back")
        back = self.folder / "back"
        self.assertEqual(hashlib.sha256(back.read_bytes()).hexdigest(), digest)
        self.assertEqual((back.stat().st_mtime, back.stat().st_mode & 0o777), (self.THEN, 0o640))

    def test_a_large_file_follows_no_link_and_leaves_no_half(self):
        place = self.place()
        mine = self.folder / "big"
        self.large(mine)
        place.said("mkdir real && ln -s real way && ln -s real/file link && mkdir folder")
        for to in ("way/big", "link", "folder"):
            with self.subTest(to):
                done = self.run_berth("--home", self.home, "cp", mine, f"{place.lease}:{to}")
                self.assertNotEqual(done.returncode, 0)
        self.assertEqual(place.said("ls -A . real folder"),
                         ".:\nfolder\nlink\nreal\nway\n\nfolder:\n\nreal:\n")

    def test_a_large_folder_goes_in_and_out(self):
        place = self.place()
        here = self.folder / "here"
        (here / "closed" / "deep").mkdir(parents=True)
        (here / "empty").mkdir()
        digest = self.large(here / "closed" / "big")
        self.large(here / "other", 20 << 20)
        (here / "closed" / "deep" / "new\nline").write_bytes(b"odd")
        (here / "closed" / "link").symlink_to("../other")
        os.link(here / "other", here / "again")
        os.utime(here / "closed" / "deep", (self.THEN, self.THEN))
        (here / "closed").chmod(0o550)
        self.addCleanup((here / "closed").chmod, 0o700)
        self.berth("cp", here, f"{place.lease}:tree")
        self.assertEqual(place.said("cd tree && stat -c '%a %Y' closed/deep && stat -c %a closed &&"
                                    " readlink closed/link && cmp other again &&"
                                    " sha256sum < closed/big").split(),
                         [oct((here / "closed" / "deep").stat().st_mode & 0o777)[2:], str(self.THEN),
                          "550", "../other", digest, "-"])
        back = self.folder / "back"
        self.berth("cp", f"{place.lease}:tree", back)
        self.addCleanup((back / "closed").chmod, 0o700)
        self.assertEqual(hashlib.sha256((back / "closed" / "big").read_bytes()).hexdigest(), digest)
        self.assertEqual((back / "closed" / "deep" / "new\nline").read_bytes(), b"odd")
        self.assertEqual(os.readlink(back / "closed" / "link"), "../other")
        self.assertEqual((back / "again").read_bytes(), (here / "other").read_bytes())
        self.assertEqual((back / "closed").stat().st_mode & 0o777, 0o550)
        self.assertEqual((back / "closed" / "deep").stat().st_mtime, self.THEN)
        self.assertTrue((back / "empty").is_dir())


class LocalFiles(LargeFiles, FilesOfAPlace, BerthTest):
    def place(self):
        return Place(self, self.serve())

    def test_the_machine_around_the_folder_is_closed(self):
        place = self.place()
        self.refused(place.files("GET", "/etc/passwd"))
        self.refused(place.files("PUT", "/tmp/berth-planted", b"x"))
        link = special("link", tarfile.SYMTYPE, "/etc/passwd")
        self.refused(place.archive("PUT", "", tar_of(link)))
        self.assertEqual(place.said("ls -A"), "")

    def test_a_lease_of_another_company_is_not_there(self):
        server = self.serve("--mode", "authenticated")
        plain = server.request
        keys = {"now": (self.home / "admin.token").read_text().strip()}

        def request(verb, path, body=None, headers=None):
            return plain(verb, path, body, {"Authorization": f"Bearer {keys['now']}", **(headers or {})})

        server.request = request
        mine = server.company()
        server.company = lambda: mine
        place = Place(self, server)
        place.files("PUT", "mine", b"x")
        other = server.post("/api/companies", {"name": "other"}).json["id"]
        made = server.post(f"/api/companies/{other}/tokens", {"name": "o", "role": "admin"})
        admin, keys["now"] = keys["now"], made.json["key"]
        for answer in (place.files("GET", "mine"), place.files("PUT", "mine", b"y"),
                       place.files("DELETE", "mine"), place.archive("GET", ""),
                       place.archive("PUT", "", tar_of(("a", b"")))):
            self.refused(answer, 404, "lease_not_found")
        keys["now"] = admin
        self.assertEqual(place.files("GET", "mine").bytes, b"x")


@unittest.skipIf(sandbox_test.WHY_NOT, sandbox_test.WHY_NOT)
class SandboxFiles(LargeFiles, FilesOfAPlace, BerthTest):
    takes_hard_links = True

    def place(self):
        server = self.serve()
        rows = server.get(f"/api/companies/{server.company()}/environments").json
        sandbox = next(row["id"] for row in rows if row["name"] == "Sandbox")
        return Place(self, server, environmentId=sandbox)

    def test_an_absolute_path_starts_at_the_root_of_the_sandbox(self):
        place = self.place()
        self.assertEqual(place.files("PUT", "/tmp/here/x", b"in").status, 201)
        self.assertEqual(place.said("cat /tmp/here/x; stat -c %u /tmp/here/x"), "in1000\n")
        self.assertFalse(os.path.exists("/tmp/here/x"))
        place.said("echo out > /tmp/there")
        self.assertEqual(place.files("GET", "/tmp/there").bytes, b"out\n")
        for path in ("/proc/1/environ", "/dev/null", "/../etc/passwd"):
            with self.subTest(path):
                self.refused(place.files("GET", path))
        self.refused(place.files("PUT", "/usr/planted", b"x"))
        self.assertIn("usr", [row["name"] for row in place.files("GET", "/").json["entries"]])

    def test_hard_links_that_were_unpacked_come_back(self):
        place = self.place()
        tar = tar_of(("tree/one", BYTES), special("tree/two", tarfile.LNKTYPE, "tree/one"))
        self.assertEqual(place.archive("PUT", "", tar).status, 204)
        self.assertEqual(place.said("stat -c %h tree/one"), "2\n")
        with tarfile.open(fileobj=io.BytesIO(place.archive("GET", "tree").bytes)) as members:
            self.assertEqual([members.extractfile(one).read() for one in members], [BYTES, BYTES])


@unittest.skipUnless((plugins_test.FAKE / "manifest.json").exists(), "the fake plugin is not built")
class FilesOfFakePlugin(FilesOfAPlace, BerthTest):
    """A provider that only executes: everything goes through commands."""

    def place(self):
        server = self.serve()
        made = server.post("/api/plugins/install",
                           {"packageName": str(plugins_test.FAKE), "isLocalPath": True})
        self.assertEqual(made.json.get("status"), "ready", made.text)
        made = server.post(f"/api/companies/{server.company()}/environments",
                           {"name": "fake", "driver": "sandbox", "config": {"provider": "fake-plugin"}})
        self.assertEqual(made.status, 201, made.text)
        return Place(self, server, environmentId=made.json["id"])


class FilesOfNativePlugin(FilesOfAPlace, plugins_test.PluginTest):
    """A provider that transfers files itself, and what it may not do with that."""

    def place(self, sync=True):
        if sync:
            (self.state / "sync").touch()
        server = self.serve()
        self.install(server, self.write_provider())
        return Place(self, server, environmentId=self.environment(server).json["id"])

    def nothing_is_on_its_way(self):
        """Each plugin has its own folder for files in transit."""
        self.assertEqual(list((self.home / "plugin-exchange").glob("*/*")), [])

    def nothing_is_left(self, place):
        self.nothing_is_on_its_way()
        self.assertEqual(place.said("find . -name '.paperclip*'"), "")

    def lie(self, make):
        made = self.folder / "lie"
        make(made)
        if made.is_dir():
            made.chmod(0o777)  # the worker moves it
        os.rename(made, self.state / "lie")

    def test_files_go_by_the_plugin_itself(self):
        place = self.place()
        place.files("PUT", "a/b", BYTES)
        self.assertEqual(place.files("GET", "a/b").bytes, BYTES)
        self.assertEqual(place.archive("PUT", "c", place.archive("GET", "a").bytes).status, 204)
        self.assertEqual(len(self.calls("environmentSyncIn")), 2)
        self.assertEqual(len(self.calls("environmentSyncOut")), 2)
        self.nothing_is_left(place)

    def test_what_a_plugin_hands_over_is_believed_in_nothing(self):
        place = self.place()
        place.said("mkdir a && echo x > a/file")

        def link(lie):
            lie.symlink_to("/etc/passwd")

        def tree_of(name, make):
            def build(lie):
                lie.mkdir()
                make(lie / name)
            return build

        for make, ask, codes in [
                (link, lambda: place.files("GET", "a/file"), {"path_refused"}),
                (os.mkfifo, lambda: place.files("GET", "a/file"), {"path_refused"}),
                (lambda lie: lie.write_bytes(b"x" * 1000), lambda: place.files("GET", "a/file"), {"conflict"}),
                (link, lambda: place.archive("GET", "a"), {"path_refused"}),
                (tree_of("pipe", os.mkfifo), lambda: place.archive("GET", "a"), {"path_refused"}),
                (tree_of("big", lambda big: big.write_bytes(bytes(BODY_MAX))),
                 lambda: place.archive("GET", "a"), {"body_too_large"})]:
            self.lie(make)
            answer = ask()
            self.assertIn(answer.json["code"], codes, answer.text)
            self.nothing_is_left(place)
        # A link inside a tree is a link in the archive, wherever it leads.
        self.lie(tree_of("link", link))
        with tarfile.open(fileobj=io.BytesIO(place.archive("GET", "a").bytes)) as members:
            self.assertEqual([(one.name, one.linkname) for one in members], [("link", "/etc/passwd")])

    def test_an_archive_from_commands_is_believed_in_nothing(self):
        place = self.place(sync=False)
        place.said("mkdir a && echo x > a/file")
        for bad in (("../evil", b"x"), ("/tmp/berth-planted", b"x"), special("device", tarfile.CHRTYPE),
                    special("hard", tarfile.LNKTYPE, "/etc/passwd")):
            (self.state / "lie.tar").write_bytes(tar_of(("good", b"x"), bad))
            (self.state / "lie.tar").chmod(0o644)
            self.refused(place.archive("GET", "a"))
            self.nothing_is_left(place)
        (self.state / "lie.tar").write_bytes(tar_of(("through", b"x")) * 2 + b"rest")
        answer = place.archive("GET", "a")
        self.assertEqual(answer.status, 200, answer.text)
        self.assertFalse(os.path.exists("/tmp/berth-planted"))
        self.assertEqual(self.calls("environmentSyncOut"), [])

    def test_the_tools_of_busybox_are_enough(self):
        busybox = shutil.which("busybox")
        if not busybox:
            self.skipTest("busybox is not installed")
        place = self.place(sync=False)
        tools = self.state / "tools"
        tools.mkdir(mode=0o755)
        subprocess.run([busybox, "--install", "-s", tools], check=True)
        self.assertEqual(place.said("readlink -f \"$(which tar)\"").strip(), os.path.realpath(busybox))
        self.assertEqual(place.files("PUT", "a/b c", BYTES).status, 201)
        self.assertEqual(place.files("GET", "a/b c").bytes, BYTES)
        place.said("mkdir a/empty && ln -s 'b c' a/link")
        listed = place.files("GET", "a").json["entries"]
        self.assertEqual([(one["name"], one["type"]) for one in listed],
                         [("b c", "file"), ("empty", "directory"), ("link", "symbolic_link")])
        tar = place.archive("GET", "a")
        for step in ("into nothing", "over itself"):
            with self.subTest(step):
                self.assertEqual(place.archive("PUT", "deep/copy", tar.bytes).status, 204)
                self.assertEqual(place.said("diff -r a deep/copy && ls -A deep"), "copy\n")
        self.assertEqual(place.files("DELETE", "deep").status, 204)
        self.nothing_is_left(place)
        self.assertEqual(place.said("ls"), "a\n")

    def test_a_worker_that_dies_in_the_middle_leaves_nothing(self):
        (self.state / "sync").touch()
        server = self.serve()
        self.install(server, self.write_provider())
        # A lease without a command, which would die with its worker, and the sandbox with it.
        kept = server.post(f"/api/companies/{server.company()}/environments", {
            "name": "kept", "driver": "sandbox", "config": {"provider": "boxes", "region": "eu"},
            "metadata": {"leasePolicy": "retain_on_failure"}}).json["id"]
        run = runs.start(server, "sh", "-c", "mkdir a && echo old > a/file; false", environmentId=kept)
        self.assertEqual(runs.wait_for_end(server, run)["status"], "failed")
        place = Place.__new__(Place)
        place.test, place.server, place.lease = self, server, runs.leases(server)[0]["id"]
        tar = tar_of(("file", b"new"), ("more", b"x"))
        for method, ask in [("environmentSyncIn", lambda: place.archive("PUT", "deep/made", tar)),
                            ("environmentSyncOut", lambda: place.archive("GET", "a"))]:
            trap = self.state / f"die-at-{method}"
            trap.touch()
            answer = ask()
            self.assertFalse(trap.exists(), method)
            self.assertEqual((answer.status, answer.json["code"]), (502, "plugin_unavailable"), answer.text)
            self.nothing_is_on_its_way()
            self.assertTrue(runs.eventually(lambda: server.get("/api/plugins/test.boxes/health").json["healthy"],
                                            limit_s=60))
            self.assertEqual(place.said("cat a/file; ls -A . a"),
                             "old\n.:\na\n\na:\nfile\n")
        self.run_berth("--home", self.home, "lease", "release", place.lease)
        self.assertTrue(runs.eventually(lambda: not runs.unfinished_leases(server)))


if __name__ == "__main__":
    unittest.main()
