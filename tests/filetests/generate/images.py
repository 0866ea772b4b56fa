"""File tests of typed surfaces: texels of many formats, atomics, blocks of rows."""

import os
import random
import struct

FORMATS = ["rgba8unorm", "rg8snorm", "r8int", "rgba8uint", "rg16unorm", "r16snorm", "rgba16int", "rg16uint", "r32int",
           "rgba32float", "r16float", "rg32uint"]
WIDTH, HEIGHT = 6, 2
HEAD = """.version 4.1
.kernel "{name}"
.kernel_attr SimdSize=8
.decl LANE v_type=G type=uw num_elts=8 align=GRF
.decl U v_type=G type=ud num_elts=8 align=GRF
.decl V v_type=G type=ud num_elts=8 align=GRF
.decl A v_type=G type=ud num_elts=8 align=GRF
.decl B v_type=G type=ud num_elts=8 align=GRF
.decl D v_type=G type=ud num_elts=32 align=GRF
.decl T6 v_type=T num_elts=1
.decl T7 v_type=T num_elts=1
.function "main"
    mov (M1_NM, 8) LANE(0,0)<1> 0x76543210:v
    mov (M1_NM, 8) U(0,0)<1> LANE(0,0)<1;1,0>
    and (M1_NM, 8) V(0,0)<1> U(0,0)<1;1,0> 0x1:ud
    movs (M1_NM, 1) T7(0) 0x20:ud
"""


