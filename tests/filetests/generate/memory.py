"""File tests of surface and 64-bit address messages: a row of results for each message, from a model of two surfaces."""

import os

from generate import ROOT

LANES = 16
IN = [(0x04030201 + j * 0x0A080604) & 0xFFFFFFFF for j in range(128)]
INBYTES = b"".join(v.to_bytes(4, "little") for v in IN)
SEED = 7
HEAD = """.decl W v_type=G type=uw num_elts=16 align=GRF
.decl ID v_type=G type=ud num_elts=16 align=GRF
.decl OFF v_type=G type=ud num_elts=16 align=GRF
.decl D v_type=G type=ud num_elts=64 align=GRF
.decl S v_type=G type=ud num_elts=16 align=GRF
.decl V v_type=G type=ud num_elts=64 align=GRF
.decl Q v_type=G type=uq num_elts=16 align=GRF
.decl B v_type=G type=uq num_elts=1 align=GRF
.decl IN v_type=G type=uq num_elts=1 align=GRF
.decl OUT v_type=G type=uq num_elts=1 align=GRF
.decl P1 v_type=P num_elts=16
.decl T6 v_type=T num_elts=1
.decl T7 v_type=T num_elts=1
.input IN offset=256 size=8
.input OUT offset=264 size=8
.function "main"
    movs (M1_NM, 1) T6(0) 0x0:ud
    movs (M1_NM, 1) T7(0) 0x1:ud
    mov (M1_NM, 8) W(0,0)<1> 0x76543210:uv
    add (M1_NM, 8) W(0,8)<1> W(0,0)<1;1,0> 0x8:uw
    mov (M1_NM, 16) ID(0,0)<1> W(0,0)<1;1,0>"""
MASK = 0x9AF1


