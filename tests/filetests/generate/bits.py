"""File tests of bitwise instructions, comparisons, selections, predicates and address registers."""

from generate import *

# Both register sizes; the flow of the others is the same.
ALL = "skl pvc"
from kernel import ALIVE, PREDICATE, Pair

WORDS32 = [("d", "d", "d"), ("ud", "ud", "ud"), ("w", "w", "w"), ("uw", "uw", "uw"), ("ub", "ub", "ub"), ("b", "b", "b"),
           ("d", "w", "d"), ("uw", "ud", "ud")]
LONG = [("q", "q", "q"), ("uq", "uq", "uq"), ("q", "d", "q"), ("ud", "uq", "uq")]


def plain(op, dst, types, f, **kw):
    return Case(op, dst, [Src(t, "ABC"[k]) for k, t in enumerate(types)], exact_int(f), **kw)


def files():
    logic()
    shifts()
    counting()
    fields()
    comparisons()
    selections()
    predicates()
    pairs()
    addresses()


def logic():
    two = (("and", lambda x, y, c: x & y), ("or", lambda x, y, c: x | y), ("xor", lambda x, y, c: x ^ y))
    for op, f in two:
        for name, sets, platforms in (("int", WORDS32, ALL), ("quad", LONG, WITH64)):
            cases = []
            for dst, a, b in sets:
                cases.append(plain(op, dst, (a, b), f))
                if a == b == dst:
                    cases.append(Case(op, dst, [Src(a, "A", "(~)"), Src(b, "B")], exact_int(f)))
                    cases.append(Case(op, dst, [Src(a, "B"), Src(b, "C", "(~)")], exact_int(f)))
            if name == "int":
                cases += shapes(lambda **kw: plain(op, "d", ("d", "d"), f, **kw))
                cases.append(Case(op, "d", [Src("d", "A"), Src("d", imm=0xFF00FF)], exact_int(f)))
                cases.append(Case(op, "uw", [Src("uv", imm=0xFEDC8017), Src("uw", "B")], exact_int(f)))
            emit(f"{op}/{name}", "Bitwise logic.", cases, platforms)
    inverse = lambda x, c: ~x
    cases = [plain("not", d, (s,), inverse) for d, s in
             (("d", "d"), ("ud", "ud"), ("w", "w"), ("uw", "uw"), ("b", "b"), ("ub", "ub"), ("uw", "ud"))]
    cases += shapes(lambda **kw: plain("not", "ud", ("ud",), inverse, **kw))
    emit("not/int", "Complement.", cases)
    emit("not/quad", "Complement of quadwords.", [plain("not", t, (t,), inverse) for t in ("q", "uq")], WITH64)
    cases = []
    for function in (0x00, 0x01, 0x17, 0x6A, 0x80, 0x96, 0xAA, 0xCC, 0xD8, 0xE8, 0xF0, 0xFE):
        def f(x, y, z, c, function=function):
            bit = lambda v, k: v >> k & 1
            return sum((function >> (bit(x, k) | bit(y, k) << 1 | bit(z, k) << 2) & 1) << k for k in range(32))
        cases.append(plain(f"bfn.x{function:02x}", "ud", ("ud",) * 3, f))
        if function in (0xD8, 0x96):
            cases += shapes(lambda **kw: plain(f"bfn.x{function:02x}", "d", ("d",) * 3, f, **kw))
    emit("bfn/int", "Boolean functions by their truth tables.", cases)


def shifts():
    def right(arithmetic):
        def f(x, n, c):
            own = c.srcs[0].own
            wide = 8 in (size(c.dst), size(own))
            n &= 63 if wide else 31
            if arithmetic and INTS[own][1]:
                return x >> n
            return (x & ((1 << 8 * size(own)) - 1)) >> n
        return f
    sets = [("ud", "ud", "ud"), ("uw", "uw", "uw"), ("ub", "ub", "ub"), ("d", "d", "ud"), ("w", "w", "d"), ("ud", "uw", "b")]
    quads = [("uq", "uq", "ud"), ("q", "q", "uq"), ("uq", "ud", "ud"), ("d", "q", "ud")]
    for op, arithmetic in (("shr", False), ("asr", True)):
        f = right(arithmetic)
        cases = [plain(op, d, s, f) for d, *s in sets]
        cases += shapes(lambda **kw: plain(op, "d" if arithmetic else "ud", ("d", "ud") if arithmetic else ("ud", "ud"), f, **kw))
        cases.append(Case(op, "d", [Src("d", "B"), Src("uw", imm=5)], exact_int(f)))
        emit(f"{op}/int", "Shift right; the count is taken modulo 32.", cases)
        emit(f"{op}/quad", "Shift right of quadwords; modulo 64.", [plain(op, d, s, f) for d, *s in quads], WITH64)


