#!/usr/bin/env python3
"""usage: slim.py IN OUT [CORPUS NAME]

Copies the zebin IN to OUT without the bytes of its native code (.text.*, .rel.text.*)
and SPIR-V (.spv), which visa-jit does not read. The section headers stay, with size
zero, so section indices in the symbol table remain valid.

With CORPUS and NAME, also writes each .visaasm section to CORPUS/NAME.KERNEL.visaasm
and .ze_info to CORPUS/NAME.ze_info.yaml. A kernel's section carries no name: they come in
the order in which .ze_info lists the kernels. A function called through the stack has its own
section, .visaasm.FUNCTION, behind that of the kernel it was compiled with.
"""

import os
import re
import struct
import sys

HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
SECTION = struct.Struct("<IIQQQQIIQQ")


def read_sections(data):
    header = HEADER.unpack_from(data)
    offset, size, count, names_index = header[6], header[11], header[12], header[13]
    raw = [list(SECTION.unpack_from(data, offset + i * size)) for i in range(count)]
    names = raw[names_index]
    table = data[names[4] : names[4] + names[5]]
    named = [table[s[0] : table.index(0, s[0])].decode() for s in raw]
    return list(header), raw, named


def slim(data):
    header, sections, names = read_sections(data)
    out = bytearray(HEADER.size)
    for section, name in zip(sections, names):
        body = data[section[4] : section[4] + section[5]]
        if section[1] == 0:
            continue
        if name == ".spv" or name.startswith((".text", ".rel.text", ".rela.text")):
            body = b""
        align = max(section[8], 1)
        out += bytes(-len(out) % align)
        section[4], section[5] = len(out), len(body)
        out += body
    out += bytes(-len(out) % 8)
    header[6] = len(out)
    for section in sections:
        out += SECTION.pack(*section)
    out[: HEADER.size] = HEADER.pack(*header)
    return bytes(out)


def dump(data, folder, name):
    os.makedirs(folder, exist_ok=True)
    _, sections, names = read_sections(data)
    bodies = [(n, data[s[4] : s[4] + s[5]]) for s, n in zip(sections, names)]
    info = next(b for n, b in bodies if n == ".ze_info").decode()
    with open(f"{folder}/{name}.ze_info.yaml", "w") as file:
        file.write(info)
    listed = re.split(r"\n(?:functions|kernels_misc_info):", info)[0]
    kernels = re.findall(r"^  - name: +'?([\w.$]+)'?$", listed, re.M)
    owner, count = "", 0
    for section, body in bodies:
        if section == ".visaasm":
            owner, count = kernels[count], count + 1
            target = f"{name}.{owner}"
        elif section.startswith(".visaasm."):
            target = f"{name}.{owner}.{section.removeprefix('.visaasm.')}"
        else:
            continue
        with open(f"{folder}/{target}.visaasm", "wb") as file:
            file.write(body)
    if count != len(kernels):
        sys.exit(f"{name}: {count} .visaasm sections for {kernels}")


def main():
    source, target, *corpus = sys.argv[1:]
    with open(source, "rb") as file:
        data = file.read()
    with open(target, "wb") as file:
        file.write(slim(data))
    if corpus:
        dump(data, *corpus)


main()
