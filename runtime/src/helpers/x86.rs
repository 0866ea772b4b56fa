//! `fp_env` on x86-64: the processor's own rounding modes.
//!
//! Each loop is one assembly block that sets MXCSR, computes, and restores it, so that no
//! compiled Rust code ever runs in another mode. Denormal operands are flushed by MXCSR (DAZ);
//! denormal results by integer code afterwards, as the processor's own flush (FTZ) also catches
//! results that round up to the smallest normal number.

use super::fp_env::{Call, Env, Round, by_doubles, sign_extend};
use super::half;
use crate::abi::fp_env as op;
use std::arch::asm;

/// All exceptions masked.
const MASKED: u32 = 0x1F80;
/// Denormal operands are zero.
const DAZ: u32 = 0x40;
/// Lanes that pass through a temporary at a time.
const CHUNK: usize = 32;

/// Runs a call; false when this processor cannot.
///
/// # Safety
/// As [`Call::each`].
pub(super) unsafe fn run(call: &Call) -> bool {
    if call.op == op::FMA && !std::is_x86_feature_detected!("fma") {
        return false;
    }
    // SAFETY: as promised.
    unsafe {
        match (call.op, call.source, call.result) {
            (op::SI_TO_F | op::UI_TO_F, ..) => integers(call),
            (op::F_TO_F, 4, _) => f32_to_f64(call),
            (op::F_TO_F, ..) => f64_to_f32(call),
            (_, 2, _) => halves(call),
            (_, 4, _) => singles(call),
            _ => doubles(call),
        }
        flush_result(call);
    }
    true
}

/// MXCSR for operands of this width.
fn mxcsr(env: Env, bytes: u32) -> u32 {
    let daz = if env.keeps(bytes) { 0 } else { DAZ };
    let round = match env.round {
        Round::Nearest => 0,
        Round::Down => 1,
        Round::Up => 2,
        Round::Zero => 3,
    };
    MASKED | round << 13 | daz
}

/// Runs `$op` on registers `x`, `y`, `z` (result in `x`), sixteen bytes of each operand at a time,
/// then `$bytes` at a time; `$mov` moves the latter and clears the rest of the register.
macro_rules! packed {
    ($call:expr, $bytes:literal, $mov:literal, $op:literal) => {{
        let call: &Call = $call;
        let env = mxcsr(call.env, $bytes);
        let mut saved = 0u32;
        // SAFETY: all four arrays have `lanes` elements; MXCSR is as before at the end.
        unsafe {
            asm!(
                "stmxcsr [{saved}]",
                "ldmxcsr [{env}]",
                "2:",
                "cmp {left}, 16",
                "jb 3f",
                "movups {x}, [{a} + {at}]",
                "movups {y}, [{b} + {at}]",
                "movups {z}, [{c} + {at}]",
                $op,
                "movups [{out} + {at}], {x}",
                "add {at}, 16",
                "sub {left}, 16",
                "jmp 2b",
                "3:",
                "test {left}, {left}",
                "jz 4f",
                concat!($mov, " {x}, [{a} + {at}]"),
                concat!($mov, " {y}, [{b} + {at}]"),
                concat!($mov, " {z}, [{c} + {at}]"),
                $op,
                concat!($mov, " [{out} + {at}], {x}"),
                concat!("add {at}, ", $bytes),
                concat!("sub {left}, ", $bytes),
                "jmp 3b",
                "4:",
                "ldmxcsr [{saved}]",
                saved = in(reg) &raw mut saved,
                env = in(reg) &raw const env,
                left = inout(reg) call.lanes * $bytes => _,
                at = inout(reg) 0usize => _,
                a = in(reg) call.operands[0],
                b = in(reg) call.operands[1],
                c = in(reg) call.operands[2],
                out = in(reg) call.out,
                x = out(xmm_reg) _,
                y = out(xmm_reg) _,
                z = out(xmm_reg) _,
                options(nostack),
            );
        }
    }};
}

