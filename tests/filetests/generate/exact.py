"""Exact numbers for expected results: integers, and floats as fractions rounded once."""

from fractions import Fraction
from math import isqrt

# name: (bytes, signed) of integers
INTS = {
    "b": (1, True), "ub": (1, False), "w": (2, True), "uw": (2, False),
    "d": (4, True), "ud": (4, False), "q": (8, True), "uq": (8, False),
}
# name: (bytes, mantissa bits without the hidden one, exponent bits)
FLOATS = {"hf": (2, 10, 5), "bf": (2, 7, 8), "f": (4, 23, 8), "df": (8, 52, 11)}

NAN = "nan"
INF, NINF = "inf", "-inf"
NZERO = "-0"


def size(t):
    return (INTS.get(t) or FLOATS[t])[0]


def is_float(t):
    return t in FLOATS


def int_range(t):
    n, signed = INTS[t]
    bits = 8 * n
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)


def wrap(v, t):
    n, signed = INTS[t]
    v &= (1 << (8 * n)) - 1
    return v - (1 << (8 * n)) if signed and v >> (8 * n - 1) else v


def clamp(v, t):
    lo, hi = int_range(t)
    return max(lo, min(hi, v))


# A float is NAN, INF, NINF, NZERO or a Fraction.

def decode(bits, t):
    n, m, e = FLOATS[t]
    sign = bits >> (8 * n - 1)
    exp = (bits >> m) & ((1 << e) - 1)
    man = bits & ((1 << m) - 1)
    bias = (1 << (e - 1)) - 1
    if exp == (1 << e) - 1:
        return NAN if man else (NINF if sign else INF)
    if exp == 0:
        v = Fraction(man) * Fraction(2) ** (1 - bias - m)
    else:
        v = Fraction((1 << m) + man) * Fraction(2) ** (exp - bias - m)
    if v == 0:
        return NZERO if sign else Fraction(0)
    return -v if sign else v


def negative(x):
    return x in (NINF, NZERO) if isinstance(x, str) else x < 0


def value(x):
    return Fraction(0) if x == NZERO else x


def encode(x, t, mode="rne", keep=True):
    """Bits of `x` rounded once to `t`."""
    n, m, e = FLOATS[t]
    bias = (1 << (e - 1)) - 1
    top = ((1 << e) - 1) << m
    if x == NAN:
        return top | 1 << (m - 1)
    s = 1 if negative(x) else 0
    sign = s << (8 * n - 1)
    if x in (INF, NINF):
        return sign | top
    v = abs(value(x))
    if v == 0:
        return sign
    # exponent with 2^k <= v < 2^(k+1)
    k = v.numerator.bit_length() - v.denominator.bit_length()
    if Fraction(2) ** k > v:
        k -= 1
    k = max(k, 1 - bias)
    q = v / Fraction(2) ** (k - m)
    whole, rest = divmod(q.numerator, q.denominator)
    twice = 2 * rest - q.denominator
    up = {
        "rne": twice > 0 or (twice == 0 and whole & 1),
        "rz": False,
        "ru": rest != 0 and not s,
        "rd": rest != 0 and s,
    }[mode]
    whole += bool(up)
    if whole >> (m + 1):
        whole >>= 1
        k += 1
    if k > bias:
        away = {"rne": True, "rz": False, "ru": not s, "rd": bool(s)}[mode]
        return sign | (top if away else top - 1)
    if whole < 1 << m:
        return sign | (whole if keep else 0)
    return sign | (k + bias) << m | (whole & ((1 << m) - 1))


def rounded(x, t, mode="rne", keep=True):
    return decode(encode(x, t, mode, keep), t)


def fneg(x):
    table = {NAN: NAN, INF: NINF, NINF: INF, NZERO: Fraction(0)}
    if isinstance(x, str):
        return table[x]
    return NZERO if x == 0 else -x


def fabs(x):
    return fneg(x) if negative(x) else x


def fadd(x, y, mode="rne"):
    """Exact sum."""
    if NAN in (x, y) or {x, y} == {INF, NINF}:
        return NAN
    for inf in (INF, NINF):
        if inf in (x, y):
            return inf
    s = value(x) + value(y)
    if s == 0:
        both = negative(x) and negative(y)
        opposite = negative(x) != negative(y)
        if both or (opposite and mode == "rd"):
            return NZERO
        return Fraction(0)
    return s


def fmul(x, y):
    """Exact product."""
    if NAN in (x, y):
        return NAN
    neg = negative(x) != negative(y)
    infinite = x in (INF, NINF) or y in (INF, NINF)
    if infinite:
        if any(not isinstance(v, str) and v == 0 or v == NZERO for v in (x, y)):
            return NAN
        return NINF if neg else INF
    p = value(x) * value(y)
    return NZERO if p == 0 and neg else p


def fdiv(x, y):
    """Exact quotient."""
    if NAN in (x, y):
        return NAN
    neg = negative(x) != negative(y)
    xi, yi = x in (INF, NINF), y in (INF, NINF)
    if xi and yi:
        return NAN
    if xi:
        return NINF if neg else INF
    if yi:
        return NZERO if neg else Fraction(0)
    x, y = value(x), value(y)
    if y == 0:
        return NAN if x == 0 else (NINF if neg else INF)
    q = x / y
    return NZERO if q == 0 and neg else q


def froot(x, t):
    """Square root to twice the precision of `t`, odd in the last place where it is not exact."""
    if x in (NAN, NZERO, INF):
        return x
    if negative(x):
        return NAN
    if x == 0:
        return x
    shift = 1200
    scaled = x * (1 << (2 * shift))
    whole = scaled.numerator // scaled.denominator
    r = isqrt(whole)
    exact = Fraction(r * r) == scaled
    return Fraction(2 * r + (0 if exact else 1), 1 << (shift + 1))


def to_int(x, t):
    """Float to integer: truncate, clamp, NaN gives 0."""
    lo, hi = int_range(t)
    if x == NAN:
        return 0
    if x in (INF, NINF):
        return hi if x == INF else lo
    x = value(x)
    whole = abs(x).numerator // abs(x).denominator
    return clamp(-whole if x < 0 else whole, t)


def unit(x):
    """`.sat` of a float: 0 … 1, NaN and zeros give 0."""
    if x == NAN or negative(x) or x == 0:
        return Fraction(0)
    return Fraction(1) if x == INF or x > 1 else x
