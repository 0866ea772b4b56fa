"""File tests of `dpas` and `dpasw` on random matrices of small numbers, so that any order of accumulation is exact."""

import random
import struct

from generate import ROOT
import os

INT = {"s8": (8, True), "u8": (8, False), "s4": (4, True), "u4": (4, False), "s2": (2, True), "u2": (2, False)}


def bits_of(v, kind):
    if kind in INT:
        return v & ((1 << INT[kind][0]) - 1)
    f = struct.unpack("<I", struct.pack("<f", v))[0]
    if kind == "bf":
        return f >> 16
    if kind == "hf":
        return struct.unpack("<H", struct.pack("<e", v))[0]
    return f


def width(kind):
    return INT[kind][0] if kind in INT else {"bf": 16, "hf": 16, "tf32": 32}[kind]


def number(rng, kind):
    if kind in INT:
        bits, signed = INT[kind]
        return rng.randrange(-(1 << bits - 1), 1 << bits - 1) if signed else rng.randrange(1 << bits)
    return rng.randrange(-4, 5)


def pack(rows, kind):
    """Dwords of elements, one behind the other."""
    per = 32 // width(kind)
    flat = [bits_of(v, kind) for v in rows]
    flat += [0] * (-len(flat) % per)
    return [sum(flat[i + k] << k * width(kind) for k in range(per)) for i in range(0, len(flat), per)]


def matrices(rng, b, a, depth, repeat, n, with_c):
    """Dwords of A, B and C as registers hold them, and of the result."""
    if b in INT:
        ops = 4 if 8 in (width(a), width(b)) else 8
    else:
        ops = 1 if b == "tf32" else 2
    k = ops * depth
    am = [[number(rng, a) for _ in range(k)] for _ in range(repeat)]
    bm = [[number(rng, b) for _ in range(n)] for _ in range(k)]
    cm = [[rng.randrange(-1000, 1000) if with_c else 0 for _ in range(n)] for _ in range(repeat)]
    dm = [[cm[m][j] + sum(am[m][e] * bm[e][j] for e in range(k)) for j in range(n)] for m in range(repeat)]
    columns = [pack([bm[e][j] for e in range(k)], b) for j in range(n)]
    bw = [columns[j][r] for r in range(len(columns[0])) for j in range(n)]
    value = (lambda v: v & 0xFFFFFFFF) if b in INT else (lambda v: bits_of(float(v), "f"))
    return pack([v for row in am for v in row], a), bw, [value(v) for row in cm for v in row], [value(v) for row in dm for v in row]


# Few rows: `tests/dpas.rs` has every shape, and compiling the large ones takes long.
SHAPES = [("s8", "s8", 8, 2), ("u8", "s8", 8, 1), ("u8", "u8", 8, 1), ("s8", "u4", 8, 2), ("s4", "s4", 8, 1), ("u4", "s2", 8, 1),
          ("s8", "s2", 8, 1), ("bf", "bf", 8, 2), ("hf", "hf", 8, 3), ("hf", "hf", 8, 1)]


def files():
    for platform, n in (("acm-g10", 8), ("pvc", 16)):
        tf32 = [("tf32", "tf32", 8, 4)] if n == 16 else []
        write("dpas", platform, n, SHAPES + tf32, False)
        write("dpas", platform, n, SHAPES[:2], True)
    write_fused(SHAPES)


