"""The command line as users see it: what they type first, and the messages they get."""

import fcntl
import json
import os
import pty
import stat
import struct
import subprocess
import termios

from support import ANSWER_LIMIT_S, BERTH, BerthTest, clean_environment


class Typed(BerthTest):
    def setUp(self):
        super().setUp()
        self.server = self.serve()
        self.url = f"http://127.0.0.1:{self.server.port}"

    def variables(self, **more):
        return clean_environment(**{"BERTH_OUTPUT": "", "BERTH_URL": self.url, "HOME": str(self.folder), **more})

    def berth(self, *words, stdin="", cwd=None, **more):
        return subprocess.run([BERTH, *map(str, words)], input=stdin, capture_output=True, text=True, cwd=cwd,
                              env=self.variables(**more), timeout=ANSWER_LIMIT_S, check=False)

    def done(self, *words, **more):
        done = self.berth(*words, **more)
        self.assertEqual(done.returncode, 0, (words, done.stdout, done.stderr))
        return done.stdout

    def on_terminal(self, *words, columns=80):
        """The output on a terminal of that width."""
        control, terminal = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        process = subprocess.Popen([BERTH, *words], stdin=subprocess.DEVNULL, stdout=terminal, stderr=terminal,
                                   env=self.variables(NO_COLOR="1"))
        os.close(terminal)
        shown = b""
        try:
            while piece := os.read(control, 65536):
                shown += piece
        except OSError:  # the other end was closed
            pass
        os.close(control)
        process.wait(ANSWER_LIMIT_S)
        return shown.decode().replace("\r\n", "\n")

    def held(self, *flags):
        """The id of a run that holds its place."""
        run = self.done("run", "-d", *flags, "sleep", "600").strip()
        for _ in range(200):
            found = json.loads(self.done("run", "get", run, "-o", "json"))
            if found["status"] == "running" and found.get("leaseId"):
                return run
            self.assertIn(found["status"], ("queued", "starting", "running"), found)
        self.fail("the run does not start")
        return None


class Words(Typed):
    def test_a_mistyped_command_is_named_and_the_nearest_proposed(self):
        for words, word, near in ((("evn", "list"), "evn", "berth env"), (("env", "lst"), "lst", "berth env list"),
                                  (("agnet", "ls"), "agnet", "berth agent")):
            wrong = self.berth(*words)
            self.assertEqual(wrong.returncode, 2, wrong.stderr)
            self.assertIn(f"'{word}' is not a command", wrong.stderr)
            self.assertIn(f"did you mean '{near}'?", wrong.stderr)

    def test_the_words_of_other_programs_are_understood(self):
        self.done("run", "true")
        for words in (("ps",), ("runs",), ("envs",), ("env", "ls"), ("images",), ("secret", "ls"), ("sandbox", "list"),
                      ("help", "run"), ("help",), ("-v",)):
            self.done(*words)
        self.done("env", "create", "gone", "--driver", "sandbox")
        self.done("env", "rm", "gone", "--yes")

    def test_a_command_needs_no_dashes(self):
        self.assertEqual(self.done("run", "echo", "-n", "--", "-e", "x"), "-- -e x")
        self.assertEqual(self.done("run", "-e", "Local", "-w", "/", "pwd"), "/\n")
        self.assertEqual(self.done("run", "--", "echo", "two dashes"), "two dashes\n")
        missing = self.berth("run", "no-such-command-here")
        self.assertEqual(missing.returncode, 127, missing.stderr)

    def test_a_variable_is_given_taken_over_read_from_a_file_or_a_secret(self):
        self.done("secret", "create", "deploy key", stdin="s3cret")
        (self.folder / "vars").write_text("# mine\nFROM_FILE=a b\n")
        script = 'echo "$GIVEN $OWN $FROM_FILE"; test "$SECRET" = s3cret'
        said = self.done("run", "--var", "GIVEN=1", "--var", "OWN", "--env-file", self.folder / "vars", "--var",
                         "SECRET=secret:deploy key", "sh", "-c", script, OWN="mine")
        self.assertEqual(said, "1 mine a b\n")
        wrong = self.berth("run", "-e", "FOO=bar", "true")
        self.assertEqual(wrong.returncode, 2, wrong.stderr)
        self.assertIn("--var FOO=bar", wrong.stderr)

    def test_a_secret_variable_of_an_environment_is_stored_as_a_reference(self):
        self.done("secret", "create", "deploy key", stdin="s3cret")
        made = json.loads(self.done("env", "create", "x", "--driver", "sandbox", "--var", "T=secret:deploy key", "-o",
                                    "json"))
        self.assertEqual(made["envVars"]["T"]["type"], "secret_ref")
        self.assertEqual(made["config"]["provider"], "linux")
        self.assertNotIn("secret:deploy key", json.dumps(made))