def counting():
    low = lambda x: x & 0xFFFFFFFF

    def first_high(x, c):
        x = low(x)
        if INTS[c.srcs[0].own][1] and x >> 31:
            x = low(~x)
        return 32 - x.bit_length() if x else 0xFFFFFFFF
    table = {
        "cbit": (lambda x, c: bin(x & ((1 << 8 * size(c.srcs[0].own)) - 1)).count("1"), ["ud", "d", "uw", "w", "ub", "b"]),
        "fbl": (lambda x, c: (low(x) & -low(x)).bit_length() - 1 if low(x) else 0xFFFFFFFF, ["ud", "d", "uw"]),
        "fbh": (first_high, ["ud", "d"]),
        "lzd": (lambda x, c: 32 - low(x).bit_length(), ["ud", "d"]),
        "bfrev": (lambda x, c: int(f"{low(x):032b}"[::-1], 2), ["ud", "d"]),
    }
    for op, (f, types) in table.items():
        cases = [Case(op, "ud", [Src(t, k)], exact_int(f)) for t in types for k in "AB"]
        cases += shapes(lambda **kw: plain(op, "ud", ("ud",), f, **kw))
        emit(f"{op}/int", "Bits of a number.", cases)


def fields():
    def bfe(width, offset, x, c):
        width, offset = width & 31, offset & 31
        field = (x & 0xFFFFFFFF) >> offset & ((1 << width) - 1)
        signed = INTS[c.srcs[2].own][1]
        return field - (1 << width) if signed and width and field >> (width - 1) else field

    def bfi(width, offset, insert, base, c):
        width, offset = width & 31, offset & 31
        hole = ((1 << width) - 1) << offset & 0xFFFFFFFF
        return (base & ~hole) | (insert << offset & hole)
    small = lambda v: Src("ud", imm=v)
    cases = []
    for t in ("ud", "d"):
        cases.append(plain("bfe", t, (t,) * 3, bfe))
        for width, offset in ((0, 5), (1, 0), (4, 8), (8, 28), (31, 0), (16, 16), (33, 40)):
            cases.append(Case("bfe", t, [small(width), small(offset), Src(t, "B")], exact_int(bfe)))
    cases += shapes(lambda **kw: plain("bfe", "d", ("d",) * 3, bfe, **kw))
    emit("bfe/int", "Bit fields; width and offset are taken modulo 32.", cases)
    four = lambda t, **kw: Case("bfi", t, [Src(t, "A"), Src(t, "B"), Src(t, "C"), Src(t, "A")], exact_int(bfi), **kw)
    cases = [four("ud"), four("d")]
    for width, offset in ((0, 5), (1, 31), (4, 8), (8, 28), (31, 0), (16, 16), (33, 40)):
        cases.append(Case("bfi", "ud", [small(width), small(offset), Src("ud", "B"), Src("ud", "C")], exact_int(bfi)))
    cases += shapes(lambda **kw: four("ud", **kw))
    emit("bfi/int", "Insertion of bit fields.", cases)


HUGE = Fraction(10) ** 400


def ordered(x):
    """A number as a fraction that compares like it; None for a NaN."""
    if x == NAN:
        return None
    return {INF: HUGE, NINF: -HUGE, NZERO: Fraction(0)}.get(x, x) if isinstance(x, str) else x


CONDITIONS = {"eq": lambda x, y: x == y, "ne": lambda x, y: x != y, "gt": lambda x, y: x > y, "ge": lambda x, y: x >= y,
              "lt": lambda x, y: x < y, "le": lambda x, y: x <= y}


def holds(cond, c, i, tables):
    x, y = (ordered(s.number(i, tables)) for s in c.srcs)
    if x is None or y is None:
        return cond == "ne"
    return CONDITIONS[cond](x, y)