class Format:
    def __init__(self, name):
        digits = "".join(c for c in name if c.isdigit())
        self.name = name
        self.channels = len(name.split(digits)[0])
        self.bits = int(digits)
        self.kind = name.split(digits)[1]

    @property
    def texel(self):
        return self.channels * self.bits // 8

    def value(self, raw):
        """Bits of the dword that a channel is read as."""
        signed = raw - (1 << self.bits) if raw >> (self.bits - 1) else raw
        if self.kind == "uint":
            return raw
        if self.kind == "int":
            return signed & 0xFFFFFFFF
        if self.kind == "float":
            number = struct.unpack("<e" if self.bits == 16 else "<f", raw.to_bytes(self.bits // 8, "little"))[0]
        elif self.kind == "unorm":
            number = raw / ((1 << self.bits) - 1)
        else:
            number = max(signed / ((1 << self.bits - 1) - 1), -1.0)
        return single(number)

    def raw(self, value):
        """Bits of the channel that a dword is written as."""
        whole = value - (1 << 32) if value >> 31 else value
        top, least = (1 << self.bits) - 1, -(1 << self.bits - 1)
        if self.kind == "uint":
            return min(value, top)
        if self.kind == "int":
            return min(max(whole, least), -least - 1) & top
        number = struct.unpack("<f", value.to_bytes(4, "little"))[0]
        if self.kind == "float":
            return int.from_bytes(struct.pack("<e" if self.bits == 16 else "<f", number), "little")
        if self.kind == "unorm":
            return round(min(max(number, 0.0), 1.0) * top)
        return round(min(max(number, -1.0), 1.0) * (-least - 1)) & top

    def random(self, rng):
        if self.kind == "float":
            return self.raw(single(rng.uniform(-4, 4)))
        return rng.getrandbits(self.bits)

    @property
    def one(self):
        return 1 if "int" in self.kind else 0x3F800000


def single(number):
    return int.from_bytes(struct.pack("<f", number), "little")


def dwords(values):
    return " ".join(f"{v:#x}" if v > 999 else str(v) for v in values)


def octets(raws, bits):
    return [b for raw in raws for b in raw.to_bytes(bits // 8, "little")]


def file(root, folder, name, directives, body):
    os.makedirs(os.path.join(root, folder), exist_ok=True)
    text = ["// platform: skl tgllp", "// global: 8"] + ["// " + d for d in directives]
    text = "\n".join(text) + "\n" + HEAD.format(name=name) + "".join(f"    {line}\n" for line in body)
    with open(os.path.join(root, folder, name + ".visaasm"), "w") as out:
        out.write(text + "    ret (M1, 1)\n")


def image(index, f, raws):
    data = octets(raws, f.bits)
    return f"image {index} image2d {f.name} {WIDTH}x{HEIGHT}: u8[{len(data)}] = " + " ".join(map(str, data))


def reads(root, rng):
    directives, body = [], []
    for k, f in enumerate(map(Format, FORMATS)):
        raws = [f.random(rng) for _ in range(WIDTH * HEIGHT * f.channels)]
        directives.append(image(k, f, raws))
        want = []
        for c in range(4):
            for lane in range(8):
                missing = f.one if c == 3 else 0
                inside = lane < WIDTH and c < f.channels
                want.append(f.value(raws[((lane & 1) * WIDTH + lane) * f.channels + c]) if inside else missing)
        directives.append(f"expect surface 32 at {128 * k}: u32[32] = {dwords(want)}")
        body += [f"movs (M1_NM, 1) T6(0) {k:#x}:ud", "gather4_typed.RGBA (M1, 8) T6 U.0 V.0 %null.0 %null.0 D.0",
                 f"oword_st (8) T7 {8 * k:#x}:ud D.0"]
    count = len(FORMATS)
    directives.append(f"surface 32: u32[{32 * count}] = fill 0")
    directives.append(f"faults: {2 * count} lane=6 opcode=gather4_typed address=0x6 bytes=16")
    file(root, "gather4_typed", "formats", directives, body)


def writes(root, rng):
    directives, body, values = [], [], []
    for k, f in enumerate(map(Format, FORMATS)):
        raws = [f.random(rng) for _ in range(WIDTH * HEIGHT * f.channels)]
        directives.append(image(k, f, raws))
        if "int" in f.kind:
            texels = [[rng.getrandbits(32) >> rng.randrange(32) for _ in range(8)] for _ in range(4)]
        else:
            texels = [[single(rng.uniform(-2, 2)) for _ in range(8)] for _ in range(4)]
        for lane in range(WIDTH):
            for c in range(f.channels):
                raws[((lane & 1) * WIDTH + lane) * f.channels + c] = f.raw(texels[c][lane])
        values += sum(texels, [])
        data = octets(raws, f.bits)
        directives.append(f"expect surface {k}: u8[{len(data)}] = " + " ".join(map(str, data)))
        body += [f"movs (M1_NM, 1) T6(0) {k:#x}:ud", f"oword_ld (8) T7 {8 * k:#x}:ud D.0",
                 "scatter4_typed.RGBA (M1, 8) T6 U.0 V.0 %null.0 %null.0 D.0"]
    directives.append(f"surface 32: u32[{len(values)}] = {dwords(values)}")
    directives.append(f"faults: {2 * len(FORMATS)} lane=6 opcode=scatter4_typed address=0x6 bytes=16")
    file(root, "scatter4_typed", "formats", directives, body)


def wrap(v):
    return v & 0xFFFFFFFF


def signed(v):
    return v - (1 << 32) if v >> 31 else v


ATOMICS = {
    "add": lambda o, a, b: o + a, "sub": lambda o, a, b: o - a, "inc": lambda o, a, b: o + 1, "dec": lambda o, a, b: o - 1,
    "min": lambda o, a, b: min(o, a), "max": lambda o, a, b: max(o, a), "xchg": lambda o, a, b: a,
    "cmpxchg": lambda o, a, b: a if o == b else o, "and": lambda o, a, b: o & a, "or": lambda o, a, b: o | a,
    "xor": lambda o, a, b: o ^ a, "minsint": lambda o, a, b: min(signed(o), signed(a)),
    "maxsint": lambda o, a, b: max(signed(o), signed(a)),
}


def atomics(root, rng):
    count = len(ATOMICS)
    cells = [[rng.getrandbits(32) for _ in range(8)] for _ in range(count)]
    a = [rng.getrandbits(32) for _ in range(8)]
    # Half of the comparisons succeed.
    row = list(ATOMICS).index("cmpxchg")
    b = [v if i % 2 else v ^ 1 for i, v in enumerate(cells[row])]
    directives = [f"image 0 image2d r32uint 8x{count}: u32[{8 * count}] = {dwords(sum(cells, []))}",
                  f"surface 32: u32[{16 + 8 * count}] = {dwords(a + b)}"]
    body = ["movs (M1_NM, 1) T6(0) 0x0:ud", "oword_ld (2) T7 0x0:ud A.0", "oword_ld (2) T7 0x2:ud B.0"]
    for k, (op, result) in enumerate(ATOMICS.items()):
        new = [wrap(result(o, x, y)) for o, x, y in zip(cells[k], a, b)]
        directives.append(f"expect surface 0 at {32 * k}: u32[8] = {dwords(new)}")
        directives.append(f"expect surface 32 at {64 + 32 * k}: u32[8] = {dwords(cells[k])}")
        sources = {"inc": "%null.0 %null.0", "dec": "%null.0 %null.0", "cmpxchg": "A.0 B.0"}.get(op, "A.0 %null.0")
        body += [f"mov (M1_NM, 8) V(0,0)<1> {k:#x}:ud",
                 f"typed_atomic.{op} (M1, 8) T6 U.0 V.0 %null.0 %null.0 {sources} D.0",
                 f"oword_st (2) T7 {4 + 2 * k:#x}:ud D.0"]
    file(root, "typed_atomic", "operations", directives + ["faults: 0"], body)


BLOCKS = [(4, 2, 0, 0), (8, 4, 0, 0), (1, 3, 7, 1), (2, 2, -1, -1), (6, 4, 5, 2), (16, 4, -4, 0), (3, 5, 2, 2), (5, 1, 30, 9),
          (8, 2, -20, 3), (32, 2, 1, 0)]


def blocks(root, rng):
    """The image is 8 texels wide and 4 high; of a texel beyond the edge the nearest one's byte of the same rank is read."""
    for store in (False, True):
        directives, body = [], []
        for k, (w, h, x, y) in enumerate(BLOCKS):
            f = Format(["r8uint", "rg8uint", "rgba8unorm"][k % 3])
            width = 8 * f.texel
            data = [rng.getrandbits(8) for _ in range(4 * width)]
            directives.append(f"image {k} image2d {f.name} 8x4: u8[{len(data)}] = " + " ".join(map(str, data)))
            pitch = max(4, 1 << (w - 1).bit_length())
            # The destination keeps what is beyond the rows.
            block = [rng.getrandbits(8) for _ in range(128)] if store else [0] * 128
            # Every other row is a field's, which has half of them.
            modifier, first, step = [("nomod", 0, 1), ("top", 0, 2), ("bottom", 1, 2)][k // 3 % 3]
            rows = 4 // step
            for row in range(h):
                for column in range(pitch):
                    cx, cy = x + column, y + row
                    at = row * pitch + column
                    if store and column < w and 0 <= cx < width and 0 <= cy < rows:
                        data[(cy * step + first) * width + cx] = block[at]
                    if not store and column < w:
                        texel = min(max(cx // f.texel, 0), 7)
                        line = min(max(cy, 0), rows - 1) * step + first
                        block[at] = data[line * width + texel * f.texel + cx % f.texel]
            body += [f"movs (M1_NM, 1) T6(0) {k:#x}:ud"]
            where = f"({w},{h}) T6 0 {wrap(x):#x}:d {wrap(y):#x}:d D.0"
            if store:
                directives.append(f"surface {32 + k}: u8[128] = " + " ".join(map(str, block)))
                directives.append(f"expect surface {k}: u8[{len(data)}] = " + " ".join(map(str, data)))
                body += [f"movs (M1_NM, 1) T7(0) {32 + k:#x}:ud", "oword_ld (8) T7 0x0:ud D.0", f"media_st.{modifier} {where}"]
            else:
                directives.append(f"expect surface 32 at {128 * k}: u8[128] = " + " ".join(map(str, block)))
                body += [f"mov (M1_NM, 16) D({row},0)<1> 0x0:ud" for row in (0, 2)]
                body += [f"media_ld.{modifier} {where}", f"oword_st (8) T7 {8 * k:#x}:ud D.0"]
        if not store:
            directives.append(f"surface 32: u8[{128 * len(BLOCKS)}] = fill 1")
        name = "media_st" if store else "media_ld"
        file(root, name, "blocks", directives + ["faults: 0"], body)


def write(root):
    rng = random.Random("visa-jit images")
    reads(root, rng)
    writes(root, rng)
    atomics(root, rng)
    blocks(root, rng)