/// Runs `$op`, which reads `{a}` and leaves its result in `{x}`, for each of `$lanes` elements.
macro_rules! each {
    ($mxcsr:expr, $lanes:expr, $a:expr, $step_a:literal, $out:expr, $step_out:literal, $($op:literal),+) => {{
        let env: u32 = $mxcsr;
        let mut saved = 0u32;
        let lanes: usize = $lanes;
        // SAFETY: both arrays have `lanes` elements; MXCSR is as before at the end.
        unsafe {
            asm!(
                "stmxcsr [{saved}]",
                "ldmxcsr [{env}]",
                "2:",
                "test {left}, {left}",
                "jz 3f",
                "pxor {x}, {x}",
                $($op,)+
                concat!("add {a}, ", $step_a),
                concat!("add {out}, ", $step_out),
                "dec {left}",
                "jmp 2b",
                "3:",
                "ldmxcsr [{saved}]",
                saved = in(reg) &raw mut saved,
                env = in(reg) &raw const env,
                left = inout(reg) lanes => _,
                a = inout(reg) $a => _,
                out = inout(reg) $out => _,
                x = out(xmm_reg) _,
                options(nostack),
            );
        }
    }};
}

/// # Safety
/// As [`Call::each`].
unsafe fn singles(call: &Call) {
    match call.op {
        op::ADD => packed!(call, 4, "movss", "addps {x}, {y}"),
        op::MUL => packed!(call, 4, "movss", "mulps {x}, {y}"),
        op::DIV => packed!(call, 4, "movss", "divps {x}, {y}"),
        op::FMA => packed!(call, 4, "movss", "vfmadd213ps {x}, {y}, {z}"),
        _ => packed!(call, 4, "movss", "sqrtps {x}, {x}"),
    }
}

/// # Safety
/// As [`Call::each`].
unsafe fn doubles(call: &Call) {
    match call.op {
        op::ADD => packed!(call, 8, "movsd", "addpd {x}, {y}"),
        op::MUL => packed!(call, 8, "movsd", "mulpd {x}, {y}"),
        op::DIV => packed!(call, 8, "movsd", "divpd {x}, {y}"),
        op::FMA => packed!(call, 8, "movsd", "vfmadd213pd {x}, {y}, {z}"),
        _ => packed!(call, 8, "movsd", "sqrtpd {x}, {x}"),
    }
}

/// # Safety
/// As [`Call::each`].
unsafe fn f32_to_f64(call: &Call) {
    each!(
        mxcsr(call.env, 4),
        call.lanes,
        call.operands[0],
        4,
        call.out,
        8,
        "cvtss2sd {x}, dword ptr [{a}]",
        "movsd [{out}], {x}"
    );
}

/// # Safety
/// As [`Call::each`].
unsafe fn f64_to_f32(call: &Call) {
    each!(
        mxcsr(call.env, 8),
        call.lanes,
        call.operands[0],
        8,
        call.out,
        4,
        "cvtsd2ss {x}, qword ptr [{a}]",
        "movss [{out}], {x}"
    );
}

/// Integers to `f32` or `f64`.
///
/// # Safety
/// As [`Call::each`].
unsafe fn integers(call: &Call) {
    if (call.op, call.source, call.result) == (op::SI_TO_F, 4, 4) {
        packed!(call, 4, "movss", "cvtdq2ps {x}, {x}");
        return;
    }
    let env = mxcsr(call.env, call.result);
    for start in (0..call.lanes).step_by(CHUNK) {
        let lanes = CHUNK.min(call.lanes - start);
        let mut wide = [0i64; CHUNK];
        // Lanes that were halved to fit a signed integer.
        let mut halved = 0u32;
        for (i, wide) in wide[..lanes].iter_mut().enumerate() {
            // SAFETY: `start + i` is below `lanes`.
            let bits = unsafe { call.load(0, start + i) };
            *wide = match call.op {
                op::SI_TO_F => sign_extend(bits, call.source),
                _ if bits >> 63 == 0 => bits as i64,
                _ => {
                    halved |= 1 << i;
                    // The lost bit stays as a sticky one: rounding sees the same side of each tie.
                    (bits >> 1 | bits & 1) as i64
                }
            };
        }
        let out = call.out.wrapping_add(start * call.result as usize);
        if call.result == 4 {
            each!(
                env,
                lanes,
                wide.as_ptr(),
                8,
                out,
                4,
                "cvtsi2ss {x}, qword ptr [{a}]",
                "movss [{out}], {x}"
            );
        } else {
            each!(
                env,
                lanes,
                wide.as_ptr(),
                8,
                out,
                8,
                "cvtsi2sd {x}, qword ptr [{a}]",
                "movsd [{out}], {x}"
            );
        }
        let exponent_one = if call.result == 4 { 1 << 23 } else { 1 << 52 };
        let doubled = Call {
            operands: [call.out; 3].map(<*mut u8>::cast_const),
            source: call.result,
            ..*call
        };
        for i in (0..lanes).filter(|i| halved >> i & 1 != 0) {
            // SAFETY: as above; the result was just written.
            unsafe { call.store(start + i, doubled.load(0, start + i) + exponent_one) };
        }
    }
}