def to_predicate(first, truth, old=0x5555AAAA):
    """A case that runs an instruction with destination P2 and shows P2."""
    def bits(i, c, tables):
        out = 0
        for lane in range(32):
            at = lane - 4 * (int(first.mask[1]) - 1)
            if 0 <= at < first.n and first.enabled(at):
                out |= bool(truth(at, first, tables)) << lane
            else:
                out |= old & 1 << lane
        return out
    after = [first.text(), "mov (M1_NM, 1) OUT_UD(0,0)<1> P2"]
    return Case("mov", "ud", first.srcs, bits, n=1, mask="M1_NM", text=f"setp (M1_NM, 32) P2 {old:#x}:ud", after=after)


class ToP2(Case):
    def text(self):
        return super().text().replace(f"OUT_{self.dst.upper()}(0,0)<1>", "P2")


def comparisons():
    for name, types, platforms in (("int", ["d", "ud", "w", "ub"], ALL), ("quad", ["q", "uq"], WITH64), ("float", ["f", "hf"], ALL),
                                   ("double", ["df"], WITH64)):
        cases = []
        for k, t in enumerate(types):
            for j, cond in enumerate(CONDITIONS):
                truth = lambda i, c, tables, cond=cond: holds(cond, c, i, tables)
                mods = [("", ""), ("(-)", ""), ("", "(abs)"), ("(-abs)", "(-)")][(j + k) % 4]
                shape = [{}, {"n": 32}, {"mask": "M5"}, {"n": 8, "mask": "M7"}, {"n": 1}, {"n": 16, "mask": "M1_NM"}][(j + 2 * k) % 6]
                srcs = [Src(t, "A", mods[0]), Src(t, "B", mods[1])]
                cases.append(to_predicate(ToP2(f"cmp.{cond}", "ud", srcs, None, **shape), truth))
                if size(t) == 4:
                    ones = lambda i, c, tables, truth=truth: 0xFFFFFFFF if truth(i, c, tables) else 0
                    cases.append(Case(f"cmp.{cond}", "d" if t != "ud" else "ud", srcs, ones, **shape))
        emit(f"cmp/{name}", "Comparisons into predicates and registers; a NaN is unequal to all.", cases, platforms)


def selections():
    def sel(convert_to):
        def f(i, c, tables):
            at = 4 * (int(c.mask[1]) - 1) + i
            picked = bool(PREDICATE >> at & 1) == (c.choose == "(P1)")
            return convert_to(c.srcs[0 if picked else 1].number(i, tables), c)
        return f

    class Sel(Case):
        choose = "(P1)"

        def text(self):
            return f"{self.choose} {super().text()}"

    def case(choose, t, mods=("", ""), **kw):
        c = Sel("sel", t, [Src(t, "A", mods[0]), Src(t, "B", mods[1])], sel(store_int if t in INTS else store_float), **kw)
        c.choose = choose
        return c
    mods = [("", ""), ("(-)", "(abs)"), ("(-abs)", "")]
    for name, types, platforms in (("int", ["d", "ud", "w", "uw", "b", "ub"], ALL), ("quad", ["q", "uq"], WITH64),
                                   ("float", ["f", "hf"], ALL), ("double", ["df"], WITH64)):
        cases = [case(choose, t, m) for t in types for choose, m in zip(("(P1)", "(!P1)", "(P1)"), mods)]
        cases += [case("(P1)", t, sat=True) for t in types]
        if name == "int":
            cases += [c for c in shapes(lambda **kw: case("(P1)", "d", **kw)) if not c.pred]
        emit(f"sel/{name}", "Selection by a predicate, on every enabled channel.", cases, platforms)

    def least(op):
        def f(i, c, tables):
            x, y = (s.number(i, tables) for s in c.srcs)
            a, b = ordered(x), ordered(y)
            first = b is None or (a is not None and (a < b if op == "min" else a >= b))
            return (store_int if c.dst in INTS else store_float)(x if first else y, c)
        return f
    for op in ("min", "max"):
        for name, types, platforms in (("int", ["d", "ud", "w", "uw", "b", "ub"], ALL), ("quad", ["q", "uq"], WITH64),
                                       ("float", ["f", "hf"], ALL), ("double", ["df"], WITH64)):
            cases = []
            for t in types:
                for m in mods:
                    cases.append(Case(op, t, [Src(t, "A", m[0]), Src(t, "B", m[1])], least(op)))
                cases.append(Case(op, t, [Src(t, "B"), Src(t, "C")], least(op), sat=True))
            t = types[0]
            shaped = shapes(lambda **kw: Case(op, t, [Src(t, "A"), Src(t, "B")], least(op), **kw))
            cases += [c for c in shaped if not c.pred]
            emit(f"{op}/{name}", "The other operand if one is a NaN.", cases, platforms)


