"""File tests of roundings, roots, quotients and functions. The approximate ones are held to their stated bounds."""

import math

from generate import *

# Both register sizes; the flow of the others is the same.
ALL = "skl pvc"


def files():
    roundings()
    exact_ones()
    approximate()


def roundings():
    def rounding(f):
        def g(x):
            if isinstance(x, str):
                return x
            v = Fraction(f(x))
            return NZERO if v == 0 and x < 0 else v
        return g
    table = {"rndd": math.floor, "rndu": math.ceil, "rnde": round, "rndz": math.trunc}
    for op, f in table.items():
        g = rounding(f)
        cases = float_cases(op, g, [("f", "f")], shape=("f", "f"))
        cases += [Case(op, "f", [Src("f", k)], exact_float(g)) for k in "BC"]
        emit(f"{op}/float", "Rounding to an integer.", cases)

    def fraction(x):
        if isinstance(x, str):
            return fadd(x, fneg(x))
        return x - math.floor(x)
    cases = float_cases("frc", fraction, [("f", "f")], sat=False, shape=("f", "f"))
    emit("frc/float", "What is above the next lower integer.", cases)


def exact_ones():
    inverse = lambda x: fdiv(Fraction(1), x)
    for name, sets, platforms in (("float", [("f", "f"), ("hf", "hf"), ("f", "hf"), ("hf", "f")], ALL), ("double", [("df", "df")], WITH64)):
        emit(f"inv/{name}", "Reciprocals, correctly rounded.", float_cases("inv", inverse, sets, shape=sets[0]), platforms)
        root = lambda x, t=sets[0][0]: froot(x, t)
        emit(f"sqrt/{name}", "Square roots, correctly rounded.", float_cases("sqrt", root, sets, shape=sets[0]), platforms)
    for t, name in (("f", "float"), ("df", "double")):
        root = lambda x, t=t: froot(x, t)
        emit(f"sqrtm/{name}", "Square roots, correctly rounded.", float_cases("sqrtm", root, [(t, t)], sat=False, shape=(t, t)), WITH64)
        emit(f"divm/{name}", "Quotients, correctly rounded.", float_cases("divm", fdiv, [(t, t, t)], sat=False, shape=(t, t, t)), WITH64)


def approximate():
    """Arguments of their own: where the bound is stated, and the special ones."""
    special = lambda table: lambda x, f: table[x] if isinstance(x, str) else f(x)

    def real(f):
        def g(*xs):
            if NAN in xs:
                return NAN
            try:
                return Fraction(f(*(float(x) for x in xs)))
            except OverflowError:
                return INF
        return g
    exp = lambda x: {INF: INF, NINF: Fraction(0), NZERO: Fraction(1)}.get(x) if x in (INF, NINF, NZERO) else real(lambda v: 2.0 ** v)(x)
    log = lambda x: INF if x == INF else (NINF if x in (0, NZERO) else (NAN if negative(x) else real(math.log2)(x)))
    wave = lambda f: lambda x: NAN if x in (INF, NINF) else (x if x == NZERO and f is math.sin else real(f)(0 if x == NZERO else x))
    rsqrt = lambda x: Fraction(0) if x == INF else (INF if x == 0 else (NAN if negative(x) else real(lambda v: 1 / math.sqrt(v))(x)))
    power = real(lambda x, y: abs(x) ** y)
    rng = random.Random("functions")
    wide = lambda: [(rng.uniform(-20, 20)) for _ in range(32)]
    positive = lambda: [2.0 ** rng.uniform(-12, 12) for _ in range(32)]
    away = lambda: [v if abs(v - 1) > 0.2 else v + 2 for v in positive()]
    few = {"f": [0, 0x7F800000, 0xFF800000, 0x7FC00000], "hf": [0, 0x7C00, 0xFC00, 0x7E00]}
    table = {"exp": (exp, wide, 2), "log": (log, away, 2), "sin": (wave(math.sin), wide, 4), "cos": (wave(math.cos), wide, 4),
             "rsqrt": (rsqrt, positive, 1), "pow": (power, None, 16)}
    for op, (f, arguments, within) in table.items():
        saved = {t: TABLES[t] for t in ("f", "hf")}
        for t in saved:
            rows = {}
            for name in "ABC":
                values = (arguments or (positive if name == "A" else lambda: [rng.uniform(-3, 3) for _ in range(32)]))()
                row = [encode(Fraction(v), t) for v in values]
                if op != "pow" and name == "A":
                    row[:4] = few[t]
                rows[name] = row
            TABLES[t] = rows
        count = 2 if op == "pow" else 1
        result = lambda i, c, tables: store_float(f(*[s.number(i, tables) for s in c.srcs]), c)
        cases = []
        for t in ("f", "hf"):
            for names in ("AB", "BC", "CA") if op != "pow" else ("AB", "AC"):
                cases.append(Case(op, t, [Src(t, k) for k in names[:count]], result, within=within))
        srcs = [Src("f", k) for k in "AB"[:count]]
        cases.append(Case(op, "f", srcs, result, sat=True, within=within))
        cases += shapes(lambda **kw: Case(op, "f", srcs, result, within=within, **kw))
        emit(f"{op}/float", f"Within {within} units in the last place.", cases)
        TABLES.update(saved)
