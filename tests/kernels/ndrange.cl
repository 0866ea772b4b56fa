// Everything a work-item can ask about where it is. Written for any shape, also when the
// global size is not a multiple of the local size (OpenCL 2.0 non-uniform groups).

// 26 words an item, at the item's linear index:
// [0..3) global id, [3..6) local id, [6..9) group id, [9..12) global size, [12..15) local size,
// [15..18) enqueued local size, [18..21) global offset, [21..24) group count,
// 24 global linear id, 25 work dimension * 2^16 + local linear id.
kernel void ndrange(global uint *out) {
    size_t x = get_global_id(0) - get_global_offset(0);
    size_t y = get_global_id(1) - get_global_offset(1);
    size_t z = get_global_id(2) - get_global_offset(2);
    size_t linear = (z * get_global_size(1) + y) * get_global_size(0) + x;
    global uint *mine = out + linear * 26;
    for (uint d = 0; d < 3; ++d) {
        mine[d] = get_global_id(d);
        mine[3 + d] = get_local_id(d);
        mine[6 + d] = get_group_id(d);
        mine[9 + d] = get_global_size(d);
        mine[12 + d] = get_local_size(d);
        mine[15 + d] = get_enqueued_local_size(d);
        mine[18 + d] = get_global_offset(d);
        mine[21 + d] = get_num_groups(d);
    }
    mine[24] = get_global_linear_id();
    mine[25] = (get_work_dim() << 16) + get_local_linear_id();
}

// One dimension only: the compiler may leave y and z out of the payload.
kernel void ndrange_1d(global uint *out) {
    size_t i = get_global_id(0);
    out[i - get_global_offset(0)] = i * 1000 + get_local_id(0);
}

kernel void ndrange_2d(global uint *out, uint pitch) {
    size_t x = get_global_id(0), y = get_global_id(1);
    out[y * pitch + x] = (get_group_id(1) << 24) | (get_group_id(0) << 16)
                       | (get_local_id(1) << 8) | get_local_id(0);
}

kernel void ndrange_3d(global uint *out, uint width, uint height) {
    size_t x = get_global_id(0), y = get_global_id(1), z = get_global_id(2);
    out[(z * height + y) * width + x] = x + 100 * y + 10000 * z;
}

// Uses no local id at all: the kernel has no per-thread payload.
kernel void group_only(global uint *out) {
    out[get_group_id(0)] = get_num_groups(0) * 100 + get_group_id(0);
}
