// Atomics of floats, as cl_ext_float_atomics has them. *_shared and *_local: all items meet on few cells, and in one order or another
// results are exact, as values are small whole numbers. *_own: each item has its own cells, so that old values are known too.

#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#pragma OPENCL EXTENSION cl_khr_fp64 : enable

#define ORDER memory_order_relaxed, memory_scope_device

// cells[0..4): sum, difference, least, greatest.
#define ADD_SHARED(T, A)                                                            \
    kernel void add_shared_##T(volatile global A *cells, global const T *in) {      \
        T v = in[get_global_id(0)];                                                 \
        atomic_fetch_add_explicit(&cells[0], v, ORDER);                             \
        atomic_fetch_sub_explicit(&cells[1], v, ORDER);                             \
        atomic_fetch_min_explicit(&cells[2], v, ORDER);                             \
        atomic_fetch_max_explicit(&cells[3], v, ORDER);                             \
    }                                                                               \
    kernel void add_local_##T(global T *out, global const T *in) {                  \
        local A cells[4];                                                           \
        uint l = get_local_id(0);                                                   \
        if (l < 4)                                                                  \
            atomic_store_explicit(&cells[l], (T)(l * 3), ORDER);                    \
        barrier(CLK_LOCAL_MEM_FENCE);                                               \
        T v = in[get_global_id(0)];                                                 \
        atomic_fetch_add_explicit(&cells[0], v, ORDER);                             \
        atomic_fetch_sub_explicit(&cells[1], v, ORDER);                             \
        atomic_fetch_min_explicit(&cells[2], v, ORDER);                             \
        atomic_fetch_max_explicit(&cells[3], v, ORDER);                             \
        barrier(CLK_LOCAL_MEM_FENCE);                                               \
        if (l < 4)                                                                  \
            out[4 * get_group_id(0) + l] = atomic_load_explicit(&cells[l], ORDER);  \
    }                                                                               \
    kernel void add_own_##T(volatile global A *cells, global T *old, global const T *in) { \
        uint i = get_global_id(0);                                                  \
        old[2 * i] = atomic_fetch_add_explicit(&cells[2 * i], in[i], ORDER);        \
        old[2 * i + 1] = atomic_fetch_sub_explicit(&cells[2 * i + 1], in[i], ORDER); \
    }

// cells[0..2): least, greatest. Own cells: exchanged, stored, least, greatest.
#define MIN_MAX(T, A)                                                               \
    kernel void min_max_shared_##T(volatile global A *cells, global const T *in) {  \
        T v = in[get_global_id(0)];                                                 \
        atomic_fetch_min_explicit(&cells[0], v, ORDER);                             \
        atomic_fetch_max_explicit(&cells[1], v, ORDER);                             \
    }                                                                               \
    kernel void min_max_local_##T(global T *out, global const T *in) {              \
        local A cells[2];                                                           \
        uint l = get_local_id(0);                                                   \
        if (l < 2)                                                                  \
            atomic_store_explicit(&cells[l], (T)(l * 3), ORDER);                    \
        barrier(CLK_LOCAL_MEM_FENCE);                                               \
        T v = in[get_global_id(0)];                                                 \
        atomic_fetch_min_explicit(&cells[0], v, ORDER);                             \
        atomic_fetch_max_explicit(&cells[1], v, ORDER);                             \
        barrier(CLK_LOCAL_MEM_FENCE);                                               \
        if (l < 2)                                                                  \
            out[2 * get_group_id(0) + l] = atomic_load_explicit(&cells[l], ORDER);  \
    }                                                                               \
    kernel void min_max_own_##T(volatile global A *cells, global T *old, global const T *in) { \
        uint i = get_global_id(0);                                                  \
        volatile global A *c = cells + 4 * i;                                       \
        old[4 * i] = atomic_exchange_explicit(c, in[i], ORDER);                     \
        old[4 * i + 1] = atomic_load_explicit(c + 1, ORDER);                        \
        atomic_store_explicit(c + 1, in[i], ORDER);                                 \
        old[4 * i + 2] = atomic_fetch_min_explicit(c + 2, in[i], ORDER);            \
        old[4 * i + 3] = atomic_fetch_max_explicit(c + 3, in[i], ORDER);            \
    }

ADD_SHARED(float, atomic_float)
MIN_MAX(float, atomic_float)
#ifdef cl_khr_fp64
ADD_SHARED(double, atomic_double)
MIN_MAX(double, atomic_double)
#endif
MIN_MAX(half, atomic_half)
