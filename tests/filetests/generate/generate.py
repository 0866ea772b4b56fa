#!/usr/bin/env python3
"""Writes the generated file tests (`tests/filetests/generated`): run it without arguments from anywhere.

What is expected comes from exact arithmetic after the definitions in the ISA's documents, not from this
project's output. It needs nothing but Python."""

import os
import random
import sys

sys.dont_write_bytecode = True  # keeps the tree clean

from exact import *
from kernel import Case, Src, write

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(os.path.dirname(HERE), "generated")
ALL, WITH64, WITHBF = "skl tgllp acm-g10 pvc", "skl pvc", "acm-g10 pvc"


def edges(t, rng):
    bits = 8 * size(t)
    if t in INTS:
        lo, hi = int_range(t)
        few = [0, 1, 2, 3, 7, hi, hi - 1, lo, lo + 1, hi // 2 + 1, (1 << bits) - 1, 5, 1 << bits // 2, 100]
    else:
        n, m, e = FLOATS[t]
        top = ((1 << e) - 1) << m
        one = ((1 << (e - 1)) - 1) << m
        sign = 1 << (bits - 1)
        few = [0, sign, one, one | sign, top, top | sign, top | 1 << (m - 1), 1, sign | 1, (1 << m) - 1, 1 << m,
               top - 1, one + 1, one - 1, (one + (1 << m)) + 3, one - (1 << m), sign | one + (1 << (m - 1)),
               one | 1 << (m - 1)]
    few = [v & ((1 << bits) - 1) for v in few]
    table = {}
    for name in "ABC":
        row = few + [rng.getrandbits(bits) for _ in range(32)]
        if is_float(t):
            # Mostly numbers near one, so that sums and products stay finite.
            n, m, e = FLOATS[t]
            one = (1 << (e - 1)) - 1
            for i in range(len(few), len(row)):
                near = (one + rng.randint(-5, 5)) << m | rng.getrandbits(m) | rng.getrandbits(1) << (bits - 1)
                row[i] = near
        row = row[:32]
        if name != "A":
            rng.shuffle(row)
        table[name] = row
    # Equal operands, and a few that are interesting together.
    table["B"][4] = table["A"][4]
    return table


TABLES = {t: edges(t, random.Random(f"visa-jit {t}")) for t in list(INTS) + list(FLOATS)}


def store_int(x, c):
    x = clamp(x, c.dst) if c.sat else x
    return x & ((1 << 8 * size(c.dst)) - 1)


def exact_int(f):
    """Result function of exact integers."""
    return lambda i, c, tables: store_int(f(*[s.number(i, tables) for s in c.srcs], c), c)


def store_float(x, c, mode="rne"):
    if c.dst in INTS:
        return to_int(x, c.dst) & ((1 << 8 * size(c.dst)) - 1)
    return encode(unit(x) if c.sat else x, c.dst, mode)


def exact_float(f, mode="rne"):
    """Result function of floats: computed exactly, rounded once to the execution type, then to the destination."""
    def result(i, c, tables):
        types = {s.own for s in c.srcs}
        kind = "df" if "df" in types else ("hf" if types == {"hf"} and c.dst != "f" else "f")
        x = f(*[s.number(i, tables) for s in c.srcs])
        if not (types == {"bf"} and c.dst == "bf"):
            x = rounded(x, kind, mode)
        else:
            x = rounded(x, "f", mode)
        return store_float(x, c, mode)
    return result


def shapes(make, n=16):
    """One combination in other execution sizes, masks, predicates, strides."""
    out = []
    for size_, mask in [(1, "M1"), (2, "M1"), (4, "M1_NM"), (8, "M3"), (32, "M1"), (16, "M5"), (8, "M7"), (16, "M5_NM")]:
        out.append(make(n=size_, mask=mask))
    out.append(make(pred="(P1)"))
    out.append(make(pred="(!P1)", mask="M5"))
    out.append(make(n=8, stride=2))
    out.append(make(n=32, pred="(P1)"))
    return out


def emit(name, title, cases, platforms=ALL, **more):
    family, base = name.split("/")
    os.makedirs(os.path.join(ROOT, family), exist_ok=True)
    step = 24
    parts = [cases[i:i + step] for i in range(0, len(cases), step)]
    for k, part in enumerate(parts):
        suffix = f"_{k + 1}" if len(parts) > 1 else ""
        write(os.path.join(ROOT, family, f"{base}{suffix}.visaasm"), title, part, TABLES, platforms, **more)


def int_cases(op, f, sets, sat=True, mods=True, shape=None):
    """Cases over type sets `(dst, src…)`, with and without saturation, and with modifiers."""
    cases = []
    for dst, *types in sets:
        srcs = [Src(t, "ABC"[k]) for k, t in enumerate(types)]
        cases.append(Case(op, dst, srcs, exact_int(f)))
        if sat:
            cases.append(Case(op, dst, srcs, exact_int(f), sat=True))
        if mods:
            signs = ["(-)", "(abs)", "(-abs)"]
            srcs = [Src(t, "ABC"[k], signs[(k + len(cases)) % 3] if k != len(cases) % len(types) or len(types) == 1 else "")
                    for k, t in enumerate(types)]
            cases.append(Case(op, dst, srcs, exact_int(f), sat=sat and len(cases) % 2 == 0))
    if shape:
        dst, *types = shape
        srcs = [Src(t, "ABC"[k]) for k, t in enumerate(types)]
        cases += shapes(lambda **kw: Case(op, dst, srcs, exact_int(f), **kw))
        if len(srcs) == 2:
            cases.append(Case(op, dst, [Src("v", imm=0xFEDC8017), srcs[1]], exact_int(f), n=8))
            cases.append(Case(op, dst, [srcs[0], Src("uv", imm=0xFEDC8017)], exact_int(f)))
            cases.append(Case(op, dst, [srcs[0], Src("w", imm=0xFFF9)], exact_int(f)))
            cases.append(Case(op, dst, [Src(types[0], "A", "", region="<0;1,0>", element=lambda i: 0), srcs[1]], exact_int(f)))
            cases.append(Case(op, dst, [Src(types[0], "A", "", region="<2;1,0>", element=lambda i: 2 * i), srcs[1]], exact_int(f)))
    return cases


NARROW = [("d", "d", "d"), ("ud", "ud", "ud"), ("w", "w", "w"), ("uw", "ub", "b"), ("d", "w", "ud"), ("ub", "d", "d"),
          ("b", "uw", "d"), ("ud", "d", "ud"), ("w", "ub", "ub"), ("uw", "ud", "ud")]
QUADS = [("q", "q", "q"), ("uq", "uq", "uq"), ("q", "d", "ud"), ("d", "q", "q"), ("uq", "q", "uq"), ("q", "uq", "uq"),
         ("uw", "uq", "q"), ("uq", "d", "w")]


def three(sets):
    return [(d, a, b, a) for d, a, b in sets]


def quotient(x, y, c, bits):
    signed = any(s.own in INTS and INTS[s.own][1] or s.mod in ("(-)", "(-abs)") for s in c.srcs)
    if y == 0:
        if x < 0:
            return -(1 << (bits - 1))
        return (1 << (bits - 1)) - 1 if signed else (1 << bits) - 1
    q = abs(x) // abs(y)
    return -q if (x < 0) != (y < 0) else q


def remainder(x, y, c):
    if y == 0:
        return x
    r = abs(x) % abs(y)
    return -r if x < 0 else r


def execution_bits(c):
    return 64 if any(size(s.own) == 8 for s in c.srcs) else 32


def integer_files():
    add = lambda x, y, c: x + y
    emit("add/int", "Integer addition.", int_cases("add", add, NARROW, shape=("d", "d", "d")))
    emit("add/quad", "Addition of quadwords.", int_cases("add", add, QUADS), WITH64)
    mul = lambda x, y, c: x * y
    emit("mul/int", "Integer product.", int_cases("mul", mul, NARROW, shape=("d", "w", "d")))
    emit("mul/quad", "Product of 64 bits.",
         int_cases("mul", mul, [("q", "d", "d"), ("uq", "ud", "ud"), ("q", "d", "ud"), ("uq", "d", "ud"), ("q", "w", "d")]),
         WITH64)
    mad = lambda x, y, z, c: wrap(x * y, c.dst) + z
    emit("mad/int", "The product of an integer mad is cut to the destination's type.",
         int_cases("mad", mad, three(NARROW), shape=("d", "d", "w", "d")))
    emit("mad/quad", "Multiply-add of quadwords.",
         int_cases("mad", mad, [("q", "d", "d", "q"), ("uq", "ud", "ud", "uq"), ("q", "ud", "d", "uq"), ("d", "d", "d", "q")]),
         WITH64)
    words = [s for s in NARROW if size(s[0]) > 1 and size(s[1]) > 1 and size(s[2]) > 1]
    emit("add3/int", "Sum of three.", int_cases("add3", lambda x, y, z, c: x + y + z, three(words), shape=("d", "d", "w", "d")))
    emit("avg/int", "Rounding up average.", int_cases("avg", lambda x, y, c: (x + y + 1) >> 1, NARROW, shape=("d", "d", "d")))
    high = lambda x, y, c: x * y >> 32
    pairs = [("d", "d", "d"), ("ud", "ud", "ud"), ("d", "d", "ud"), ("ud", "ud", "d")]
    emit("mulh/int", "High dword of the product.", int_cases("mulh", high, pairs, sat=False, shape=("d", "d", "d")))
    old = "skl tgllp"
    div = lambda x, y, c: quotient(x, y, c, execution_bits(c))
    emit("div/int", "Truncating quotient.", int_cases("div", div, NARROW, sat=False, shape=("d", "d", "d")), old)
    emit("div/quad", "Quotient of quadwords.", int_cases("div", div, QUADS, sat=False), "skl")
    emit("mod/int", "Remainder with the dividend's sign.", int_cases("mod", remainder, NARROW, sat=False, shape=("d", "d", "d")), old)
    emit("mod/quad", "Remainder of quadwords.", int_cases("mod", remainder, QUADS, sat=False), "skl")
    shift_files()


def shift_files():
    def shl(x, n, c):
        wide = size(c.dst) == 8 or size(c.srcs[0].own) == 8
        return x << (n & (63 if wide else 31))
    sets = [("d", "d", "ud"), ("ud", "ud", "ud"), ("w", "w", "uw"), ("ub", "ub", "ub"), ("d", "w", "d"), ("uw", "d", "b"),
            ("b", "b", "w")]
    emit("shl/int", "Shift left; the count is taken modulo 32.", int_cases("shl", shl, sets, mods=False, shape=("d", "d", "ud")))
    sets = [("q", "q", "ud"), ("uq", "uq", "uq"), ("q", "d", "d"), ("uq", "q", "ud"), ("d", "q", "ud")]
    emit("shl/quad", "Shift left of quadwords; the count is taken modulo 64.", int_cases("shl", shl, sets, mods=False), WITH64)

    def rotate(left):
        def f(x, n, c):
            bits = 8 * max(size(c.dst), size(c.srcs[0].own))
            x &= (1 << bits) - 1
            n = (n if left else -n) % bits
            return (x << n | x >> (bits - n)) & ((1 << bits) - 1)
        return f
    sets = [("ud", "ud", "ud"), ("d", "d", "d"), ("uw", "uw", "uw"), ("w", "w", "ud"), ("uw", "ud", "ud"), ("ud", "uw", "ud"),
            ("d", "w", "uw")]
    for op, left in (("rol", True), ("ror", False)):
        cases = int_cases(op, rotate(left), sets, sat=False, mods=False, shape=("ud", "ud", "ud"))
        emit(f"{op}/int", "Rotation at the width of the wider of result and value.", cases, "tgllp acm-g10 pvc")
        quads = [("uq", "uq", "uq"), ("q", "q", "ud"), ("uq", "ud", "ud"), ("ud", "uq", "uw")]
        emit(f"{op}/quad", "Rotation of quadwords.", int_cases(op, rotate(left), quads, sat=False, mods=False), "pvc")


def float_cases(op, f, sets, mode="rne", mods=True, sat=True, shape=None):
    cases = []
    for dst, *types in sets:
        srcs = [Src(t, "ABC"[k]) for k, t in enumerate(types)]
        cases.append(Case(op, dst, srcs, exact_float(f, mode)))
        if sat:
            cases.append(Case(op, dst, srcs, exact_float(f, mode), sat=True))
        if mods:
            for shift in range(2):
                signs = ["(-)", "(abs)", "(-abs)", ""]
                srcs = [Src(t, "ABC"[k], signs[(k + shift) % 4]) for k, t in enumerate(types)]
                cases.append(Case(op, dst, srcs, exact_float(f, mode)))
    if shape:
        dst, *types = shape
        srcs = [Src(t, "ABC"[k]) for k, t in enumerate(types)]
        cases += shapes(lambda **kw: Case(op, dst, srcs, exact_float(f, mode), **kw))
        if dst == "f":
            imm = [Src("vf", imm=0x30C80081)] + srcs[1:]
            cases.append(Case(op, dst, imm, exact_float(f, mode)))
            imm = srcs[:-1] + [Src("f", imm=0xC0200000)]
            cases.append(Case(op, dst, imm, exact_float(f, mode)))
    return cases


def float_files():
    two = [("f", "f", "f"), ("hf", "hf", "hf"), ("f", "hf", "hf"), ("f", "hf", "f"), ("hf", "f", "f")]
    bfs = [("bf", "bf", "bf"), ("f", "bf", "bf"), ("bf", "f", "bf"), ("bf", "f", "f")]
    fma = lambda x, y, z: fadd(fmul(x, y), z)
    for op, f, extra in (("add", fadd, 0), ("mul", fmul, 0), ("mad", fma, 1)):
        sets = three(two) if extra else two
        emit(f"{op}/float", "Floats, nearest-even, denormals kept.", float_cases(op, f, sets, shape=sets[0]))
        sets = three(bfs) if extra else bfs
        emit(f"{op}/bf", "bf operands are computed with as f.", float_cases(op, f, sets), WITHBF)
        sets = [("df",) * (3 + extra)]
        emit(f"{op}/double", "Doubles.", float_cases(op, f, sets, shape=sets[0]), WITH64)
        for bits, mode in ((0x10, "ru"), (0x20, "rd"), (0x30, "rz")):
            sets = two[:3]
            g = (lambda x, y: fadd(x, y, mode)) if op == "add" else f
            if op == "mad":
                g = lambda x, y, z: fadd(fmul(x, y), z, mode)
            cases = float_cases(op, g, three(sets) if extra else sets, mode, mods=False, sat=False)
            emit(f"{op}/round_{mode}", f"Floats rounded by %cr0: {mode}.", cases, cr0=0x4C0 | bits)
    emit("div/float", "Float quotient.", float_cases("div", fdiv, two, shape=two[0]))
    emit("div/double", "Quotient of doubles.", float_cases("div", fdiv, [("df", "df", "df")]), WITH64)


def convert(i, c, tables):
    x = c.srcs[0].number(i, tables)
    if c.srcs[0].own in INTS:
        if c.dst in INTS:
            return store_int(x, c)
        x = Fraction(x)
        return encode(unit(x) if c.sat else x, c.dst)
    return store_float(x, c)


def platforms_of(*types):
    names = set(ALL.split())
    if any(size(t) == 8 for t in types):
        names &= set(WITH64.split())
    if "bf" in types:
        names &= set(WITHBF.split())
    return " ".join(p for p in ALL.split() if p in names)


def move_files():
    groups = {}
    for src in list(INTS) + list(FLOATS):
        for dst in list(INTS) + list(FLOATS):
            for sat in (False, True):
                for mod in ("", "(-)", "(abs)", "(-abs)"):
                    if mod == "(-abs)" and src in INTS:
                        continue
                    case = Case("mov", dst, [Src(src, "A", mod)], convert, sat=sat, n=32)
                    groups.setdefault((src, platforms_of(src, dst)), []).append(case)
    for (src, platforms), cases in groups.items():
        kind = {ALL: "", WITH64: "_64", WITHBF: "_bf"}.get(platforms, "_pvc")
        emit(f"mov/from_{src}{kind}", f"Conversions of {src}.", cases, platforms)
    shape = [Case("mov", "w", [Src("v", imm=0x8F7E0123)], convert), Case("mov", "d", [Src("uv", imm=0x8F7E0123)], convert),
             Case("mov", "f", [Src("vf", imm=0x00B0FF81)], convert), Case("mov", "f", [Src("v", imm=0x8F7E0123)], convert),
             Case("mov", "ub", [Src("d", imm=0xFFFFFE81)], convert, sat=True)]
    emit("mov/packed", "Packed immediates.", shape)
    emit("mov/shape", "Execution sizes, masks, predicates.",
         shapes(lambda **kw: Case("mov", "d", [Src("w", "B")], convert, **kw)))


def group_files():
    r = lambda x: rounded(x, "f")

    def lanes(i, c, tables, k, count=4):
        base = i // count * count
        return [c.srcs[k].number(base + j, tables) for j in range(count)]

    def dot(terms, homogeneous=False):
        def f(i, c, tables):
            x, y = lanes(i, c, tables, 0), lanes(i, c, tables, 1)
            s = r(fmul(x[0], y[0]))
            for j in range(1, terms):
                s = r(fadd(fmul(x[j], y[j]), s))
            if homogeneous:
                s = r(fadd(s, y[3]))
            return store_float(s, c)
        return f
    for op, f in (("dp2", dot(2)), ("dp3", dot(3)), ("dp4", dot(4)), ("dph", dot(3, True))):
        srcs = [Src("f", "A"), Src("f", "B")]
        cases = [Case(op, "f", srcs, f), Case(op, "f", srcs, f, sat=True)]
        cases.append(Case(op, "f", [Src("f", "B", "(-)"), Src("f", "C", "(abs)")], f))
        cases.append(Case(op, "f", [Src("f", "C", "(-abs)"), Src("vf", imm=0x30C80081)], f))
        cases.append(Case(op, "f", [Src("f", "B", region="<0;4,1>", element=lambda i: i % 4), Src("f", "C")], f))
        cases.append(Case(op, "f", [Src("f", "C"), Src("f", imm=0x40400000)], f))
        cases += shapes(lambda **kw: Case(op, "f", srcs, f, **kw))
        emit(f"{op}/float", "Sums of products within four channels.", cases)

    def line(i, c, tables):
        p, q = c.srcs[0].number(0, tables), c.srcs[0].number(3, tables)
        return store_float(r(fadd(fmul(c.srcs[1].number(i, tables), p), q)), c)

    def plane(i, c, tables):
        p, q, s = (c.srcs[0].number(k, tables) for k in (0, 1, 3))
        at = i // 8 * 16 + i % 8
        u, v = c.srcs[1].number(at, tables), c.srcs[1].number(at + 8, tables)
        return store_float(r(fadd(fmul(v, q), r(fadd(fmul(u, p), s)))), c)

    for op, f in (("line", line), ("plane", plane)):
        quad = lambda table, at, mod="": Src("f", table, mod, region="<0;4,1>", element=lambda i: i % 4)
        cases = []
        for n in (8, 16):
            for mod in ("", "(-)", "(abs)", "(-abs)"):
                cases.append(Case(op, "f", [quad("B", 0, mod), Src("f", "C", mod)], f, n=n))
            cases.append(Case(op, "f", [quad("C", 0), Src("f", "B")], f, n=n, sat=True))
            cases.append(Case(op, "f", [quad("C", 0), Src("f", "B")], f, n=n, pred="(P1)"))
            # A scalar stands for all of line's coefficients; the region of plane's does not count.
            element = (lambda i: i) if op == "plane" else (lambda i: 0)
            cases.append(Case(op, "f", [Src("f", "B", region="<0;1,0>", element=element), Src("f", "B")], f, n=n))
        cases.append(Case(op, "f", [quad("B", 0), Src("f", "C")], f, n=8, mask="M7"))
        emit(f"{op}/float", "Multiply-adds with coefficients of the first source.", cases)

    def lrp(i, c, tables):
        x, y, z = (s.number(i, tables) for s in c.srcs)
        part = r(fmul(r(fadd(fneg(x), Fraction(1))), z))
        return store_float(r(fadd(fmul(x, y), part)), c)
    srcs = [Src("f", k) for k in "ABC"]
    cases = [Case("lrp", "f", srcs, lrp), Case("lrp", "f", srcs, lrp, sat=True),
             Case("lrp", "f", [Src("f", "B", "(-)"), Src("f", "A", "(abs)"), Src("f", "C", "(-abs)")], lrp),
             Case("lrp", "f", [Src("f", imm=0x3E800000), srcs[1], srcs[2]], lrp)]
    cases += shapes(lambda **kw: Case("lrp", "f", srcs, lrp, **kw))
    emit("lrp/float", "Linear interpolation.", cases)
    sad_files()


def sad_files():
    def sad(i, c, tables):
        x, y = ([c.srcs[k].number(i + j, tables) for j in (0, 1)] for k in (0, 1))
        s = abs(x[0] - y[0]) + abs(x[1] - y[1])
        if len(c.srcs) > 2:
            s += c.srcs[2].number(i, tables)
        return store_int(s, c)
    even = lambda i: i % 2 == 0
    for op, more in (("sad2", []), ("sad2add", [Src("w", "C")])):
        cases = []
        for dst in ("w", "uw"):
            for a, b in (("ub", "ub"), ("b", "b"), ("ub", "b")):
                third = [Src(dst, "C")] if more else []
                cases.append(Case(op, dst, [Src(a, "A"), Src(b, "B")] + third, sad, lanes=even))
                cases.append(Case(op, dst, [Src(a, "B", "(-)"), Src(b, "C", "(abs)")] + third, sad, lanes=even, sat=True))
        srcs = [Src("ub", "A"), Src("ub", "B")] + more
        cases += [c for c in shapes(lambda **kw: Case(op, "w", srcs, sad, lanes=even, **kw))]
        emit(f"{op}/int", "Sums of absolute differences, into even channels.", cases, "skl")


def small_float_files():
    def tf32(i, c, tables):
        bits = c.srcs[0].bits(i, tables)
        x = decode(bits, "f")
        if x == NAN:
            return 0x7FC00000
        if bits & 0x7F800000 == 0:
            return bits & 0x80000000
        low = bits & 0x1FFF
        kept = bits >> 13
        up = low > 0x1000 or (low == 0x1000 and kept & 1)
        return (kept + up) << 13 & 0xFFFFFFFF if bits & 0x7F800000 != 0x7F800000 else bits

    def bf8(bits, random=None):
        sign, m = bits >> 8 & 0x80, bits & 0x7FFF
        if m > 0x7C00:
            return 0x7E
        if m == 0x7C00:
            return sign | 0x7C
        if random is not None:
            return sign | (m + (random & 0xFF)) >> 8
        # nearest even of five exponent and two mantissa bits
        FLOATS["bf8"] = (1, 2, 5)
        return encode(decode(bits, "hf"), "bf8")

    def shrink(i, c, tables):
        return bf8(c.srcs[0].bits(i, tables))
    cases = [Case("fcvt", "ud", [Src("f", t)], tf32, n=n, mask=m) for t, n, m in
             (("A", 16, "M1"), ("B", 32, "M1"), ("C", 16, "M5"), ("C", 1, "M1_NM"), ("B", 8, "M7"))]
    cases += [Case("fcvt", "f", [Src("ud", t)], lambda i, c, tables: c.srcs[0].bits(i, tables), n=n) for t, n in (("A", 16), ("B", 32))]
    cases += [Case("fcvt", "ub", [Src("hf", t)], shrink, n=n, mask="M1_NM") for t, n in (("A", 16), ("B", 32), ("C", 8), ("C", 16))]
    cases += [Case("fcvt", "hf", [Src("ub", t)], lambda i, c, tables: c.srcs[0].bits(i, tables) << 8, n=n) for t, n in
              (("A", 16), ("B", 32), ("C", 4))]
    emit("fcvt/formats", "tf32 and bf8.", cases, "pvc")

    def srnd(i, c, tables):
        bits, random = c.srcs[0].bits(i, tables), c.srcs[1].bits(i, tables)
        if c.dst == "ub":
            return bf8(bits, random)
        sign, m = bits >> 16 & 0x8000, bits & 0x7FFFFFFF
        if m > 0x7F800000:
            return 0x7E00
        m += random & 0x1FFF
        x = decode(m, "f") if m < 0x7F800000 else INF
        if x == INF or x >= 65536:
            return sign | 0x7C00
        return sign | encode(x, "hf", "rz")
    # f values around the range of hf, so that denormal and infinite results occur.
    rng = random.Random("srnd")
    table = [rng.choice([0x33000000, 0x38000000, 0x3F800000, 0x47700000, 0x477FE000, 0x387FC000]) + rng.getrandbits(22 if i % 2 else 13)
             | rng.getrandbits(1) << 31 for i in range(32)]
    saved = TABLES["f"]["C"]
    TABLES["f"]["C"] = table
    cases = [Case("srnd", "hf", [Src("f", t), Src("uw", u)], srnd, n=n, mask="M1_NM") for t, u, n in
             (("A", "A", 16), ("B", "B", 32), ("C", "C", 32), ("C", "A", 16), ("C", "B", 8), ("B", "C", 1))]
    cases += [Case("srnd", "hf", [Src("f", "C"), Src("uw", imm=r)], srnd, n=32, mask="M1_NM") for r in (0, 0x1FFF, 0xE000)]
    cases += [Case("srnd", "ub", [Src("hf", t), Src("ub", u)], srnd, n=n, mask="M1_NM") for t, u, n in
              (("A", "A", 16), ("B", "B", 32), ("C", "C", 8), ("C", "A", 32))]
    emit("srnd/formats", "Random bits below the kept ones, the rest cut off.", cases, "pvc")
    TABLES["f"]["C"] = saved
    seed_files()


def seed_files():
    """Cases in pairs: the numbers, then the predicate as numbers."""
    def pair(op, t, srcs, f, **kw):
        after = f"mov (M1_NM, 1) OUT_UD(0,0)<1> P2"
        text = Case(op, t, srcs, None, **kw)
        first = Case(op, t, srcs, lambda i, c, tables: encode(f(i, c, tables), t), **kw)
        done = lambda x: x in (NAN, INF, NINF, NZERO) or x == 0
        line = first.text().replace(f"OUT_{t.upper()}(0,0)<1>", f"OUT_{t.upper()}(0,0)<1> P2")
        first.custom = line

        def bits(i, c, tables):
            old, out = 0xFFFF0000, 0
            for lane in range(32):
                at = 4 * (int(first.mask[1]) - 1)
                k = lane - at
                if 0 <= k < first.n and first.enabled(k):
                    x = rounded(f(k, first, tables), t)
                    out |= done(x) << lane
                else:
                    out |= old & 1 << lane
            return out
        second = Case("mov", "ud", srcs, bits, n=1, mask="M1_NM", text="setp (M1_NM, 32) P2 0xffff0000:ud", after=[line, after])
        return [first, second]
    inv = lambda i, c, tables: rounded(fdiv(c.srcs[0].number(i, tables), c.srcs[1].number(i, tables)), c.dst)

    def rsq(i, c, tables):
        root = rounded(froot(c.srcs[0].number(i, tables), c.dst), c.dst)
        return rounded(fdiv(Fraction(1), root), c.dst)
    for op, f, count in (("invm", inv, 2), ("rsqtm", rsq, 1)):
        for t, name, platforms in (("f", "float", WITH64), ("df", "double", WITH64)):
            cases = []
            for mods in ([""] * 2, ["(-)", "(abs)"], ["(abs)", "(-)"]):
                srcs = [Src(t, "AB"[k], mods[k]) for k in range(count)]
                cases += pair(op, t, srcs, f)
            srcs = [Src(t, "AB"[k]) for k in range(count)]
            for kw in ({"n": 32}, {"n": 16, "mask": "M5"}, {"pred": "(P1)"}, {"n": 1}, {"n": 8, "mask": "M7"}):
                cases += pair(op, t, srcs, f, **kw)
            emit(f"{op}/{name}", "Seed and early-out predicate.", cases, platforms)
    overflow_files()


def overflow_files():
    cases = []
    total = lambda i, c, tables: sum(s.number(i, tables) for s in c.srcs)
    sets = [("d", "d"), ("ud", "ud"), ("d", "ud"), ("w", "w"), ("uw", "uw"), ("ud", "w")]
    shape = [{}, {"n": 32}, {"n": 16, "mask": "M5"}, {"n": 8, "mask": "M7"}]
    for k, (dst, src) in enumerate(sets):
        for mods in ([""] * 3, ["(-)", "", "(abs)"]):
            srcs = [Src(src, "ABC"[j], mods[j]) for j in range(3)]
            kw = shape[k % len(shape)]
            first = Case("add3.o", dst, srcs, lambda i, c, tables: store_int(total(i, c, tables), c), pred="(P2)", **kw)

            def bits(i, c, tables, first=first):
                out = 0
                for lane in range(32):
                    at = lane - 4 * (int(first.mask[1]) - 1)
                    if 0 <= at < first.n and first.enabled(at):
                        x = total(at, first, tables)
                        out |= (clamp(x, first.dst) != x) << lane
                    else:
                        out |= 0x5555AAAA & 1 << lane
                return out
            after = [first.text(), "mov (M1_NM, 16) OUT_UD(0,0)<1> 0xa5a5a5a5:ud", "mov (M1_NM, 1) OUT_UD(0,0)<1> P2"]
            cases += [first, Case("mov", "ud", srcs, bits, n=1, mask="M1_NM", text="setp (M1_NM, 32) P2 0x5555aaaa:ud", after=after)]
    emit("add3o/int", "Sum of three and whether it overflows the destination's type.", cases, "pvc")


if __name__ == "__main__":
    integer_files()
    float_files()
    move_files()
    group_files()
    small_float_files()
    import bits
    import flow
    import functions
    import images
    import matrices
    import memory
    bits.files()
    functions.files()
    images.write(ROOT)
    matrices.files()
    memory.files()
    flow.files()
