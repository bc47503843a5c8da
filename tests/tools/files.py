#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What the program does to the files that it reads and writes: all outputs or none, whatever
happens; old owners and modes; links, pipes, devices, terminals; no other files left behind.

    files.py --reshard PROGRAM [TEST...]
"""

import argparse
import json
import os
import pathlib
import pty
import resource
import select
import signal
import stat
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import built  # noqa: E402

RESHARD = None
REQUEST = ["--mesh", "2x2", "--shape", "8,6", "--from", "S(0)R", "--to", "RS(1)"]
SIMULATE = ["simulate", *REQUEST]
OLD = "old\n"


def default_signals():
    """As a terminal has them: what runs in the background may ignore some."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


class Files(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.folder = pathlib.Path(self.temporary.name)

    def path(self, name):
        return self.folder / name

    def old(self, *names):
        for name in names:
            self.path(name).write_text(OLD)

    def names(self):
        return sorted(os.listdir(self.folder))

    def run_with(self, words, **more):
        more.setdefault("stdin", subprocess.DEVNULL)
        more.setdefault("stdout", subprocess.PIPE)
        return subprocess.run([RESHARD, *words], cwd=self.folder, stderr=subprocess.PIPE,
                              timeout=60, **more)  # fmt: skip

    def good(self, words, **more):
        done = self.run_with(words, **more)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return done

    def refused(self, words, sentence, code=2, **more):
        done = self.run_with(words, **more)
        self.assertEqual(done.returncode, code, done.stderr.decode())
        self.assertIn(sentence, done.stderr.decode())
        return done


class Outputs(Files):
    def test_new_files_have_the_mode_of_the_umask_and_old_ones_keep_theirs(self):
        self.old("old.html")
        self.path("old.html").chmod(0o600)
        self.good([*SIMULATE, "--html", "old.html", "--perfetto", "new.json"],
                  preexec_fn=lambda: os.umask(0o027))  # fmt: skip
        self.assertEqual(stat.S_IMODE(self.path("old.html").stat().st_mode), 0o600)
        self.assertEqual(stat.S_IMODE(self.path("new.json").stat().st_mode), 0o640)
        self.assertTrue(self.path("old.html").read_text().startswith("<!DOCTYPE html>"))
        self.path("old.html").chmod(0o4754)
        self.good([*SIMULATE, "--html", "old.html"])
        self.assertEqual(stat.S_IMODE(self.path("old.html").stat().st_mode), 0o4754)
        self.assertEqual(self.names(), ["new.json", "old.html"])

    @unittest.skipUnless(os.geteuid() == 0, "only root gives files away")
    def test_old_owner_and_group_stay(self):
        self.old("out.html")
        os.chown(self.path("out.html"), 12345, 54321)
        self.good([*SIMULATE, "--html", "out.html"])
        found = self.path("out.html").stat()
        self.assertEqual((found.st_uid, found.st_gid), (12345, 54321))
        self.assertNotEqual(self.path("out.html").read_text(), OLD)

    def test_links_stay_and_what_they_point_to_is_replaced(self):
        (self.folder / "far").mkdir()
        self.old("far/real.html")
        self.path("link.html").symlink_to("far/real.html")
        self.path("new.json").symlink_to("far/not-yet.json")
        self.good([*SIMULATE, "--html", "link.html", "--perfetto", "new.json"])
        self.assertTrue(self.path("link.html").is_symlink())
        self.assertNotEqual(self.path("far/real.html").read_text(), OLD)
        self.assertTrue(self.path("far/not-yet.json").exists())
        self.assertEqual(sorted(os.listdir(self.folder / "far")), ["not-yet.json", "real.html"])

    @unittest.skipUnless(os.geteuid() == 0, "only root makes links of other users")
    def test_links_that_others_plant_are_not_written_through(self):
        shared = self.folder / "shared"
        shared.mkdir()
        os.chown(shared, 2000, 2000)
        shared.chmod(0o1777)
        self.old("victim")
        (shared / "out.html").symlink_to(self.path("victim"))
        os.chown(shared / "out.html", 2001, 2001, follow_symlinks=False)
        self.refused([*SIMULATE, "--html", "shared/out.html"], "--html: expected a file or a link "
                     "that this user owns, found 'shared/out.html'")  # fmt: skip
        self.assertEqual(self.path("victim").read_text(), OLD)
        # Its folder's owner may.
        os.chown(shared / "out.html", 2000, 2000, follow_symlinks=False)
        self.good([*SIMULATE, "--html", "shared/out.html"])
        self.assertNotEqual(self.path("victim").read_text(), OLD)

    def test_a_full_standard_output_leaves_all_files_as_they_were(self):
        self.old("out.html", "out.csv")
        sweep = ["sweep", "--mesh", "2", "--shape", "4,4", "--placements", "R,S(0)"]
        for words in [
            [*SIMULATE, "--html", "out.html", "--perfetto", "out.json"],
            ["plan", *REQUEST, "--html", "out.html"],
            ["validate", *REQUEST, "--html", "out.html", "--measurements", "out.jsonl"],
            ["topo", "show", "dgx-h100", "--svg", "out.html"],
            [*sweep, "--csv", "out.csv", "--html", "out.html"],
            [*SIMULATE, "--html", "out.html", "--perfetto", "-"],
            [*SIMULATE, "--html", "-", "--perfetto", "out.json"],
            [*SIMULATE, "--html", "out.html", "--perfetto", "/dev/full"],
        ]:
            with self.subTest(words=words), open("/dev/full", "wb") as full:
                self.refused(words, "ENOSPC", code=4, stdout=full)
                self.assertEqual(self.names(), ["out.csv", "out.html"])
                self.assertEqual(self.path("out.html").read_text(), OLD)
                self.assertEqual(self.path("out.csv").read_text(), OLD)

    def test_what_is_printed_never_goes_into_a_file(self):
        self.old("out.html", "out.json")
        words = [*SIMULATE, "--html", "out.html", "--perfetto", "out.json", "-v"]
        for closed in ((1,), (1, 2), (0, 1, 2)):
            done = self.run_with(words, preexec_fn=lambda: [os.close(each) for each in closed])
            self.assertEqual(done.returncode, 4)
            self.assertEqual(self.path("out.html").read_text(), OLD)
            self.assertEqual(self.path("out.json").read_text(), OLD)
        self.good(words, preexec_fn=lambda: os.close(2))
        self.assertTrue(self.path("out.html").read_text().endswith("</html>\n"))
        self.assertIn("traceEvents", json.loads(self.path("out.json").read_text()))

    def test_a_limit_on_the_size_of_files_leaves_all_as_they_were(self):
        self.old("out.html", "out.json")
        size = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
        self.refused([*SIMULATE, "--perfetto", "out.json", "--html", "out.html"], "EFBIG", code=4,
                     preexec_fn=size)  # fmt: skip
        self.assertEqual(self.names(), ["out.html", "out.json"])
        self.assertEqual(self.path("out.json").read_text(), OLD)
        self.assertEqual(self.path("out.html").read_text(), OLD)

    def test_a_reader_that_has_gone_misses_only_what_is_printed(self):
        self.old("out.html")
        read, write = os.pipe()
        os.close(read)
        done = self.run_with([*SIMULATE, "--html", "out.html", "--perfetto", "-"], stdout=write)
        os.close(write)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.assertTrue(self.path("out.html").read_text().startswith("<!DOCTYPE html>"))

    def test_devices_pipes_and_descriptors_are_written_at_once(self):
        report = self.good(SIMULATE).stdout
        self.good([*SIMULATE, "--html", "/dev/null"])
        for name in ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"):
            out = self.good([*SIMULATE, "--perfetto", name]).stdout
            self.assertTrue(out.startswith(b"{") and out.endswith(report), name)
        # A regular file behind it is not replaced: the report goes there, too.
        with open(self.path("all"), "wb") as whole:
            self.good([*SIMULATE, "--perfetto", "/dev/stdout"], stdout=whole)
        self.assertEqual(self.path("all").read_bytes(), out)
        os.mkfifo(self.path("pipe"))
        with subprocess.Popen(["cat", "pipe"], cwd=self.folder, stdout=subprocess.PIPE) as cat:
            self.good([*SIMULATE, "--perfetto", "pipe"])
            self.assertEqual(cat.stdout.read() + report, out)
        shown = subprocess.run(
            ["bash", "-c", '"$0" "$@" --html >(cat > page) > report; ended=$?; wait; exit $ended',
             RESHARD, *SIMULATE], cwd=self.folder
        )  # fmt: skip
        self.assertEqual(shown.returncode, 0)
        self.assertEqual(self.path("report").read_bytes(), report)
        self.assertEqual(self.names(), ["all", "page", "pipe", "report"])

    def test_the_file_of_standard_output_is_refused(self):
        with open(self.path("both"), "wb") as both:
            self.refused([*SIMULATE, "--html", "both"], "--html: expected a file other than that "
                         "of standard output, found 'both'", stdout=both)  # fmt: skip

    def test_names_may_be_as_long_as_names_can_be(self):
        name = "n" * 255
        self.good([*SIMULATE, "--html", name])
        self.assertEqual(self.names(), [name])

    def test_a_folder_that_is_closed_or_gone_is_said(self):
        self.refused([*SIMULATE, "--html", "no/out.html"], "--html: expected a file in a folder "
                     "that exists, found 'no/out.html'")  # fmt: skip
        self.refused([*SIMULATE, "--html", "."], "--html: expected a file, found the directory '.'")
        self.refused([*SIMULATE, "--html", "/proc/x"], "--html: cannot")
        self.refused([*SIMULATE, "--html", "n" * 256], "--html: cannot write 'nnn")
        self.path("loop").symlink_to("loop")
        self.refused([*SIMULATE, "--html", "loop"], "--html: cannot write 'loop'")
        self.assertEqual(self.names(), ["loop"])

    def begun(self, words, **more):
        """A run that has written --csv and waits for a reader of the pipe that is --html."""
        if not self.path("pipe").exists():
            os.mkfifo(self.path("pipe"))
        more.setdefault("preexec_fn", default_signals)
        sweep = ["sweep", "--mesh", "2", "--shape", "4,4", "--placements", "R,S(0)"]
        process = subprocess.Popen([RESHARD, *sweep, *words, "--html", "pipe"], cwd=self.folder,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                   **more)  # fmt: skip
        end = time.monotonic() + 30
        while time.monotonic() < end:
            at = pathlib.Path(f"/proc/{process.pid}/wchan").read_text()
            if "fifo" in at or "wait_for_partner" in at:
                return process
            # Where the kernel does not tell: long after all else is done.
            if at in ("", "0") and time.monotonic() > end - 29:
                return process
            time.sleep(0.01)
        process.kill()
        self.fail("it does not come to the pipe")

    def test_signals_leave_nothing_and_replace_nothing(self):
        self.old("out.csv")
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL):
            process = self.begun(["--csv", "out.csv"])
            process.send_signal(number)
            self.assertEqual(process.wait(30), -number)
            process.stderr.close()
            self.assertEqual(self.names(), ["out.csv", "pipe"], number)
            self.assertEqual(self.path("out.csv").read_text(), OLD)

    def test_a_signal_that_is_ignored_stays_ignored(self):
        process = self.begun(
            ["--csv", "out.csv"], preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)
        )
        process.send_signal(signal.SIGHUP)
        self.assertTrue(self.path("pipe").read_text().startswith("<!DOCTYPE html>"))
        self.assertEqual(process.wait(30), 0)
        process.stderr.close()
        self.assertTrue(self.path("out.csv").read_text().startswith("mesh,"))

    def test_signals_at_any_time_leave_the_old_file_or_the_new(self):
        whole = self.good([*SIMULATE, "--perfetto", "new"]) and self.path("new").read_text()
        os.remove(self.path("new"))
        for i in range(60):
            self.old("out.json")
            process = subprocess.Popen([RESHARD, *SIMULATE, "--perfetto", "out.json"],
                                       cwd=self.folder, stdout=subprocess.DEVNULL,
                                       preexec_fn=default_signals)  # fmt: skip
            time.sleep(i * 0.001)
            process.send_signal((signal.SIGINT, signal.SIGTERM, signal.SIGHUP)[i % 3])
            process.wait(30)
            self.assertEqual(self.names(), ["out.json"])
            self.assertIn(self.path("out.json").read_text(), (OLD, whole))


