"""File tests of control flow: a row of results for each small program, worked out lane by lane."""

import os
import random

from generate import ROOT

LANES = 16
HEAD = """.decl ID v_type=G type=ud num_elts=16 align=GRF
.decl W v_type=G type=uw num_elts=16 align=GRF
.decl V v_type=G type=ud num_elts=16 align=GRF
.decl C v_type=G type=ud num_elts=16 align=GRF
.decl A v_type=G type=ud num_elts=16 align=GRF
.decl F v_type=G type=ud num_elts=4 align=GRF
.decl ARG v_type=G type=ud num_elts=16 alias=<%arg, 0>
.decl RET v_type=G type=ud num_elts=16 alias=<%retval, 0>
.decl P1 v_type=P num_elts=16
.decl P2 v_type=P num_elts=16
.decl T6 v_type=T num_elts=1
.function "main"
    movs (M1_NM, 1) T6(0) 0x0:ud
    mov (M1_NM, 8) W(0,0)<1> 0x76543210:uv
    add (M1_NM, 8) W(0,8)<1> W(0,0)<1;1,0> 0x8:uw
    mov (M1_NM, 16) ID(0,0)<1> W(0,0)<1;1,0>"""
MASKS = [0x5555, 0xAAAA, 0x0FF0, 0x8001, 0xFFFF, 0x0000, 0x1234, 0xFEDC, 0x00FF, 0x7FFE, 0x3C5A, 0xFF00]


def write(name, title, programs, subs="", platforms="skl pvc"):
    """Programs are pairs of lines and the row that they leave in V; labels end in `#`, which becomes the number."""
    lines = [f"// {title}", "// Written by tests/filetests/generate; rows are worked out lane by lane.", f"// platform: {platforms}",
             "// policy: zero", f"// global: {LANES}", f"// local: {LANES}", f"// surface 0: u32[{LANES * len(programs)}] = fill 0"]
    body = []
    for k, (text, row) in enumerate(programs):
        lines.append(f"// expect surface 0 at {64 * k}: u32[16] = {' '.join(str(v & 0xFFFFFFFF) for v in row)}")
        body.append("    mov (M1_NM, 16) V(0,0)<1> 0x0:ud")
        for line in text.strip().splitlines():
            line = line.strip().replace("#", str(k))
            body.append(line if line.endswith(":") else "    " + line)
        body.append(f"    oword_st (4) T6 {4 * k:#x}:ud V.0")
    lines += ["// faults: 0", ".version 4.1", ".kernel \"generated\"", f".kernel_attr SimdSize={LANES}", HEAD]
    family, base = name.split("/")
    os.makedirs(os.path.join(ROOT, family), exist_ok=True)
    with open(os.path.join(ROOT, family, base + ".visaasm"), "w") as f:
        f.write("\n".join(lines + body + ["    ret (M1, 1)"]) + "\n" + subs)


def row(f):
    return [f(i) for i in range(LANES)]


def add(amount, var="V"):
    return f"add (M1, 16) {var}(0,0)<1> {var}(0,0)<1;1,0> {amount:#x}:ud"


def setp(value, var="P1"):
    return f"setp (M1_NM, 16) {var} {value:#x}:ud"


def files():
    gotos()
    jumps()
    switches()
    subroutines()
    functions()
    marks()


