#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Pages of --html as their readers meet them.

Makes a page with every command and reads it with an XML parser; then a browser opens it, wide and
narrow, light and dark: nothing may stick out of the window, no error may be logged, everything must
be there in time, and what the script offers must work. Without a browser the second half is skipped
(exit code 77).
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import xml.parsers.expat

import chromium

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import built  # noqa: E402

WIDTHS, SCHEMES = (1280, 400), ("light", "dark")
MB = 1_000_000

TWO_NODES = "--mesh 2x8 --shape 4096,8192 --from S(0)S(1) --to S(1)S(0) --topology dgx-h100:2"
PAIR = "--mesh 2 --shape 64,64 --from S(0) --to S(1)"
WIDE = "--mesh 128x8 --shape 8192,8192 --from S(0)S(1) --to S(1)S(0) --topology dgx-h100:128"
LLAMA = "traces/llama3-70b-fsdp-to-tp.jsonl"
# Name, command, most bytes, most seconds until all is there.
PAGES = (
    ("pair", f"plan {PAIR}", 0.2 * MB, 1),
    ("plan", f"plan {TWO_NODES}", 0.5 * MB, 1),
    ("simulate", f"simulate {TWO_NODES} --data proof --planner rule", 0.5 * MB, 1),
    ("wide", f"simulate {WIDE} --data proof --planner p2p", 5 * MB, 2),
    ("replay", f"replay {LLAMA} --data proof", 2 * MB, 1),
    ("compute", "replay traces/pipeline-8x3090-two-streams-compute.jsonl", 0.5 * MB, 1),
    ("sweep", "sweep --mesh 2x2 --shape 64,64", 0.5 * MB, 1),
    ("validate", f"validate {PAIR}", 0.5 * MB, 1),
    ("compare", "compare {folder}/p2p.json {folder}/rule.json", 0.5 * MB, 1),
)


def run(reshard, command, page):
    words = [reshard, *command.split(), "--html", page]
    done = subprocess.run(words, cwd=built.ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"check_pages: {' '.join(words)}: {done.stderr}")


def write_reports(reshard, folder):
    """What `compare` reads: one request by two planners."""
    for planner in ("p2p", "rule"):
        words = [reshard, "simulate", *TWO_NODES.split(), "--planner", planner, "--data", "proof"]
        with open(os.path.join(folder, planner + ".json"), "w") as file:
            subprocess.run([*words, "--json"], stdout=file, check=True)


def read_as_xml(path):
    """Faults of the file: what XML refuses, and what would be fetched from elsewhere."""
    text = open(path, "rb").read()
    try:
        xml.parsers.expat.ParserCreate().Parse(text, True)
    except xml.parsers.expat.ExpatError as error:
        yield f"is no XML: {error}"
    for address in re.findall(rb"https?://[^\s\"'<]*", text):
        if address != b"http://www.w3.org/2000/svg":
            yield f"names {address.decode()}"


def make_pages(reshard, folder):
    """The paths by name, and what is wrong with the files."""
    paths, faults = {}, []
    write_reports(reshard, folder)
    for name, command, most_bytes, _ in PAGES:
        path = paths[name] = os.path.join(folder, name + ".html")
        run(reshard, command.format(folder=folder), path)
        if os.path.getsize(path) > most_bytes:
            faults.append(f"{name}: {os.path.getsize(path)} bytes, at most {most_bytes:.0f}")
        faults += [f"{name}: {fault}" for fault in read_as_xml(path)]
    again = os.path.join(folder, "again.html")
    run(reshard, PAGES[1][1], again)
    if open(again, "rb").read() != open(paths["plan"], "rb").read():
        faults.append("plan: another page at the second run")
    return paths, faults


def faults_of_layout(browser, path):
    for width in WIDTHS:
        for scheme in SCHEMES:
            browser.open(path, width, 900, scheme)
            at = f"{width} pixels, {scheme}"
            wide = browser.value("document.documentElement.scrollWidth")
            if wide > browser.value("innerWidth"):
                yield f"{at}: {wide} pixels wide"
            if browser.value("innerWidth") != width:
                yield f"{at}: the window has another width"
            ground = browser.value("getComputedStyle(document.body).backgroundColor")
            if (ground == "rgb(255, 255, 255)") != (scheme == "light"):
                yield f"{at}: the ground is {ground}"
            yield from (f"{at}: {complaint}" for complaint in browser.complaints())