class File:
    """Messages of one opcode; each has 256 bytes of the output surface."""

    def __init__(self, name, title, platforms="skl pvc"):
        self.name, self.title, self.platforms = name, title, platforms
        self.body, self.rows, self.decls = [], [], []

    def row(self, lines, out):
        """`out` turns the bytes of the row into what they are afterwards. `@` in a line is where the row starts."""
        at = 256 * len(self.rows)
        memory = bytearray(SEED.to_bytes(4, "little") * 64)
        out(memory)
        self.rows.append(memory)
        for line in lines:
            self.body.append("    " + line.replace("@", f"{at:#x}"))

    def load(self, lines, values, size=4):
        """A load into V, of which the first values are shown."""
        def out(memory):
            flat = b"".join((v & ((1 << 8 * size) - 1)).to_bytes(size, "little") for v in values)
            memory[:len(flat)] = flat
            memory[len(flat):] = (0xA5A5A5A5).to_bytes(4, "little") * ((256 - len(flat)) // 4)
        clear = [f"mov (M1_NM, 16) V(0,{k})<1> 0xa5a5a5a5:ud" for k in range(0, 64, 16)]
        at = 16 * len(self.rows)
        store = [f"oword_st (8) T7 {at + k:#x}:ud V.{16 * k}" for k in (0, 8)]
        self.row(clear + lines + store, out)

    def write(self):
        os.makedirs(os.path.join(ROOT, self.name), exist_ok=True)
        words = lambda m: " ".join(hex(int.from_bytes(m[k:k + 4], "little")) for k in range(0, 256, 4))
        lines = [f"// {self.title}", "// Written by tests/filetests/generate, from a model of memory.", f"// platform: {self.platforms}",
                 "// policy: zero", f"// global: {LANES}", f"// local: {LANES}",
                 f"// surface 0: u32[{len(IN)}] = {' '.join(map(hex, IN))}", f"// surface 1: u32[{64 * len(self.rows)}] = fill {SEED}",
                 "// input IN: address 0", "// input OUT: address 1"]
        for k, memory in enumerate(self.rows):
            lines.append(f"// expect surface 1 at {256 * k}: u32[64] = {words(memory)}")
        lines += ["// faults: 0", ".version 4.1", ".kernel \"generated\"", f".kernel_attr SimdSize={LANES}",
                  HEAD.replace(".input IN", "\n".join(self.decls + [".input IN"]), 1)]
        with open(os.path.join(ROOT, self.name, "messages.visaasm"), "w") as f:
            f.write("\n".join(lines + self.body + ["    ret (M1, 1)"]) + "\n")


def offsets(step, turn, base=0):
    """`OFF = ((ID * turn) & 15) * step`, and the same here. Odd turns are permutations."""
    lines = [f"mul (M1_NM, 16) OFF(0,0)<1> ID(0,0)<1;1,0> {turn:#x}:ud", "and (M1_NM, 16) OFF(0,0)<1> OFF(0,0)<1;1,0> 0xf:ud",
             f"mul (M1_NM, 16) OFF(0,0)<1> OFF(0,0)<1;1,0> {step:#x}:ud"]
    if base:
        lines.append(f"add (M1_NM, 16) OFF(0,0)<1> OFF(0,0)<1;1,0> {base:#x}:ud")
    return lines, [(i * turn & 15) * step + base for i in range(LANES)]


def data(first, count=16):
    """`D` with numbers, and the same here."""
    lines = []
    for k in range(0, count, 16):
        lines += [f"mul (M1_NM, 16) D(0,{k})<1> ID(0,0)<1;1,0> 0x1030507:ud",
                  f"add (M1_NM, 16) D(0,{k})<1> D(0,{k})<1;1,0> {first + 0x11111 * k:#x}:ud"]
    return lines, [(i % 16 * 0x1030507 + first + 0x11111 * (i - i % 16)) & 0xFFFFFFFF for i in range(count)]


def flat(base, step, turn, at="@"):
    """`Q` with addresses from a surface on."""
    lines, off = offsets(step, turn)
    add = at if base == "OUT" else hex(at)
    return lines + ["mov (M1_NM, 16) Q(0,0)<1> OFF(0,0)<1;1,0>", f"add (M1_NM, 16) Q(0,0)<1> Q(0,0)<1;1,0> {base}(0,0)<0;1,0>",
                    f"add (M1_NM, 16) Q(0,0)<1> Q(0,0)<1;1,0> {add}:ud"], off


def read(at, n):
    return int.from_bytes(INBYTES[at:at + n], "little")


def put(memory, at, v, n):
    memory[at:at + n] = (v & ((1 << 8 * n) - 1)).to_bytes(n, "little")


SIZES = [(1, 3), (2, 5), (4, 7), (1, 1), (2, 0), (4, 15), (4, 1), (1, 9), (2, 11), (4, 13), (4, 0), (1, 15)]


def files():
    surfaces()
    addresses()
    atomics()
    fences()


def surfaces():
    f = File("gather", "Offsets in elements.")
    g = File("scatter", "Offsets in elements.")
    for k, (n, turn) in enumerate(SIZES):
        lines, off = offsets(1, turn)
        f.load(lines + [f"gather.{n} (M1, 16) T6 {k:#x}:ud OFF.0 V.0"], [read((k + o) * n, n) for o in off])
        turn |= 1
        lines, off = offsets(1, turn)
        more, values = data(0x2030405 * k)
        start = 256 * len(g.rows) // n
        g.row(lines + more + [f"scatter.{n} (M1, 16) T7 {start + k:#x}:ud OFF.0 D.0"],
              lambda m: [put(m, (k + o) * n, v, n) for o, v in zip(off, values)])
    f.write()
    g.write()
    f = File("gather_scaled", "Offsets in bytes; masked channels keep their bytes.")
    g = File("scatter_scaled", "Offsets in bytes; masked channels do not store.")
    for k, (n, turn) in enumerate(SIZES):
        guard, on = [("", 0xFFFF), ("(P1) ", MASK), ("(!P1) ", ~MASK)][k % 3]
        setp = [f"setp (M1_NM, 16) P1 {MASK:#x}:ud"]
        lines, off = offsets(n, turn)
        f.load(setp + lines + [f"{guard}gather_scaled.{n} (M1, 16) T6 {4 * k:#x}:ud OFF.0 V.0"],
               [read(4 * k + o, n) if on >> i & 1 else 0xA5A5A5A5 for i, o in enumerate(off)])
        lines, off = offsets(n, turn | 1)
        more, values = data(0x1020304 * k)
        g.row(setp + lines + more + [f"{guard}scatter_scaled.{n} (M1, 16) T7 @:ud OFF.0 D.0"],
              lambda m: [put(m, o, v, n) for i, (o, v) in enumerate(zip(off, values)) if on >> i & 1])
    f.write()
    g.write()
    f = File("gather4_scaled", "Channels from a new register on each.")
    g = File("scatter4_scaled", "Channels from a new register on each; a gap in the set is a gap in memory.")
    sets = ["R", "G", "RG", "RB", "RGBA", "A", "GA", "RGB", "BA", "B", "GBA", "RA"]
    for k, channels in enumerate(sets):
        guard, on = [("", 0xFFFF), ("(P1) ", MASK)][k % 2]
        setp = [f"setp (M1_NM, 16) P1 {MASK:#x}:ud"]
        lines, off = offsets(16, 2 * k + 1)
        at = [4 * "RGBA".index(c) for c in channels]
        f.load(setp + lines + [f"{guard}gather4_scaled.{channels} (M1, 16) T6 {4 * k:#x}:ud OFF.0 V.0"],
               [read(4 * k + o + a, 4) if on >> i & 1 else 0xA5A5A5A5 for a in at for i, o in enumerate(off)])
        more, values = data(0x10203 * k, 64)
        g.row(setp + lines + more + [f"{guard}scatter4_scaled.{channels} (M1, 16) T7 @:ud OFF.0 D.0"],
              lambda m: [put(m, o + a, values[16 * j + i], 4) for j, a in enumerate(at) for i, o in enumerate(off) if on >> i & 1])
    f.write()
    g.write()
    f = File("oword_ld_unaligned", "Blocks from any dword.")
    for k in range(12):
        n = (1, 2, 4, 8)[k % 4]
        f.load([f"oword_ld_unaligned ({n}) T6 {20 * k + 4:#x}:ud V.0"], [read(20 * k + 4 + 4 * j, 4) for j in range(4 * n)])
    f.write()


def addresses():
    f = File("svm_block_ld", "Blocks of owords.")
    g = File("svm_block_st", "Blocks of owords.")
    for k in range(12):
        n = (1, 2, 4, 8)[k % 4]
        add = lambda base, at: [f"add (M1_NM, 1) B(0,0)<1> {base}(0,0)<0;1,0> {at}:ud"]
        f.load(add("IN", hex(16 * k)) + [f"svm_block_ld ({n}) B(0,0)<0;1,0> V.0"], [read(16 * k + 4 * j, 4) for j in range(4 * n)])
        more, values = data(0x345 * k, 32)
        g.row(more + add("OUT", "@") + [f"svm_block_st ({n}) B(0,0)<0;1,0> D.0"],
              lambda m: [put(m, 4 * j, values[j], 4) for j in range(4 * n)])
    f.write()
    g.write()
    f = File("svm_gather", "One, four or eight bytes, and how many.")
    g = File("svm_scatter", "One, four or eight bytes, and how many.")
    kinds = [(4, 1), (1, 1), (1, 2), (1, 4), (4, 2), (8, 1)]
    for k in range(12):
        n, blocks = kinds[k % 6]
        guard, on = [("", 0xFFFF), ("(P1) ", MASK)][k // 6]
        setp = [f"setp (M1_NM, 16) P1 {MASK:#x}:ud"]
        # Bytes of one channel are together in its dword; others are rows of channels.
        size, parts = (blocks, 1) if n == 1 else (n, blocks)
        register = max(4, size)
        lines, off = flat("IN", n * blocks, 2 * k + 1, 8 * k)
        old = 0xA5A5A5A5A5A5A5A5
        values = [read(8 * k + o + p * n, size) if on >> i & 1 else old for p in range(parts) for i, o in enumerate(off)]
        f.load(setp + lines + [f"{guard}svm_gather.{n}.{blocks} (M1, 16) Q.0 V.0"], values, register)
        lines, off = flat("OUT", n * blocks, 2 * k + 1)
        more, words = data(0x10305 * k, 32)
        value = lambda e: words[e] if register == 4 else words[2 * e] | words[2 * e + 1] << 32
        g.row(setp + lines + more + [f"{guard}svm_scatter.{n}.{blocks} (M1, 16) Q.0 D.0"],
              lambda m: [put(m, o + p * n, value(16 * p + i), size) for p in range(parts) for i, o in enumerate(off) if on >> i & 1])
    f.write()
    g.write()
    f = File("svm_gather4scaled", "A base, and an offset in bytes for each channel.")
    g = File("svm_scatter4scaled", "A base, and an offset in bytes for each channel.")
    for k, channels in enumerate(["R", "RG", "RGB", "RGBA", "B", "GA", "RB", "A", "BA", "RA", "G", "GB"]):
        lines, off = offsets(16, 2 * k + 1)
        at = [4 * "RGBA".index(c) for c in channels]
        f.load(lines + [f"add (M1_NM, 1) B(0,0)<1> IN(0,0)<0;1,0> {4 * k:#x}:ud", f"svm_gather4scaled.{channels} (M1, 16) B(0,0)<0;1,0> OFF.0 V.0"],
               [read(4 * k + o + a, 4) for a in at for o in off])
        more, values = data(0x333 * k, 64)
        g.row(lines + more + ["add (M1_NM, 1) B(0,0)<1> OUT(0,0)<0;1,0> @:ud", f"svm_scatter4scaled.{channels} (M1, 16) B(0,0)<0;1,0> OFF.0 D.0"],
              lambda m: [put(m, o + a, values[16 * j + i], 4) for j, a in enumerate(at) for i, o in enumerate(off)])
    f.write()
    g.write()


def atomics():
    low = lambda v: v & 0xFFFFFFFF
    signed = lambda v: v - (1 << 32) if v >> 31 else v
    # New contents from old ones and the sources; how many sources.
    table = [("add", lambda o, x, y: o + x, 1), ("sub", lambda o, x, y: o - x, 1), ("inc", lambda o, x, y: o + 1, 0),
             ("dec", lambda o, x, y: o - 1, 0), ("and", lambda o, x, y: o & x, 1), ("or", lambda o, x, y: o | x, 1),
             ("xor", lambda o, x, y: o ^ x, 1), ("xchg", lambda o, x, y: x, 1), ("min", lambda o, x, y: min(o, x), 1),
             ("max", lambda o, x, y: max(o, x), 1), ("minsint", lambda o, x, y: min(o, x, key=signed), 1),
             ("maxsint", lambda o, x, y: max(o, x, key=signed), 1), ("cmpxchg", lambda o, x, y: x if o == y else o, 2)]
    f = File("dword_atomic", "The old value, and what memory holds afterwards.")
    g = File("svm_atomic", "The old value, and what memory holds afterwards.")
    # Data of the signed operations are of that type.
    f.decls = [f".decl {v}I v_type=G type=d num_elts=64 align=GRF alias=<{v}, 0>" for v in "DV"]
    for k, (name, new, count) in enumerate(table):
        # Half of the second sources are what memory holds.
        setup = ["mov (M1_NM, 16) S(0,0)<1> ID(0,0)<1;1,0>", f"mov (M1_NM, 8) S(0,4)<1> {SEED:#x}:ud",
                 "mov (M1_NM, 16) V(0,0)<1> 0xa5a5a5a5:ud"]
        seconds = [SEED if 4 <= i < 12 else i for i in range(LANES)]
        more, values = data(0xFE000001 + k)
        a = "D.0" if count > 0 else "%null.0"
        b = "S.0" if count > 1 else "%null.0"
        turn = 2 * k + 1

        def out(m, olds=True):
            for i in range(LANES):
                put(m, 4 * (i * turn & 15), low(new(SEED, values[i], seconds[i])), 4)
                put(m, 64 + 4 * i, SEED, 4)
        lines, _ = offsets(4, turn, 256 * len(f.rows))
        show = [f"oword_st (4) T7 {16 * len(f.rows) + 4:#x}:ud V.0"]
        typed = (a.replace("D", "DI"), "VI.0") if name.endswith("sint") else (a, "V.0")
        f.row(setup + more + lines + [f"dword_atomic.{name} (M1, 16) T7 OFF.0 {typed[0]} {b} {typed[1]}"] + show, out)
        lines, _ = flat("OUT", 4, turn)
        g.row(setup + more + lines + [f"svm_atomic.{name} (M1, 16) Q.0 V.0 {a} {b}"] + show, out)
    f.write()
    g.write()


def fences():
    f = File("lsc_fence", "Fences order memory and change nothing.", "acm-g10 pvc")
    kinds = [("ugm", "none", "group"), ("ugm", "invalidate", "gpu"), ("slm", "none", "group"), ("ugm", "evict", "gpu")]
    for k in range(12):
        more, values = data(0x777 * k)
        at = 16 * len(f.rows)
        f.row(more + [f"oword_st (4) T7 {at:#x}:ud D.0", f"lsc_fence.{'.'.join(kinds[k % 4])}", f"oword_ld (4) T7 {at:#x}:ud V.0",
                      f"oword_st (4) T7 {at + 4:#x}:ud V.0"],
              lambda m: [put(m, 64 * j + 4 * i, values[i], 4) for j in range(2) for i in range(LANES)])
    f.write()