def gotos():
    programs = []
    for k, m in enumerate(MASKS):
        guard, takes = [("(P1)", lambda i: m >> i & 1), ("(!P1)", lambda i: not m >> i & 1), ("(P1.any)", lambda i: m != 0),
                        ("(P1.all)", lambda i: m == 0xFFFF), ("(!P1.any)", lambda i: m == 0)][k % 5]
        programs.append((f"""{setp(m)}
            {guard} goto (M1, 16) ELSE#
            {add(1)}
            goto (M1, 16) END#
            ELSE#:
            {add(2)}
            END#:
            {add(4)}""", row(lambda i: (2 if takes(i) else 1) + 4)))
    # The upper half by itself, and an if in an if.
    for m, m2 in zip(MASKS[:4], MASKS[6:10]):
        programs.append((f"""{setp(m)}
            {setp(m2, "P2")}
            (P1) goto (M3, 8) OUT#
            {add(1)}
            (P2) goto (M1, 16) IN#
            {add(2)}
            IN#:
            {add(8)}
            OUT#:
            {add(4)}""", row(lambda i: 4 + (0 if i >= 8 and m >> i & 1 else 9 + (0 if m2 >> i & 1 else 2)))))
    write("goto/forward", "Lanes that branch wait for the others.", programs)
    programs = []
    for k in range(12):
        leave = 3 * k + 2
        rounds = lambda i: (i * k & 7) + 1

        def lane(i):
            v = 0
            for _ in range(rounds(i)):
                v += k + 1
                if v >= leave and k % 2:
                    return v + 100
                v += 1
            return v + 100
        early = f"""cmp.ge (M1, 16) P2 V(0,0)<1;1,0> {leave:#x}:ud
            (P2) goto (M1, 16) OUT#""" if k % 2 else ""
        programs.append((f"""mul (M1, 16) C(0,0)<1> ID(0,0)<1;1,0> {k:#x}:ud
            and (M1, 16) C(0,0)<1> C(0,0)<1;1,0> 0x7:ud
            {add(1, "C")}
            LOOP#:
            {add(k + 1)}
            {early}
            {add(1)}
            {add(0xFFFFFFFF, "C")}
            cmp.ne (M1, 16) P1 C(0,0)<1;1,0> 0x0:ud
            (P1) goto (M1, 16) LOOP#
            OUT#:
            {add(100)}""", row(lane)))
    write("goto/loops", "Loops that lanes leave at different times.", programs)
    many_places()


def many_places():
    """Lanes leave a chain of tests to a place of each test. Some go through the chain again, others are done for good."""
    exits, programs = 28, []
    for k in range(13):
        step = 2 * k + 1
        last = k == 12

        def lane(i):
            v, key = 0, (i * step + k) % 32
            for _ in range(3):
                if (k % 3 == 2 or last) and key >= 30:
                    return v  # Its lanes do not come to the end.
                v += 100 * (key + 1) + 7 if key < exits else 1
                key = (key * 5 + 3) % 32
            return v + 50000
        tests = "\n".join(f"""cmp.eq (M1, 16) P1 A(0,0)<1;1,0> {e:#x}:ud
            (P1) goto (M1, 16) AT{e}_#""" for e in range(exits))
        places = "\n".join(f"""AT{e}_#:
            {add(100 * (e + 1))}
            goto (M1, 16) SEEN#""" for e in range(exits))
        gone = """cmp.ge (M1, 16) P2 A(0,0)<1;1,0> 0x1e:ud
            (P2) goto (M1, 16) GONE#""" if k % 3 == 2 else ""
        if last:
            gone = """cmp.ge (M1, 16) P2 A(0,0)<1;1,0> 0x1e:ud
            (P2) ret (M1, 16)"""
        programs.append((f"""mul (M1, 16) A(0,0)<1> ID(0,0)<1;1,0> {step:#x}:ud
            {add(k, "A")}
            and (M1, 16) A(0,0)<1> A(0,0)<1;1,0> 0x1f:ud
            mov (M1_NM, 1) C(0,0)<1> 0x3:ud
            mov (M1_NM, 16) C(0,0)<1> C(0,0)<0;1,0>
            LOOP#:
            {gone}
            {tests}
            {add(1)}
            goto (M1, 16) NEXT#
            {places}
            SEEN#:
            {add(7)}
            NEXT#:
            mul (M1, 16) A(0,0)<1> A(0,0)<1;1,0> 0x5:ud
            {add(3, "A")}
            and (M1, 16) A(0,0)<1> A(0,0)<1;1,0> 0x1f:ud
            {add(0xFFFFFFFF, "C")}
            cmp.ne (M1, 16) P1 C(0,0)<1;1,0> 0x0:ud
            (P1) goto (M1, 16) LOOP#
            {add(50000)}
            GONE#:""", row(lane)))
    write("goto/many", "Lanes wait at many places at once.", programs)