class Inputs(Files):
    def setUp(self):
        super().setUp()
        self.plan = self.good(["plan", *REQUEST, "--emit", "plan"]).stdout
        self.path("my.plan").write_bytes(self.plan)

    def test_standard_input_is_read_once(self):
        for words in (["--plan", "-", "--plan", "-"], ["--plan", "-", "--plan", "/dev/stdin"]):
            self.refused(["plan", *words], "--plan: expected an input other than that of --plan, "
                         "which can be read only once", input=self.plan, stdin=None)  # fmt: skip
        self.refused(["compare", "-", "-"], "'-' twice")
        self.refused(["calibrate", "--topology", "dgx-h100", "--compare", "-", "-"],
                     "FILE: expected an input other than that of FILE")  # fmt: skip
        for name in ("/dev/stdout", "/dev/fd/1", "/dev/stderr"):
            self.refused(["plan", "--plan", name], f"found '{name}', which is also an output")
        os.mkfifo(self.path("pipe"))
        self.refused(["compare", "pipe", "./pipe"], "can be read only once, found './pipe'")
        for name in ("-", "/dev/stdin"):
            for command in ("plan", "simulate", "validate"):
                self.good([command, "--plan", name], input=self.plan, stdin=None)

    def test_names_are_shown_on_one_line_of_utf8(self):
        odd = b"a\nb\x1b[31m\xff.jsonl"
        shown = r"a\nb\x1b[31m\xff.jsonl"
        self.refused(["replay", odd], f"error: {shown}: expected a trace, found no such file")
        (self.folder / os.fsdecode(odd)).write_bytes(b"{}\n")
        self.refused(["replay", odd], f"error: {shown}:1: reshard_trace")
        path = b"./" + odd
        for words in (["compare", odd, odd], ["plan", "--plan", odd], ["topo", "show", path]):
            error = self.refused(words, shown).stderr.decode()
            self.assertEqual(error.count("\n"), 1, error)
            self.assertTrue(error[:-1].isprintable(), error)

    def test_what_is_long_is_shortened(self):
        long = "x" * 60_000
        for words in (
            ["replay", long], ["plan", "--plan", long], ["topo", "show", long],
            ["topo", "show", "./" + long], ["compare", long, long], [long], ["plan", "--" + long],
            ["plan", *REQUEST, "--topology", long], ["plan", *REQUEST, "--planner", long],
            ["simulate", *REQUEST, "--html", long], ["simulate", *REQUEST, "--data", long],
            ["plan", "--mesh", long], ["ops", long], ["ops", "mm", "--mesh", "2", "--attr", long],
            ["replay", "my.plan", "--format", long], ["sweep", "--mesh", "2", "--shape", long],
            ["simulate", *REQUEST, "--perfetto", "no/" + long],
            ["validate", *REQUEST, "--iterations", "1" * 60_000],
        ):  # fmt: skip
            done = self.run_with(words)
            self.assertEqual(done.returncode, 2, words[0])
            self.assertLess(len(done.stderr), 1500, done.stderr[:300])

    def terminal(self):
        """A leader and its follower; a chroot with nothing but /proc has none."""
        try:
            return pty.openpty()
        except OSError as error:
            self.skipTest(f"no terminal to try it on: {error}")

    def on_terminal(self, words, feed=None, **more):
        """What a run says on a terminal, until it ends; `feed` is called once it said something."""
        leader, follower = self.terminal()
        process = subprocess.Popen([RESHARD, *words], cwd=self.folder, stderr=follower,
                                   stdout=subprocess.DEVNULL, **more)  # fmt: skip
        os.close(follower)
        said, end = b"", time.monotonic() + 30
        while process.poll() is None and time.monotonic() < end:
            if select.select([leader], [], [], 0.05)[0]:
                try:
                    said += os.read(leader, 65536)
                except OSError:  # it has ended
                    break
            if said and feed:
                feed()
                feed = None
        self.assertEqual(process.wait(30), 0, said)
        os.close(leader)
        return said.decode()

    def test_what_is_waited_for_is_said_on_a_terminal(self):
        os.mkfifo(self.path("pipe"))
        fill = lambda: self.path("pipe").write_bytes(self.plan)
        said = self.on_terminal(["plan", "--plan", "pipe"], fill, stdin=subprocess.DEVNULL)
        self.assertIn("reshard: --plan: reading the pipe 'pipe'", said)
        read, write = os.pipe()
        send = lambda: (os.write(write, self.plan), os.close(write))
        said = self.on_terminal(["plan", "--plan", "-"], send, stdin=read)
        os.close(read)
        self.assertIn("reshard: --plan: reading standard input", said)
        # What is there at once is not waited for.
        with open(self.path("my.plan"), "rb") as plan:
            self.assertNotIn("reading", self.on_terminal(["plan", "--plan", "-"], stdin=plan))
        leader, follower = self.terminal()
        type_it = lambda: os.write(leader, self.plan + b"\x04")
        for name in ("-", "/dev/stdin"):
            said = self.on_terminal(["plan", "--plan", name], type_it, stdin=follower)
            self.assertIn("reading standard input from this terminal (Ctrl-D ends it)", said)
        said = self.on_terminal(["plan", "--plan", os.ttyname(follower)], type_it)
        self.assertIn("reading the terminal", said)
        os.close(leader)
        os.close(follower)


def main():
    global RESHARD
    parser = argparse.ArgumentParser()
    parser.add_argument("--reshard", default=built.RESHARD)
    arguments, rest = parser.parse_known_args()
    RESHARD = os.path.abspath(arguments.reshard)
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