def predicates():
    cases = []
    for k, value in enumerate((0, 1, 0xFFFFFFFF, 0x12345678, 0x80000001)):
        first = ToP2("setp", "ud", [Src("ud", imm=value)], None, n=32, mask="M1_NM")
        cases.append(to_predicate(first, lambda i, c, tables, value=value: value >> i & 1))
    for t, shape in (("ud", {"n": 32}), ("uw", {"mask": "M5"}), ("d", {"n": 8, "mask": "M7"}), ("ub", {"n": 16, "mask": "M1_NM"})):
        first = ToP2("setp", "ud", [Src(t, "B")], None, **shape)
        cases.append(to_predicate(first, lambda i, c, tables: c.srcs[0].bits(i, tables) & 1))
    emit("setp/bits", "Bits of a scalar, or bit 0 of each channel.", cases)
    cases = []
    two = {"and": lambda x, y: x & y, "or": lambda x, y: x | y, "xor": lambda x, y: x ^ y}
    for op, f in two.items():
        for n, mask, lanes in ((32, "M1_NM", 0xFFFFFFFF), (16, "M1_NM", 0xFFFF), (16, "M5_NM", 0xFFFF0000), (32, "M1", (1 << ALIVE) - 1)):
            old = 0x0F0F3355
            value = f(PREDICATE, old) & lanes | old & ~lanes
            cases.append(Case("mov", "ud", [Src("ud", imm=0)], lambda i, c, tables, value=value & 0xFFFFFFFF: value, n=1, mask="M1_NM",
                              text=f"setp (M1_NM, 32) P2 {old:#x}:ud",
                              after=[f"{op} ({mask}, {n}) P2 P1 P2", "mov (M1_NM, 1) OUT_UD(0,0)<1> P2"]))
    for n, mask, lanes in ((32, "M1_NM", 0xFFFFFFFF), (16, "M5_NM", 0xFFFF0000)):
        value = ~PREDICATE & lanes | 0x0F0F3355 & ~lanes
        cases.append(Case("mov", "ud", [Src("ud", imm=0)], lambda i, c, tables, value=value & 0xFFFFFFFF: value, n=1, mask="M1_NM",
                          text="setp (M1_NM, 32) P2 0xf0f3355:ud",
                          after=[f"not ({mask}, {n}) P2 P1", "mov (M1_NM, 1) OUT_UD(0,0)<1> P2"]))
    emit("setp/logic", "Logic of predicates, on every enabled lane.", cases)


def pairs():
    low = lambda x: x & 0xFFFFFFFF

    class Two(Pair):
        def text(self):
            return super().text().replace("OUT_UD(0,0)<1>", "OUT_UD(0,0)<1> OUT_UD(0,16)<1>")
    for op, f in (("addc", lambda x, y: (low(x + y), (x + y) >> 32)), ("subb", lambda x, y: (low(x - y), int(x < y)))):
        result = lambda i, c, tables, f=f: f(*(low(s.number(i, tables)) for s in c.srcs))
        cases = [Two(op, "ud", [Src("ud", a), Src("ud", b)], result) for a, b in ("AB", "BC", "CA")]
        cases += [Two(op, "ud", [Src("ud", "A"), Src("ud", "B")], result, **kw) for kw in
                  ({"mask": "M5"}, {"n": 8, "mask": "M7"}, {"pred": "(P1)"}, {"n": 1}, {"pred": "(!P1)", "mask": "M5"}, {"mask": "M5_NM"})]
        cases += [Two(op, "ud", [Src("ud", "B"), Src("ud", imm=v)], result) for v in (1, 0xFFFFFFFF)]
        emit(f"{op}/int", "The result, and the carry or borrow.", cases)

    def madw(i, c, tables):
        x, y, z = (s.number(i, tables) for s in c.srcs)
        v = x * y + z & (1 << 64) - 1
        return low(v), v >> 32
    # The high dwords are in the next whole registers: element 16 for sixteen channels, whatever their size.
    cases = []
    for t in ("ud", "d"):
        cases += [Pair("madw", t, [Src(t, a), Src(t, b), Src(t, k)], madw) for a, b, k in ("ABC", "BCA", "CAB")]
        cases += [Pair("madw", t, [Src(t, "A"), Src(t, "B"), Src(t, "C")], madw, **kw) for kw in
                  ({"mask": "M5"}, {"pred": "(P1)"}, {"mask": "M5_NM"})]
    emit("madw/int", "64 bits of a product and sum: low dwords, then high ones.", cases)

    def dp4a(acc, x, y, c):
        byte = lambda v, k, s: wrap(v >> 8 * k, "b" if INTS[s.own][1] else "ub")
        return acc + sum(byte(x, k, c.srcs[1]) * byte(y, k, c.srcs[2]) for k in range(4))
    sets = [(d, a, b, k) for d in ("d", "ud") for a in ("d", "ud") for b in ("d", "ud") for k in ("d", "ud") if (a == d) or b == k]
    cases = [plain("dp4a", d, s, dp4a) for d, *s in sets] + [plain("dp4a", d, s, dp4a, sat=True) for d, *s in sets[:6]]
    cases += shapes(lambda **kw: plain("dp4a", "d", ("d",) * 3, dp4a, **kw))
    emit("dp4a/int", "Four byte products and a sum.", cases, "tgllp acm-g10 pvc")


