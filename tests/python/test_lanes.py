# SPDX-License-Identifier: BSD-3-Clause
"""Which thread of one rank meets which of another. Processes that start their threads in different
orders act as ranks."""

import concurrent.futures
import json
import multiprocessing.pool
import subprocess
import sys
import threading
import unittest

import reshard
from reshard import _torch_lanes as lanes

START = """
import json, sys, threading
from reshard._torch_lanes import lane_of_thread
wait = threading.Event()
for _ in range(int(sys.argv[1])):
    threading.Thread(target=wait.wait, daemon=True).start()
found = {}
def work(k): found[k] = lane_of_thread()
threads = [threading.Thread(target=work, args=(k,)) for k in range(3)]
for thread in threads: thread.start(); thread.join()
print(json.dumps(found))
"""


def in_thread(function, **options):
    found = []
    thread = threading.Thread(target=lambda: found.append(function()), **options)
    thread.start()
    thread.join()
    return found[0]


class NamesTest(unittest.TestCase):
    def test_threads_are_counted_by_what_they_run(self):
        found = [
            json.loads(
                subprocess.run(
                    [sys.executable, "-c", START, others], capture_output=True, check=True
                ).stdout
            )
            for others in ("0", "2")
        ]
        self.assertEqual(found[0], found[1])
        self.assertEqual(len(set(found[0].values())), 3)

    def test_names(self):
        self.assertEqual(lanes.lane_of_thread(), "the main thread")
        self.assertEqual(in_thread(lanes.lane_of_thread, name="loader"), "thread 'loader'")

    def test_workers_of_a_pool_are_one_lane(self):
        for prefix in ("", "io"):
            with concurrent.futures.ThreadPoolExecutor(3, thread_name_prefix=prefix) as pool:
                meet = threading.Barrier(3)
                found = list(
                    pool.map(lambda _: (meet.wait(), lanes.lane_of_thread())[1], range(3))
                )
            self.assertEqual(set(found), {"pool " + (prefix or "ThreadPoolExecutor")})
        with multiprocessing.pool.ThreadPool(2) as pool:
            self.assertEqual(pool.apply(lanes.lane_of_thread), "a ThreadPool")

    def test_the_way_back(self):
        self.assertEqual(lanes.backward_lane("the main thread"), "the main thread, backward")
        there = in_thread(lambda: lanes.backward_lane("the main thread"), name="b")
        self.assertEqual(there, "the main thread, backward in thread 'b'")


class CallsTest(unittest.TestCase):
    def test_calls_are_counted(self):
        lane = lanes.Lane("x", 0)
        for number in range(3):
            self.assertEqual(lane.enter(), number)
            lane.leave()
            lane.require_alone()

    def test_two_at_once_are_both_refused_and_so_is_what_follows(self):
        lane = lanes.Lane("pool x", 0)
        lane.enter()
        for _ in range(2):
            with self.assertRaisesRegex(reshard.InputError, "^lane: two calls of pool x on one"):
                in_thread_raising(lane.enter)
        lane.leave()
        self.assertRaises(reshard.InputError, lane.require_alone)
        self.assertRaises(reshard.InputError, lane.enter)


def in_thread_raising(function):
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        return pool.submit(function).result()
