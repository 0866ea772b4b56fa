"""Puts cases together into one `.visaasm` file test.

A kernel of 32 lanes loads its sources from surfaces, one for each type, runs each case on its own copy of
a destination that holds a pattern, and stores the destination. Three lanes of the thread do not exist, so
that the execution mask matters to `M5` and `M7` instructions."""

from exact import *

LANES = 32
ALIVE = 29
OUT = 20
PATTERN = 0xA5
DATA = {"b": "i8", "ub": "u8", "w": "i16", "uw": "u16", "d": "i32", "ud": "u32", "q": "i64", "uq": "u64",
        "hf": "f16", "bf": "bf16", "f": "f32", "df": "f64"}


def small(v):
    return str(v) if -1000 < v < 1000 else (hex(v) if v >= 0 else "-" + hex(-v))


class Src:
    """A source: lanes of the table of a type, an immediate, or a region."""

    def __init__(self, ty, table="A", mod="", imm=None, region="<1;1,0>", element=lambda i: i):
        self.ty, self.table, self.mod, self.imm = ty, table, mod, imm
        self.region, self.element = region, element

    def bits(self, i, tables):
        if self.imm is not None:
            if self.ty in ("v", "uv"):
                nibble = self.imm >> 4 * (i % 8) & 15
                return (nibble - 16) & 0xFFFF if self.ty == "v" and nibble > 7 else nibble
            if self.ty == "vf":
                return vf(self.imm >> 8 * (i % 4) & 255)
            return self.imm & ((1 << 8 * size(self.ty)) - 1)
        return tables[self.ty][self.table][self.element(i)]

    @property
    def own(self):
        return {"v": "w", "uv": "uw", "vf": "f"}.get(self.ty, self.ty)

    def number(self, i, tables):
        """Exact value with the modifier applied."""
        bits = self.bits(i, tables)
        if is_float(self.own):
            x = decode(bits, self.own)
            return {"": lambda x: x, "(-)": fneg, "(abs)": fabs, "(-abs)": lambda x: fneg(fabs(x))}[self.mod](x)
        x = wrap(bits, self.own)
        return {"": x, "(-)": -x, "(abs)": abs(x), "(-abs)": -abs(x), "(~)": ~x}[self.mod]

    def text(self):
        if self.imm is not None:
            return f"{self.imm:#x}:{self.ty}"
        return f"{self.mod}{self.ty.upper()}_{self.table}(0,0){self.region}"


def vf(byte):
    """An 8-bit restricted float as f bits."""
    x = Fraction(16 + (byte & 15), 16) * Fraction(2) ** ((byte >> 4 & 7) - 3)
    if byte & 0x7F == 0:
        x = Fraction(0)
    return encode(x, "f") | (byte & 0x80) << 24


class Case:
    def __init__(self, op, dst, srcs, result, sat=False, n=16, mask="M1", pred="", lanes=None, text=None, after=None,
                 stride=1, within=0):
        self.op, self.dst, self.srcs, self.result = op, dst, srcs, result
        self.sat, self.n, self.mask, self.pred = sat, n, mask, pred
        self.lanes, self.custom, self.after, self.stride = lanes, text, after, stride
        # Units in the last place that the result may differ by.
        self.within = within

    def enabled(self, i):
        at = 4 * (int(self.mask[1]) - 1) + i
        alive = "_NM" in self.mask or at < ALIVE
        bit = PREDICATE >> at & 1
        if self.pred.startswith("(P1)"):
            alive = alive and bit
        if self.pred.startswith("(!P1)"):
            alive = alive and not bit
        return alive and (self.lanes is None or self.lanes(i))

    def text(self):
        if self.custom:
            return self.custom
        sat = ".sat" if self.sat else ""
        pred = self.pred + " " if self.pred else ""
        srcs = " ".join(s.text() for s in self.srcs)
        return f"{pred}{self.op}{sat} ({self.mask}, {self.n}) OUT_{self.dst.upper()}(0,0)<{self.stride}> {srcs}"

    def count(self):
        return max(16, self.n * self.stride)

    def expected(self, tables):
        """Bits of the destination's elements."""
        pattern = int.from_bytes(bytes([PATTERN]) * size(self.dst), "little")
        out = [pattern] * self.count()
        for i in range(self.n):
            if self.enabled(i):
                out[i * self.stride] = self.result(i, self, tables)
        return out


PREDICATE = 0x5A3C96F1