class Output(Typed):
    def test_a_pipe_keeps_the_table_and_a_flag_chooses(self):
        self.done("run", "uname", "-s")
        piped = subprocess.run(["sh", "-c", '"$0" run list | grep succeeded', BERTH], env=self.variables(),
                               capture_output=True, text=True, timeout=ANSWER_LIMIT_S, check=False)
        self.assertEqual(piped.returncode, 0, piped.stderr)
        self.assertIn("uname -s  Local", piped.stdout)
        self.assertEqual(json.loads(self.done("run", "list", "-o", "json"))[0]["status"], "succeeded")
        run = self.done("run", "list", "-o", "name").strip()
        self.assertEqual(len(run), 36)
        self.assertIn(run, self.done("run", "list", "-o", "wide"))
        self.assertIn(run[-8:], piped.stdout)
        self.assertNotIn(run, piped.stdout)
        self.assertIn("Local", self.done("env", "list", "-o", "name").split())

    def test_every_table_fits_a_terminal_of_80_columns(self):
        self.done("env", "create", "an-environment-with-a-long-name", "--driver", "sandbox", "--description", "x" * 60)
        self.done("secret", "create", "a secret with a long name of many words", stdin="x")
        self.done("agent", "create", "an-agent-with-a-long-name", "-e", "an-environment-with-a-long-name",
                  "--set", "command=/bin/true")
        self.done("run", "sh", "-c", "echo one; echo two; echo three; echo four; echo five; echo six; echo seven")
        self.held("-e", "Local")
        for group in ("env", "run", "lease", "secret", "agent", "activity", "token", "company"):
            shown = self.on_terminal(group, "list")
            self.assertGreaterEqual(len(shown.splitlines()), 1, group)
            for line in shown.splitlines():
                self.assertLessEqual(len(line), 80, f"{group}:\n{shown}")
        self.assertIn("Local", self.on_terminal("lease", "list"))
        self.assertNotIn("heartbeat", self.on_terminal("activity", "list"))
        self.done("run", "cancel", "last")

    def test_watch_shows_what_has_changed(self):
        watch = subprocess.Popen([BERTH, "env", "list", "--watch", "--interval", "0.1"], stdout=subprocess.PIPE,
                                 text=True, env=self.variables())
        self.addCleanup(watch.stdout.close)
        self.addCleanup(watch.wait)
        self.addCleanup(watch.kill)
        self.assertIn("NAME", watch.stdout.readline())
        self.done("env", "create", "second", "--driver", "sandbox")
        while "second" not in watch.stdout.readline():
            self.assertIsNone(watch.poll())

    def test_a_detached_run_prints_its_id(self):
        run = self.done("run", "-d", "true").strip()
        self.assertEqual(len(run), 36)
        self.assertEqual(json.loads(self.done("run", "-d", "-o", "json", "true"))["command"]["argv"], ["true"])


class Places(Typed):
    def test_a_run_is_found_by_either_end_of_its_id(self):
        run = self.done("run", "-d", "echo", "found").strip()
        self.done("run", "logs", "-f", run)
        for named in (run, run[-8:], run[:20], "last"):
            self.assertIn(run, self.done("run", "get", named), named)
            self.assertEqual(self.done("logs", named), "found\n", named)
        other = self.done("run", "-d", "true").strip()
        both = self.berth("run", "get", run[:4])
        self.assertEqual(both.returncode, 4, both.stderr)
        self.assertIn(run, both.stderr)
        self.assertIn(other, both.stderr)

    def test_a_run_is_found_by_its_name_and_the_newest_counts(self):
        first = self.done("run", "--name", "nightly", "-e", "Local", "-d", "sh", "-c", "echo one").strip()
        self.done("run", "logs", "-f", first)
        self.assertIn("nightly", self.done("ps", "-o", "table"))
        self.assertEqual(self.done("logs", "nightly"), "one\n")
        second = self.done("run", "retry", "nightly", "-o", "json")
        self.assertEqual(json.loads(second)["name"], "nightly")
        newest = json.loads(self.done("run", "get", "nightly", "-o", "json"))["id"]
        self.assertEqual(newest, json.loads(second)["id"])
        self.assertEqual(self.done("run", "list", "-n", "1", "-o", "name").strip(), newest)
        wrong = self.berth("run", "--name", "last", "-e", "Local", "true")
        self.assertIn("already means a run", wrong.stderr)

    def test_commands_about_places_take_a_run_a_lease_or_a_sandbox(self):
        run = self.held("-e", "Sandbox")
        lease = json.loads(self.done("run", "get", run, "-o", "json"))["leaseId"]
        sandbox = json.loads(self.done("lease", "get", lease, "-o", "json"))["sandboxId"]
        for named in (run, run[-8:], "last", lease, lease[-8:], sandbox, sandbox[-8:]):
            self.assertEqual(self.done("exec", named, "echo", "-n", "in"), "in", named)
        (self.folder / "note").write_text("hello")
        self.done("cp", self.folder / "note", f"{run[-8:]}:note")
        self.assertIn("note", self.done("ls", "last"))
        self.done("cp", f"{sandbox}:note", self.folder / "back")
        self.assertEqual((self.folder / "back").read_text(), "hello")
        self.assertIn("note", self.done("sandbox", "diff", run))
        self.assertRegex(self.done("sandbox", "stats", "last"), r"\d+(\.\d)? [kM]?B")
        self.done("sandbox", "logs", run)
        self.done("sandbox", "egress", "last")
        wrong = self.berth("exec", "Sandbox", "true")
        self.assertEqual(wrong.returncode, 2, wrong.stderr)
        self.assertIn("'Sandbox' is an environment", wrong.stderr)
        self.done("run", "cancel", "last")

    def test_a_port_of_what_is_not_held_is_refused_before_anything_listens(self):
        run = self.done("run", "-d", "true").strip()
        self.done("run", "logs", "-f", run)
        for named in (run, "01a1e4ea-133d-75e6-acdc-0c89d1f6918e"):
            refused = self.berth("sandbox", "port", named, "8000")
            self.assertIn(refused.returncode, (3, 4), refused.stderr)
            self.assertEqual(refused.stdout, "")