def write(op, platform, n, shapes, masked):
    rng = random.Random(f"{op} {platform} {masked}")
    alive = n - 3 if masked else n
    data, lines, body, at = [], [], [], 0
    for j, (b, a, depth, repeat) in enumerate(shapes):
        with_c = j % 3 != 2
        aw, bw, cw, dw = matrices(rng, b, a, depth, repeat, n, with_c)
        row = 4 * -(-len(data) // 4)
        data += [0] * (row - len(data))
        places = {}
        for name, words in (("A", aw), ("B", bw), ("C", cw)):
            words = words + [0] * (-len(words) % 32)
            places[name] = (len(data) // 4, len(words) // 4)
            data += words
        body.append("    movs (M1_NM, 1) T6(0) 0x0:ud")
        for name, (first, owords) in places.items():
            for k in range(0, owords, 8):
                body.append(f"    oword_ld (8) T6 {first + k:#x}:ud {name}.{16 * k}")
        body.append("    movs (M1_NM, 1) T6(0) 0x1:ud")
        body += [f"    mov (M1_NM, 16) RAW(0,{k})<1> 0xa5a5a5a5:ud" for k in range(0, 128, 16)]
        d, c = ("D", "C") if b in INT else ("DF", "CF")
        text = f"dpas.{b}.{a}.{depth}.{repeat} (M1, {n}) {d}.0 {c if with_c else '%null'}.0 B.0 A(0,0)"
        body.append("    " + text)
        out = [dw[i] if i < len(dw) and i % n < alive else 0xA5A5A5A5 for i in range(repeat * n)]
        size = -(-len(out) // 32) * 32
        out += [0xA5A5A5A5] * (size - len(out))
        body += [f"    oword_st (8) T6 {at // 16 + k:#x}:ud D.{16 * k}" for k in range(0, size // 4, 8)]
        lines += [f"//   {text}", f"// expect surface 1 at {at}: u32[{size}] = {' '.join(f'{v:#x}' for v in out)}"]
        at += 4 * size
    head = ["// Matrices" + (", with channels that do not exist." if masked else "."),
            "// Written by tests/filetests/generate; expected values are exact arithmetic.",
            f"// platform: {platform}", "// policy: zero", f"// global: {alive}", f"// local: {alive}",
            f"// surface 0: u32[{len(data)}] = {' '.join(f'{v:#x}' for v in data)}", f"// surface 1: u32[{at // 4}] = fill 0"]
    decls = [f".version 4.1", ".kernel \"generated\"", f".kernel_attr SimdSize={n}"]
    for name, ty, alias in (("A", "ud", ""), ("B", "ud", ""), ("C", "d", ""), ("D", "d", ""), ("CF", "f", "C"), ("DF", "f", "D"),
                            ("RAW", "ud", "D")):
        tail = f" alias=<{alias}, 0>" if alias else ""
        decls.append(f".decl {name} v_type=G type={ty} num_elts={64 if name == 'A' else 128} align=GRF{tail}")
    decls += [".decl T6 v_type=T num_elts=1", ".function \"main\""]
    os.makedirs(os.path.join(ROOT, op), exist_ok=True)
    path = os.path.join(ROOT, op, f"{platform}{'_masked' if masked else ''}.visaasm")
    with open(path, "w") as f:
        f.write("\n".join(head + lines + ["// faults: 0"] + decls + body + ["    ret (M1, 1)"]) + "\n")


THREADS, IN, OUT = 4, 96, 16


def write_fused(shapes):
    """Two pairs of fused threads; each has half of its pair's A, and B and C of its own."""
    rng = random.Random("dpasw")
    data = [0] * (4 * IN * THREADS * len(shapes))
    lines, body = [], []
    for j, (b, a, depth, repeat) in enumerate(shapes):
        out = []
        for t in range(THREADS):
            if t % 2 == 0:
                aw = matrices(random.Random(f"{j} {t}"), b, a, depth, repeat, 8, True)[0]
                half = (len(aw) + 7) // 8 - (len(aw) + 7) // 8 // 2
            # The same A, and another B and C.
            bw, cw, dw = with_rows(rng, aw, b, a, depth, repeat)
            mine = aw[:8 * half] if t % 2 == 0 else aw[8 * half:]
            at = 4 * IN * (THREADS * j + t)
            for first, words in ((0, mine), (32 * 4, bw), (64 * 4, cw)):
                data[at + first:at + first + len(words)] = words
            out += dw + [0] * (4 * OUT - len(dw))
        text = f"dpasw.{b}.{a}.{depth}.{repeat} (M1, 8) {'D' if b in INT else 'DF'}.0 {'C' if b in INT else 'CF'}.0 B.0 A(0,0)"
        lines += [f"//   {text}", f"// expect surface 1 at {16 * OUT * THREADS * j}: u32[{len(out)}] = {' '.join(f'{v:#x}' for v in out)}"]
        body += ["    movs (M1_NM, 1) T6(0) 0x0:ud"]
        for name, first, owords in (("A", 0, 16), ("B", 32, 16), ("C", 64, 16)):
            for k in range(0, owords, 8):
                body += [f"    mul (M1_NM, 1) OFF(0,0)<1> N(0,0)<0;1,0> {IN:#x}:ud",
                         f"    add (M1_NM, 1) OFF(0,0)<1> OFF(0,0)<0;1,0> {IN * THREADS * j + first + k:#x}:ud",
                         f"    oword_ld (8) T6 OFF(0,0)<0;1,0> {name}.{16 * k}"]
        body += ["    movs (M1_NM, 1) T6(0) 0x1:ud"] + [f"    mov (M1_NM, 16) RAW(0,{k})<1> 0x0:ud" for k in range(0, 64, 16)]
        if j == 1:
            # A barrier between two of them, and a pair that goes round a loop more often than the other.
            body += ["    barrier", "    shr (M1_NM, 1) TURNS(0,0)<1> N(0,0)<0;1,0> 0x1:ud", "AGAIN:"]
        body.append("    " + text)
        if j == 1:
            body += ["    cmp.ne (M1_NM, 1) P1 TURNS(0,0)<0;1,0> 0x0:ud", "    add (M1_NM, 1) TURNS(0,0)<1> TURNS(0,0)<0;1,0> 0xffffffff:ud",
                     "    (P1) jmp (M1, 1) AGAIN", "    barrier"]
        for k in range(0, OUT, 8):
            body += [f"    mul (M1_NM, 1) OFF(0,0)<1> N(0,0)<0;1,0> {OUT:#x}:ud",
                     f"    add (M1_NM, 1) OFF(0,0)<1> OFF(0,0)<0;1,0> {OUT * THREADS * j + k:#x}:ud",
                     f"    oword_st (8) T6 OFF(0,0)<0;1,0> D.{16 * k}"]
    head = ["// A matrix whose first half is in the registers of one thread and the second half in those of the thread fused with it.",
            "// Written by tests/filetests/generate; expected values are exact arithmetic.",
            "// platform: acm-g10", "// policy: zero", f"// global: {8 * THREADS}", f"// local: {8 * THREADS}",
            f"// surface 0: u32[{len(data)}] = {' '.join(f'{v:#x}' for v in data)}",
            f"// surface 1: u32[{4 * OUT * THREADS * len(shapes)}] = fill 0"]
    decls = [".version 4.1", ".kernel \"generated\"", ".kernel_attr SimdSize=8"]
    for name, ty, alias in (("A", "ud", ""), ("B", "ud", ""), ("C", "d", ""), ("D", "d", ""), ("CF", "f", "C"), ("DF", "f", "D"),
                            ("RAW", "ud", "D"), ("N", "ud", ""), ("OFF", "ud", ""), ("TURNS", "ud", "")):
        tail = f" alias=<{alias}, 0>" if alias else ""
        count = 1 if name in ("N", "OFF", "TURNS") else 64
        decls.append(f".decl {name} v_type=G type={ty} num_elts={count} align=GRF{tail}")
    decls += [".decl T6 v_type=T num_elts=1", ".decl P1 v_type=P num_elts=1", ".function \"main\"",
              "    and (M1_NM, 1) N(0,0)<1> %r0(0,2)<0;1,0> 0xff:ud"]
    os.makedirs(os.path.join(ROOT, "dpasw"), exist_ok=True)
    with open(os.path.join(ROOT, "dpasw", "pairs.visaasm"), "w") as f:
        f.write("\n".join(head + lines + ["// faults: 0"] + decls + body + ["    ret (M1, 1)"]) + "\n")


def unpack(words, kind, count):
    per = 32 // width(kind)
    out = []
    for e in range(count):
        v = words[e // per] >> e % per * width(kind) & ((1 << width(kind)) - 1)
        if kind in INT:
            bits, signed = INT[kind]
            v = v - (1 << bits) if signed and v >> bits - 1 else v
        elif kind == "hf":
            v = int(struct.unpack("<e", struct.pack("<H", v))[0])
        else:
            v = int(struct.unpack("<f", struct.pack("<I", v << 32 - width(kind)))[0])
        out.append(v)
    return out


def with_rows(rng, aw, b, a, depth, repeat):
    """B, C and D of random columns for rows that are given."""
    ops = (4 if 8 in (width(a), width(b)) else 8) if b in INT else 2
    k = ops * depth
    rows = unpack(aw, a, repeat * k)
    bm = [[number(rng, b) for _ in range(8)] for _ in range(k)]
    cm = [[rng.randrange(-1000, 1000) for _ in range(8)] for _ in range(repeat)]
    columns = [pack([bm[e][j] for e in range(k)], b) for j in range(8)]
    bw = [columns[j][r] for r in range(len(columns[0])) for j in range(8)]
    value = (lambda v: v & 0xFFFFFFFF) if b in INT else (lambda v: bits_of(float(v), "f"))
    flat = lambda m: [value(v) for row in m for v in row]
    dm = [[cm[m][j] + sum(rows[m * k + e] * bm[e][j] for e in range(k)) for j in range(8)] for m in range(repeat)]
    return bw, flat(cm), flat(dm)
