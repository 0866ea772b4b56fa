// Atomic operations. *_shared kernels let all items meet on few cells, so that the final state is
// known whatever the order; *_own kernels give each item its own cells, so that the returned old
// values are known too.

#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
#pragma OPENCL EXTENSION cl_khr_int64_extended_atomics : enable

// cells[0..8): add sub inc dec and or xor, count of successful compare-exchanges of own tickets.
kernel void atomics_shared(volatile global uint *cells, global const uint *in) {
    uint v = in[get_global_id(0)];
    atomic_add(&cells[0], v);
    atomic_sub(&cells[1], v);
    atomic_inc(&cells[2]);
    atomic_dec(&cells[3]);
    atomic_and(&cells[4], v | 0xffff0000u);
    atomic_or(&cells[5], v & 0xffffu);
    atomic_xor(&cells[6], v);
    uint old = cells[7], seen;
    while ((seen = atomic_cmpxchg(&cells[7], old, old + (v & 15))) != old)
        old = seen;
}

kernel void atomics_shared_signed(volatile global int *cells, global const int *in) {
    int v = in[get_global_id(0)];
    atomic_min(&cells[0], v);
    atomic_max(&cells[1], v);
    atomic_min((volatile global uint *)&cells[2], (uint)v);
    atomic_max((volatile global uint *)&cells[3], (uint)v);
}

// Every item swaps its ticket in and keeps what it got: the tickets are conserved.
kernel void atomics_exchange(volatile global uint *cells, global uint *got, global const uint *tickets) {
    uint i = get_global_id(0);
    got[i] = atomic_xchg(&cells[i & 3], tickets[i]);
}

// Cells and old values, 12 an item: add sub xchg inc dec cmpxchg (hit), cmpxchg (miss) and or xor, min max.
kernel void atomics_own(global int *cells, global int *old, global const int *in) {
    uint i = get_global_id(0);
    int v = in[i];
    global int *c = cells + i * 12, *o = old + i * 12;
    o[0] = atomic_add(c, v);
    o[1] = atomic_sub(c + 1, v);
    o[2] = atomic_xchg(c + 2, v);
    o[3] = atomic_inc(c + 3);
    o[4] = atomic_dec(c + 4);
    o[5] = atomic_cmpxchg(c + 5, (int)i, v);
    o[6] = atomic_cmpxchg(c + 6, ~(int)i, v);
    o[7] = atomic_and(c + 7, v);
    o[8] = atomic_or(c + 8, v);
    o[9] = atomic_xor(c + 9, v);
    o[10] = atomic_min(c + 10, v);
    o[11] = atomic_max(c + 11, v);
}

kernel void atomics_own_long(global long *cells, global long *old, global const long *in) {
    uint i = get_global_id(0);
    long v = in[i];
    global long *c = cells + i * 12, *o = old + i * 12;
    o[0] = atom_add(c, v);
    o[1] = atom_sub(c + 1, v);
    o[2] = atom_xchg(c + 2, v);
    o[3] = atom_inc(c + 3);
    o[4] = atom_dec(c + 4);
    o[5] = atom_cmpxchg(c + 5, (long)i, v);
    o[6] = atom_cmpxchg(c + 6, ~(long)i, v);
    o[7] = atom_and(c + 7, v);
    o[8] = atom_or(c + 8, v);
    o[9] = atom_xor(c + 9, v);
    o[10] = atom_min(c + 10, v);
    o[11] = atom_max(c + 11, v);
}

// As atomics_own_long on cells shared by all: add, unsigned min, unsigned max, xor.
kernel void atomics_shared_long(volatile global ulong *cells, global const ulong *in) {
    ulong v = in[get_global_id(0)];
    atom_add(&cells[0], v);
    atom_min(&cells[1], v);
    atom_max(&cells[2], v);
    atom_xor(&cells[3], v);
}

// The shared operations on local memory; out gets 10 words a group:
// add sub inc dec and or xor min max, compare-exchange sum.
kernel void atomics_local(global int *out, global const int *in) {
    local int cells[10];
    uint lid = get_local_id(0);
    if (lid < 10)
        cells[lid] = lid == 4 ? -1 : lid == 7 ? INT_MAX : lid == 8 ? INT_MIN : 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    int v = in[get_global_id(0)];
    atomic_add(&cells[0], v);
    atomic_sub(&cells[1], v);
    atomic_inc(&cells[2]);
    atomic_dec(&cells[3]);
    atomic_and(&cells[4], v);
    atomic_or(&cells[5], v);
    atomic_xor(&cells[6], v);
    atomic_min(&cells[7], v);
    atomic_max(&cells[8], v);
    int old = 0, seen;
    while ((seen = atomic_cmpxchg(&cells[9], old, old + (v & 15))) != old)
        old = seen;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lid < 10)
        out[get_group_id(0) * 10 + lid] = cells[lid];
}

// Each item's own local cell, with old values: add xchg cmpxchg (hit), and the cell at the end.
kernel void atomics_local_own(global uint *out, global const uint *in, local uint *tile) {
    uint i = get_global_id(0), lid = get_local_id(0);
    uint v = in[i];
    tile[lid] = lid;
    global uint *mine = out + i * 4;
    mine[0] = atomic_add(&tile[lid], v);
    mine[1] = atomic_xchg(&tile[lid], v ^ 0x1234);
    mine[2] = atomic_cmpxchg(&tile[lid], v ^ 0x1234, v + 9);
    mine[3] = tile[lid];
}

// OpenCL 2.0 atomics with explicit order, scope and a generic pointer.
kernel void atomics_ordered(volatile global atomic_int *counter, global int *slots, global const int *in) {
    int v = in[get_global_id(0)];
    if (v > 0) {
        int at = atomic_fetch_add_explicit(counter, 1, memory_order_relaxed, memory_scope_device);
        slots[at] = v;
    }
    atomic_fetch_max_explicit(counter + 1, v, memory_order_acq_rel, memory_scope_device);
}

// Float maximum and sum through compare-exchange on the bits. Inputs are small whole numbers.
kernel void atomics_float(volatile global uint *cells, global const float *in) {
    float v = in[get_global_id(0)];
    uint old = cells[0], seen;
    while ((seen = atomic_cmpxchg(&cells[0], old, as_uint(as_float(old) + v))) != old)
        old = seen;
    old = cells[1];
    while (as_float(old) < v) {
        seen = atomic_cmpxchg(&cells[1], old, as_uint(v));
        if (seen == old)
            break;
        old = seen;
    }
}