class OneServer(Typed):
    def test_an_image_goes_into_the_store_of_the_running_server(self):
        tree = self.folder / "tree"
        (tree / "bin").mkdir(parents=True)
        (tree / "bin" / "x").write_text("x")
        said = self.berth("image", "import", tree, "tiny:1")
        self.assertEqual(said.returncode, 0, said.stderr)
        self.assertIn(f"into {self.home}/images", said.stderr)
        self.done("env", "create", "tiny", "--driver", "sandbox", "--set", "image=tiny:1")
        self.assertIn("tiny:1", self.done("images"))
        checked = self.berth("doctor").stdout
        self.assertIn(f"{self.home}, ", checked)
        self.assertIn(f"{self.home}/", next(line for line in checked.splitlines() if "master key" in line))
        self.assertNotIn("not made yet", checked)

    def test_a_login_is_remembered_for_its_owner_alone(self):
        server = self.serve("--mode", "authenticated", home=self.folder / "other")
        url = f"http://127.0.0.1:{server.port}"
        key = (server.home / "admin.token").read_text().strip()
        wrong = self.berth("login", url, stdin="brt_wrong", BERTH_URL="")
        self.assertEqual(wrong.returncode, 5, wrong.stderr)
        file = self.folder / ".config" / "berth" / "profiles.json"
        self.assertFalse(file.exists(), "a token that does not work is not kept")
        self.done("login", url, stdin=key + "\n", BERTH_URL="")
        self.assertEqual(stat.S_IMODE(file.stat().st_mode), 0o600)
        self.assertIn("Sandbox", self.done("env", "list", BERTH_URL=""))
        self.done("login", self.url, "--no-token", "--profile", "lab", BERTH_URL="")
        self.assertIn("lab", self.done("profiles", BERTH_URL=""))
        self.assertIn(self.url, self.done("status", BERTH_URL=""))
        self.assertIn(url, self.done("status", "--profile", "default", BERTH_URL=""))
        self.done("logout", BERTH_URL="")
        self.assertIn(url, self.done("status", BERTH_URL=""))
        file.chmod(0o644)
        refused = self.berth("env", "list", BERTH_URL="")
        self.assertIn("chmod 600", refused.stderr)

    def test_two_tokens_do_not_share_a_name(self):
        self.done("token", "create", "laptop")
        twice = self.berth("token", "create", "laptop")
        self.assertEqual(twice.returncode, 4, twice.stderr)
        self.assertIn("a token named 'laptop' exists", twice.stderr)
        self.done("token", "rm", "laptop", "--yes")
        self.done("token", "create", "laptop")

    def test_the_keys_of_a_config_are_listed(self):
        self.assertIn("memoryMb", self.done("env", "keys", "sandbox"))
        self.assertIn("none|host", self.done("env", "keys", "sandbox"))
        self.assertIn("remoteWorkspacePath", self.done("env", "keys", "ssh"))

    def test_remarks_on_the_isolation_are_told_once(self):
        words = ("sandbox", "run", "--net", "host", "true")
        state = {"XDG_STATE_HOME": str(self.folder / "state")}
        first = self.berth(*words, **state)
        self.assertEqual(first.returncode, 0, first.stderr)
        self.assertIn("leave out --net host", first.stderr)
        second = self.berth(*words, **state)
        self.assertNotIn("leave out --net host", second.stderr)
        self.assertLess(len(second.stderr), 100, second.stderr)

    def test_names_of_objects_are_completed(self):
        self.assertEqual(self.done("__complete", "--", "env", "get", "Lo"), "Local\n")
        self.assertEqual(self.done("__complete", "--", "run", "-e", "Sand"), "Sandbox\n")
        self.assertIn("last\n", self.done("__complete", "--", "run", "logs", ""))
        self.assertIn("create\n", self.done("__complete", "--all", "--", "env", "cr"))
        self.assertEqual(self.done("__complete", "--", "env", "get", "Lo", BERTH_URL="http://127.0.0.1:1"), "")
        self.assertIn("berth __complete", self.done("completion", "fish"))