def jumps():
    programs = []
    for k, m in enumerate(MASKS):
        guard, takes = [("(P1)", m & 1), ("(!P1)", not m & 1), ("(P1.any)", m != 0), ("(P1.all)", m == 0xFFFF), ("", True)][k % 5]
        programs.append((f"""{setp(m)}
            {guard} jmp (M1, 1) OVER#
            {add(1)}
            OVER#:
            {add(2)}""", row(lambda i: 2 if takes else 3)))
    for k in range(1, 7):
        programs.append((f"""mov (M1_NM, 1) C(0,0)<1> {k:#x}:ud
            AGAIN#:
            {add(3)}
            add (M1_NM, 1) C(0,0)<1> C(0,0)<0;1,0> 0xffffffff:ud
            cmp.ne (M1_NM, 1) P2 C(0,0)<0;1,0> 0x0:ud
            (P2) jmp (M1, 1) AGAIN#""", row(lambda i: 3 * k)))
    # Only lanes that are here jump; those that wait in between are first.
    for m in MASKS[:4]:
        programs.append((f"""{setp(m)}
            (P1) goto (M1, 16) WAIT#
            {add(1)}
            jmp (M1, 1) LAST#
            WAIT#:
            {add(2)}
            LAST#:
            {add(4)}""", row(lambda i: 6 if m >> i & 1 else 5)))
    write("jmp/jumps", "The first element of the predicate decides, for all lanes that are here.", programs)


def switches():
    programs = []
    for index in (0, 1, 2, 3, 4, 5, 100, 0xFFFFFFFF, 0x80000000):
        arm = index if index < 4 else 0
        programs.append((f"""mov (M1_NM, 1) C(0,0)<1> {index:#x}:ud
            switchjmp (M1, 1) C(0,0)<0;1,0> (ZERO#, ONE#, TWO#, THREE#)
            TWO#:
            {add(4)}
            ZERO#:
            {add(1)}
            jmp (M1, 1) END#
            THREE#:
            {add(8)}
            ONE#:
            {add(2)}
            END#:
            {add(16)}""", row(lambda i: 16 + [1, 2, 5, 10][arm])))
    for m in MASKS[:6]:
        # Lanes that wait in between are first.
        programs.append((f"""{setp(m)}
            (P1) goto (M1, 16) WAIT#
            {add(1)}
            switchjmp (M1, 1) 0x1:ud (WAIT#, LAST#)
            WAIT#:
            {add(2)}
            LAST#:
            {add(4)}""", row(lambda i: 6 if m >> i & 1 else 5)))
    write("switchjmp/arms", "An index that names no target takes the first.", programs, platforms="skl pvc")


def subroutines():
    subs = f""".function "sub_a"
    {add(1)}
    (P2) ret (M1, 16)
    {add(2)}
    call (M1, 16) sub_b
    ret (M1, 16)
.function "sub_b"
    {add(4)}
    (!P1) ret (M1, 16)
    {add(8)}
    ret (M1, 16)
"""
    programs = []
    for k, m in enumerate(MASKS):
        m2 = MASKS[(5 * k + 2) % 12]
        guard, calls = [("(P1)", lambda i: m >> i & 1), ("", lambda i: 1), ("(!P1)", lambda i: not m >> i & 1),
                        ("(P1.any)", lambda i: m != 0)][k % 4]
        b = lambda i: 4 + (8 if m >> i & 1 else 0)
        a = lambda i: 1 if m2 >> i & 1 else 3 + b(i)
        programs.append((f"""{setp(m)}
            {setp(m2, "P2")}
            {guard} call (M1, 16) sub_a
            {add(16)}
            call (M1, 16) sub_b""", row(lambda i: (a(i) if calls(i) else 0) + 16 + b(i))))
    write("call/subroutines", "Predicated calls, calls in calls, returns of a part of the lanes.", programs, subs)


