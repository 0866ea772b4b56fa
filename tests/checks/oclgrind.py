#!/usr/bin/env python3
"""Launches the kernels with planted errors under Debian's Oclgrind (package `oclgrind`), with the arguments that the tests beside this
file give them, and prints what it finds, a line for each launch, and the sums. docs/checking.md has the result."""

import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SOURCES = {"memory": [], "race": ["--data-races"], "barrier": [], "init": ["--uninitialized"]}
TABLES = {"memory": "memory.rs", "race": "races.rs", "barrier": "barriers.rs", "init": "inits.rs"}
# Kernels of `init.cl` whose third argument is a buffer without content.
WITH_BUFFER = ["buffer_index", "buffer_copy", "buffer_atomic", "block"]


def launches():
    """Source, kernel, global and local size, bytes of buffers, and the argument that makes the launch wrong."""
    for source, file in TABLES.items():
        text = (HERE / file).read_text()
        text = text[text.index("const CASES"):]
        text = text[:text.index("\n];")]
        if source == "memory":
            for kernel, buffers, far in re.findall(r'case\(\s*"(\w+)",\s*&\[([\d, ]*)\],\s*(-?\d+),', text):
                yield source, kernel, [64], [64], [int(b) for b in buffers.split(",")], int(far)
        elif source == "race":
            for kernel in re.findall(r'(?:local|global)\("(\w+)"', text) + ["lanes_differ"]:
                yield source, kernel, [256], [128], [4096], 1
        elif source == "barrier":
            for kernel, far in re.findall(r'case\(\s*"(\w+)",\s*(\d+),', text):
                shape = [8, 8] if kernel == "rows" else [64]
                yield source, kernel, shape, shape, [1024], int(far)
        else:
            for kernel in re.findall(r'case\(\s*"(\w+)",', text):
                yield source, kernel, [64], [64], [256, 1024] + [512] * (kernel in WITH_BUFFER), 1


def numbers(kernel):
    """Those of the second buffer, as `inits.rs` makes them."""
    a = [0] * 256
    for l in range(64):
        a[l] = 3 if l % 2 == 0 else 5
        a[l + 64] = l % 40
        a[l + 128] = l // 2 * 2 % 16
    if kernel.startswith("private"):
        for l in range(64):
            a[l + 64] = a[l + 128] & 31
    a[192:194] = [3, 100]
    return a


def simulation(source, kernel, shape, local, buffers, far):
    """What `oclgrind-kernel` reads."""
    sizes = [" ".join(str(n) for n in (dims + [1, 1])[:3]) for dims in (shape, local)]
    lines = [str(HERE / f"{source}.cl"), kernel, *sizes, ""]
    for n, size in enumerate(buffers):
        if source == "init" and n == 1:
            lines += ["<size=1024 int>", *map(str, numbers(kernel))]
        elif source == "init" and n == 2 and far:
            lines += [f"<size={size} noinit>"]
        else:
            lines += [f"<size={size} uchar fill=0>"]
    return "\n".join(lines + ["<size=4 int>", str(far), ""])


def reports(source, text):
    """Heads of reports, and None if it could not run the kernel."""
    with tempfile.NamedTemporaryFile("w", suffix=".sim") as file:
        file.write(text)
        file.flush()
        command = ["oclgrind-kernel", "--build-options", "-cl-std=CL2.0", *SOURCES[source], file.name]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=120)
    heads = [line for line in (ran.stdout + ran.stderr).splitlines() if line and not line[0].isspace()]
    if any("FATAL" in head or "Failed" in head or head.startswith("Line ") for head in heads):
        return None
    return heads


def main():
    sums = {}
    for source, kernel, shape, local, buffers, far in launches():
        right, wrong = (reports(source, simulation(source, kernel, shape, local, buffers, f)) for f in (0, far))
        if right is None or wrong is None:
            found = "does not run it"
        elif not wrong:
            found = "nothing"
        else:
            found = "found"
        if right:
            found += ", and reports the right kernel"
        print(f"{source} {kernel} {far}: {found}: {(wrong or [''])[0]}")
        sums.setdefault(source, {}).setdefault(found, []).append(kernel)
    for source in TABLES:
        if source not in sums:
            sys.exit(f"no launches in {TABLES[source]}: its table looks different now")
        for found, kernels in sums[source].items():
            names = "" if found == "found" else ": " + ", ".join(kernels)
            print(f"{source}: {found}: {len(kernels)}{names}")


main()