def addresses():
    decls = [".decl A0 v_type=A num_elts=1", ".decl A1 v_type=A num_elts=16"]
    cases = []

    def case(t, start, offset, region, element, n=16, mask="M1", steps=None):
        # Bytes: where the address points, and the operand's own offset.
        at = (start + offset) // size(t)
        name = f"{t.upper()}_A"
        srcs = [Src(t, "A", element=lambda i: 0)]
        setup = [f"addr_add (M1_NM, 1) A0(0)<1> &{name} {start:#x}:uw"]
        if start > 16:
            setup = [f"addr_add (M1_NM, 1) A0(0)<1> &{name} 0x10:uw", f"addr_add (M1_NM, 1) A0(0)<1> A0(0)<1> {start - 16:#x}:uw"]
        where = f"r[A0(0),{offset}]{region}"
        result = lambda i, c, tables: tables[t]["A"][at + element(i)] if 0 <= at + element(i) < 32 else 0
        move = f"mov ({mask}, {n}) OUT_{t.upper()}(0,0)<1> {where}:{t}"
        return Case("mov", t, srcs, result, n=n, mask=mask, text=setup[0], after=setup[1:] + [move])
    for t in ("d", "uw", "ub"):
        cases.append(case(t, 0, 0, "<1;1,0>", lambda i: i))
        cases.append(case(t, 4 * size(t), size(t), "<1;1,0>", lambda i: i))
        cases.append(case(t, 24, -8, "<0;1,0>", lambda i: 0))
        cases.append(case(t, 20, 4, "<2;1,0>", lambda i: 2 * i, n=8))
        cases.append(case(t, 0, 0, "<4;2,1>", lambda i: i // 2 * 4 + i % 2, n=8, mask="M7"))

    def each(t, step):
        """An address for each channel."""
        setup = "mov (M1_NM, 8) OUT_UW(0,0)<1> 0x76543210:uv"
        after = ["add (M1_NM, 8) OUT_UW(0,8)<1> OUT_UW(0,0)<1;1,0> 0x8:uw",
                 f"mul (M1_NM, 16) OUT_UW(0,0)<1> OUT_UW(0,0)<1;1,0> {step * size(t):#x}:uw",
                 f"addr_add (M1_NM, 16) A1(0)<1> &{t.upper()}_A OUT_UW(0,0)<1;1,0>",
                 f"mov (M1, 16) OUT_{t.upper()}(0,0)<1> r[A1(0),{size(t)}]<1,0>:{t}"]
        result = lambda i, c, tables: tables[t]["A"][1 + step * i]
        return Case("mov", t, [Src(t, "A", element=lambda i: 0)], result, text=setup, after=after)
    cases += [each("d", 1), each("ub", 1)]
    # The pattern of a uw result is overwritten by the steps, so that there is none of it here.
    marker = Case("mov", "uw", [Src("uw", "A")], lambda i, c, tables: tables["uw"]["A"][i])
    emit("addr_add/reads", "Sources reached by address.", cases + [marker], decls=decls)
