// Data exchange between the lanes of a sub-group. Sub-groups are 16 wide where a kernel fixes it.

#pragma OPENCL EXTENSION cl_khr_subgroups : enable
#pragma OPENCL EXTENSION cl_intel_subgroups : enable

#define WIDE16 __attribute__((intel_reqd_sub_group_size(16)))

// Six words an item: sub-group size, maximum size, count, id, lane, enqueued count.
kernel void subgroup_ids(global uint *out) {
    global uint *mine = out + get_global_id(0) * 6;
    mine[0] = get_sub_group_size();
    mine[1] = get_max_sub_group_size();
    mine[2] = get_num_sub_groups();
    mine[3] = get_sub_group_id();
    mine[4] = get_sub_group_local_id();
    mine[5] = get_enqueued_num_sub_groups();
}

// Seven words an item: sum, min, max, inclusive sum, exclusive sum, inclusive max, inclusive min.
WIDE16 kernel void subgroup_reduce(global int *out, global const int *in) {
    size_t i = get_global_id(0);
    int v = in[i];
    global int *mine = out + i * 7;
    mine[0] = sub_group_reduce_add(v);
    mine[1] = sub_group_reduce_min(v);
    mine[2] = sub_group_reduce_max(v);
    mine[3] = sub_group_scan_inclusive_add(v);
    mine[4] = sub_group_scan_exclusive_add(v);
    mine[5] = sub_group_scan_inclusive_max(v);
    mine[6] = sub_group_scan_inclusive_min(v);
}

// Sums of small whole numbers, exact in any order.
WIDE16 kernel void subgroup_reduce_float(global float *sum, global float *smallest, global float *largest,
                                         global const float *in) {
    size_t i = get_global_id(0);
    sum[i] = sub_group_reduce_add(in[i]);
    smallest[i] = sub_group_reduce_min(in[i]);
    largest[i] = sub_group_reduce_max(in[i]);
}

WIDE16 kernel void subgroup_reduce_long(global long *sum, global ulong *largest, global const long *in) {
    size_t i = get_global_id(0);
    sum[i] = sub_group_reduce_add(in[i]);
    largest[i] = sub_group_reduce_max((ulong)in[i]);
}

// Five words an item: gather by index, xor 5, rotate via down, up, broadcast of `lane`.
WIDE16 kernel void subgroup_shuffle(global uint *out, global const uint *in, global const uint *index,
                                    uint lane) {
    size_t i = get_global_id(0);
    uint v = in[i];
    uint k = index[i] & 15;
    global uint *mine = out + i * 5;
    mine[0] = intel_sub_group_shuffle(v, k);
    mine[1] = intel_sub_group_shuffle_xor(v, 5);
    mine[2] = intel_sub_group_shuffle_down(v, v + 1, 3);
    mine[3] = intel_sub_group_shuffle_up(v + 2, v, 3);
    mine[4] = sub_group_broadcast(v, lane & 15);
}

WIDE16 kernel void subgroup_shuffle_wide(global ulong *out, global const ulong *in, global const uint *index) {
    size_t i = get_global_id(0);
    out[i] = intel_sub_group_shuffle(in[i], index[i] & 15);
}

WIDE16 kernel void subgroup_vote(global int *any, global int *all, global const int *in) {
    size_t i = get_global_id(0);
    any[i] = sub_group_any(in[i] > 0) != 0;
    all[i] = sub_group_all(in[i] > 0) != 0;
}

// Reverses each sub-group's block of 32 words with block reads and writes.
WIDE16 kernel void subgroup_block(global uint *out, global const uint *in) {
    uint base = (get_global_id(0) / 16) * 32;
    uint2 v = intel_sub_group_block_read2(in + base);
    uint lane = 15 - get_sub_group_local_id();
    uint2 reversed = (uint2)(intel_sub_group_shuffle(v.y, lane), intel_sub_group_shuffle(v.x, lane));
    intel_sub_group_block_write2(out + base, reversed);
}

// A reduction inside divergent flow: only lanes with positive input take part.
WIDE16 kernel void subgroup_divergent(global int *out, global const int *in) {
    size_t i = get_global_id(0);
    int v = in[i];
    int result = -1;
    if (v > 0)
        result = sub_group_reduce_add(v);
    out[i] = result;
}