/// Binary16 arithmetic in `f64`, rounded to odd so that rounding again to binary16 is rounding once.
///
/// # Safety
/// As [`Call::each`].
unsafe fn halves(call: &Call) {
    // SAFETY: as promised.
    if unsafe { super::x86_half::run(call) || by_doubles(call) } {
        return;
    }
    let env = mxcsr(Env::new(0x4C0 | 3 << 4), 8);
    // SAFETY: as promised.
    unsafe {
        call.each(|sources| {
            let [a, b, c] = sources.map(|bits| half::widen(call.env.flush(2, bits) as u16));
            let odd = match to_odd(call.op, env, [a, b, c]) {
                // Terms that cancel give +0 toward zero, but -0 toward minus infinity.
                0 if call.env.round == Round::Down && opposite(call.op, [a, b, c]) => 1 << 63,
                odd => odd,
            };
            half::narrow(odd, call.env.round).into()
        });
    }
}

/// True for sums whose two terms have different signs.
fn opposite(code: u32, [a, b, c]: [u64; 3]) -> bool {
    match code {
        op::ADD => (a ^ b) >> 63 != 0,
        op::FMA => (a ^ b ^ c) >> 63 != 0,
        _ => false,
    }
}

/// Inexact-result flag of MXCSR.
const INEXACT: u32 = 0x20;

/// One scalar operation toward zero whose last bit is set when the result is inexact.
fn to_odd(code: u32, env: u32, [a, b, c]: [u64; 3]) -> u64 {
    macro_rules! scalar {
        ($op:literal) => {{
            let (mut saved, mut flags) = (0u32, 0u32);
            let mut x = f64::from_bits(a);
            // SAFETY: works on registers and two locals; MXCSR is as before at the end.
            unsafe {
                asm!(
                    "stmxcsr [{saved}]",
                    "ldmxcsr [{env}]",
                    $op,
                    "stmxcsr [{flags}]",
                    "ldmxcsr [{saved}]",
                    saved = in(reg) &raw mut saved,
                    flags = in(reg) &raw mut flags,
                    env = in(reg) &raw const env,
                    x = inout(xmm_reg) x,
                    y = in(xmm_reg) f64::from_bits(b),
                    z = in(xmm_reg) f64::from_bits(c),
                    options(nostack),
                );
            }
            x.to_bits() | u64::from(flags & INEXACT != 0)
        }};
    }
    match code {
        op::ADD => scalar!("addsd {x}, {y} /* {z} */"),
        op::MUL => scalar!("mulsd {x}, {y} /* {z} */"),
        op::DIV => scalar!("divsd {x}, {y} /* {z} */"),
        op::FMA => scalar!("vfmadd213sd {x}, {y}, {z}"),
        _ => scalar!("sqrtsd {x}, {x} /* {y} {z} */"),
    }
}

/// Flushes denormal results unless they are kept.
///
/// # Safety
/// As [`Call::each`].
unsafe fn flush_result(call: &Call) {
    let conversion = matches!(call.op, op::SI_TO_F | op::UI_TO_F);
    if call.env.keeps(call.result) || conversion {
        return;
    }
    let bytes = call.result;
    let operands = [call.out; 3].map(<*mut u8>::cast_const);
    let result = Call {
        operands,
        source: bytes,
        ..*call
    };
    // SAFETY: the result has `lanes` elements, just written.
    unsafe { result.each(|[bits, ..]| call.env.flush(bytes, bits)) }
}