def functions():
    unit = lambda name, text: f""".version 4.1
.global_function "{name}"
.decl ARG v_type=G type=ud num_elts=16 alias=<%arg, 0>
.decl R v_type=G type=ud num_elts=16 alias=<%retval, 0>
.decl OWN v_type=G type=ud num_elts=16 align=GRF
.decl P1 v_type=P num_elts=16
.function "{name}_0"
{text}
    fret (M1, 16)
"""
    subs = unit("first", f"""    mov (M1, 16) OWN(0,0)<1> R(0,0)<1;1,0>
    {add(1, "R")}
    cmp.lt (M1, 16) P1 ARG(0,0)<1;1,0> 0x3:ud
    (P1) fret (M1, 16)
    fcall (M1, 16) second 1 1
    add (M1, 16) R(0,0)<1> R(0,0)<1;1,0> OWN(0,0)<1;1,0>""") + unit("second", f"""    {add(2, "R")}
    cmp.gt (M1, 16) P1 ARG(0,0)<1;1,0> 0x5:ud
    (P1) fret (M1, 16)
    {add(4, "R")}""")
    second = lambda x, r: r + 2 + (0 if x > 5 else 4)
    first = lambda x, r: r + 1 if x < 3 else second(x, r + 1) + r
    programs, pointers = [], []
    for k, m in enumerate(MASKS):
        x = lambda i: i * k & 7
        start = f"""mul (M1, 16) ARG(0,0)<1> ID(0,0)<1;1,0> {k:#x}:ud
            and (M1, 16) ARG(0,0)<1> ARG(0,0)<1;1,0> 0x7:ud
            mov (M1_NM, 16) RET(0,0)<1> {k:#x}:ud
            {setp(m)}"""
        guard, calls = [("(P1)", lambda i: m >> i & 1), ("", lambda i: 1), ("(!P1)", lambda i: not m >> i & 1)][k % 3]
        programs.append((f"""{start}
            {guard} fcall (M1, 16) first 1 1
            fcall (M1, 16) second 1 1
            mov (M1_NM, 16) V(0,0)<1> RET(0,0)<1;1,0>""",
                         row(lambda i: second(x(i), first(x(i), k) if calls(i) else k))))
        lane = lambda i: first(x(i), k) if m >> i & 1 else (second(x(i), k) if k % 2 else k)
        none = "faddr second F(0,1)<1>" if k % 2 else "mov (M1_NM, 1) F(0,1)<1> 0x1:ud"
        pointers.append((f"""{start}
            faddr first F(0,0)<1>
            {none}
            mov (M1_NM, 16) A(0,0)<1> F(0,1)<0;1,0>
            (P1) mov (M1_NM, 16) A(0,0)<1> F(0,0)<0;1,0>
            ifcall (M1, 16) A(0,0)<1;1,0> 1 1
            mov (M1_NM, 16) V(0,0)<1> RET(0,0)<1;1,0>""", row(lane)))
        pointers.append((f"""{start}
            faddr second F(0,0)<1>
            {guard} ifcall (M1, 16) F(0,0)<0;1,0> 1 1
            mov (M1_NM, 16) V(0,0)<1> RET(0,0)<1;1,0>""", row(lambda i: second(x(i), k) if calls(i) else k)))
    write("fcall/functions", "Stack calls: predicated, nested, with early returns.", programs, subs)
    write("ifcall/pointers", "Calls by address: one for all lanes, one for each, and none that is a function.", pointers, subs)
    many_joins_in_recursion(unit)


def many_joins_in_recursion(unit):
    """A function that calls itself while other lanes wait at many joins of the calling activation."""
    exits, programs = 28, []
    tests = "\n".join(f"""    cmp.eq (M1, 16) P1 OWN(0,0)<1;1,0> {e:#x}:ud
    (P1) goto (M1, 16) AT{e}""" for e in range(exits))
    joins = "\n".join(f"""AT{e}:
    {add(100 * (e + 1), "R")}
    goto (M1, 16) DONE""" for e in range(exits))
    subs = unit("many", f"""    mov (M1, 16) OWN(0,0)<1> ARG(0,0)<1;1,0>
{tests}
    add (M1, 16) ARG(0,0)<1> OWN(0,0)<1;1,0> 0xfffffff7:ud
    fcall (M1, 16) many 1 1
    {add(7, "R")}
    goto (M1, 16) DONE
{joins}
DONE:""")
    many = lambda n: 100 * (n + 1) if n < exits else many(n - 9) + 7
    for k in range(12):
        programs.append((f"""mul (M1, 16) ARG(0,0)<1> ID(0,0)<1;1,0> {k:#x}:ud
            and (M1, 16) ARG(0,0)<1> ARG(0,0)<1;1,0> 0x3f:ud
            mov (M1_NM, 16) RET(0,0)<1> {k:#x}:ud
            fcall (M1, 16) many 1 1
            mov (M1_NM, 16) V(0,0)<1> RET(0,0)<1;1,0>""", row(lambda i: k + many(i * k & 63))))
    write("fcall/many", "A function that calls itself while lanes of the caller wait at many joins.", programs, subs)


def marks():
    programs = []
    for k in range(12):
        programs.append((f"""FILE "some{k}.cl"
            LOC {k + 1}
            lifetime.start V
            {add(k)}
            yield
            sampler_cache_flush
            fence_global.{["E", "EI", "EIS", "EISCRL1", "L1", "ER"][k % 6]}
            fence_local.E
            fence_sw
            barrier
            {add(1)}
            lifetime.end C""", row(lambda i: k + 1)))
    write("barrier/marks", "What changes no register: marks, hints, fences, and a barrier of one thread.", programs)