def faults_of_time(browser, path, most_s):
    """The best of three: others may be at work on the machine."""
    took_s = []
    for _ in range(3):
        began = time.monotonic()
        browser.open(path, 1280, 900, "light")
        browser.value("document.body.getBoundingClientRect().height")
        took_s.append(time.monotonic() - began)
    if min(took_s) > most_s:
        yield f"all is there after {min(took_s):.2f} s, at most {most_s}"


def faults_without_script(browser, path):
    """All panels stand there, and slices have tips of their own."""
    shown = "document.querySelectorAll('section > h2').length"
    browser.open(path, 1280, 900, "light")
    panels = browser.value(shown)
    browser.open(path, 1280, 900, "light", script=False)
    # A page whose scripts are off still answers the debugger.
    if browser.value(shown) != panels or browser.value("document.querySelector('.zoom') !== null"):
        yield "without script there are other panels"
    if not browser.value("document.querySelectorAll('svg rect > title').length"):
        yield "without script there are no tips"


def faults_of_script(browser, path):
    browser.open(path, 1280, 900, "light")
    view = "document.querySelector('.plot').getAttribute('viewBox')"
    whole = browser.value(view)
    browser.value("document.querySelector('.zoom button').click()")
    part = browser.value(view)
    if float(part.split()[2]) != float(whole.split()[2]) / 2:
        yield f"zooming in shows {part} of {whole}"
    ticks = browser.value("[...document.querySelectorAll('.timeline .axis text')]"
                          ".map((tick) => tick.textContent).join()")
    if not re.fullmatch(r"\d+ [munp]?s(,\d+ [munp]?s)+", ticks):
        yield f"the ticks of a part are {ticks}"
    browser.value("document.querySelectorAll('.zoom button')[4].click()")
    if [float(each) for each in browser.value(view).split()] != [
        float(each) for each in whole.split()
    ]:
        yield "the whole is not shown again"
    planners = ("[...document.querySelectorAll('#alternatives tbody tr')]"
                ".map((row) => Number(row.cells[1].dataset.order))")
    before = browser.value(planners)
    browser.value("document.querySelectorAll('#alternatives th')[1].click()")
    if browser.value(planners) != sorted(before, reverse=True):
        yield "a click on the title does not sort"
    browser.value("document.querySelectorAll('#alternatives th')[1].click()")
    if browser.value(planners) != sorted(before):
        yield "a second click does not turn the order round"
    ratios = ("[...document.querySelectorAll('#alternatives tbody tr')]"
              ".map((row) => row.cells[2].textContent)")
    browser.value("document.querySelectorAll('#alternatives th')[2].click()")
    if browser.value(ratios) != sorted(browser.value(ratios), key=float, reverse=True):
        yield "ratios are not sorted as numbers"
    place = browser.value("(() => { const slice = document.querySelector('.lane rect');"
                          "slice.scrollIntoView(); const box = slice.getBoundingClientRect();"
                          "return [box.x + box.width / 2, box.y + box.height / 2]; })()")
    browser.ask("Input.dispatchMouseEvent", type="mouseMoved", x=place[0], y=place[1])
    tip = browser.value("document.getElementById('tip').textContent")
    if not re.match(r"\w+, step \d+\n", tip):
        yield f"resting on a slice tells '{tip}'"
    yield from browser.complaints()


def check_in_browser(browser, paths):
    for name, _, _, most_s in PAGES:
        yield from (f"{name}: {fault}" for fault in faults_of_time(browser, paths[name], most_s))
        yield from (f"{name}: {fault}" for fault in faults_of_layout(browser, paths[name]))
    yield from (f"plan: {fault}" for fault in faults_without_script(browser, paths["plan"]))
    yield from (f"plan: {fault}" for fault in faults_of_script(browser, paths["plan"]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--reshard", default=built.RESHARD, help="the program")
    parser.add_argument("--pictures", help="a folder for pictures of all pages, to look at")
    arguments = parser.parse_args()
    program = chromium.found()
    with tempfile.TemporaryDirectory() as folder:
        paths, faults = make_pages(os.path.abspath(arguments.reshard), folder)
        if program:
            with chromium.Browser(program) as browser:
                faults += check_in_browser(browser, paths)
                for name in paths if arguments.pictures else ():
                    for width in WIDTHS:
                        for scheme in SCHEMES:
                            browser.open(paths[name], width, 900, scheme)
                            browser.picture(f"{arguments.pictures}/{name}-{width}-{scheme}.png")
    for fault in faults:
        print(f"check_pages: {fault}")
    if faults:
        return 1
    if not program:
        print("check_pages: the files hold; skipped, no browser (apt-get install chromium)")
        return built.SKIPPED
    print(f"check_pages: {len(PAGES)} pages hold")
    return 0


if __name__ == "__main__":
    sys.exit(main())