def show(bits, t):
    """As the driver reads it; runs are folded."""
    words = []
    for b in bits:
        if t in INTS:
            w = small(wrap(b, t))
        else:
            w = f"{b:#x}"
        if words and words[-1][0] == w:
            words[-1][1] += 1
        else:
            words.append([w, 1])
    return " ".join(w if n == 1 else f"{w}*{n}" for w, n in words)


class Pair(Case):
    """Sixteen channels with two results each: the second ones follow from element 16."""

    def count(self):
        return 32

    def expected(self, tables):
        out = super().expected(tables)
        for i in range(self.n):
            if self.enabled(i):
                out[i], out[16 + i] = self.result(i, self, tables)
        return out


def write(path, title, cases, tables, platforms, cr0=0x4C0, decls=()):
    types = sorted({s.ty for c in cases for s in c.srcs if s.imm is None})
    used = sorted({(s.ty, s.table) for c in cases for s in c.srcs if s.imm is None})
    outs = sorted({c.dst for c in cases})
    lines = [f"// {title}", "// Written by tests/filetests/generate; expected values are exact arithmetic."]
    lines += [f"// platform: {platforms}", "// policy: zero", f"// global: {ALIVE}", f"// local: {ALIVE}"]
    for k, t in enumerate(types):
        rows = [tables[t][name] for name in "ABC"]
        flat = [b for row in rows for b in row]
        lines.append(f"// surface {k}: {DATA[t]}[{len(flat)}] = {show(flat, t)}")
    at, places = 0, []
    for c in cases:
        places.append(at)
        at += c.count() * size(c.dst) + -(c.count() * size(c.dst)) % 16
    lines.append(f"// surface {OUT}: u32[{at // 4}] = fill 0")
    for c, place in zip(cases, places):
        lines.append(f"//   {c.text()}")
        within = f" within {c.within}" if c.within else ""
        lines.append(f"// expect surface {OUT} at {place}{within}: {DATA[c.dst]}[{c.count()}] = {show(c.expected(tables), c.dst)}")
    lines += ["// faults: 0", ".version 4.1", ".kernel \"generated\"", f".kernel_attr SimdSize={LANES}"]
    for t, name in used:
        lines.append(f".decl {t.upper()}_{name} v_type=G type={t} num_elts={LANES} align=GRF")
    room = max(c.count() for c in cases)
    for t in outs:
        lines.append(f".decl OUT_{t.upper()} v_type=G type={t} num_elts={room} align=GRF")
        lines.append(f".decl RAW_{t.upper()} v_type=G type=ud num_elts={room * size(t) // 4} align=GRF alias=<OUT_{t.upper()}, 0>")
    lines += [".decl P1 v_type=P num_elts=32", ".decl P2 v_type=P num_elts=32", ".decl T6 v_type=T num_elts=1"]
    lines += decls
    body = [".function \"main\"", f"    or (M1_NM, 1) %cr0(0,0)<1> %cr0(0,0)<0;1,0> {cr0:#x}:ud",
            f"    setp (M1_NM, 32) P1 {PREDICATE:#x}:ud"]
    for t, name in used:
        k = types.index(t)
        owords = LANES * size(t) // 16
        body.append(f"    movs (M1_NM, 1) T6(0) {k:#x}:ud")
        body.append(f"    oword_ld ({owords}) T6 {'ABC'.index(name) * owords:#x}:ud {t.upper()}_{name}.0")
    body.append(f"    movs (M1_NM, 1) T6(0) {OUT:#x}:ud")
    for c, place in zip(cases, places):
        t, owords = c.dst, c.count() * size(c.dst) // 16
        dwords = owords * 4
        for start in range(0, dwords, 32):
            n = min(32, dwords - start)
            body.append(f"    mov (M1_NM, {n}) RAW_{t.upper()}(0,{start})<1> {int.from_bytes(bytes([PATTERN]) * 4, 'little'):#x}:ud")
        body.append(f"    {c.text()}")
        if c.after:
            body += [f"    {line}" for line in c.after]
        done = 0
        while done < owords:
            n = next(k for k in (16, 8, 4, 2, 1) if k <= owords - done)
            body.append(f"    oword_st ({n}) T6 {place // 16 + done:#x}:ud OUT_{t.upper()}.{16 * done}")
            done += n
    body.append("    ret (M1, 1)")
    with open(path, "w") as f:
        f.write("\n".join(lines + body) + "\n")
