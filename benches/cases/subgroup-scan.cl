// Running sums and maxima of groups by sub-groups

#pragma OPENCL EXTENSION cl_khr_subgroups : enable

kernel void scan(global const int *in, global int *sums, global int *maxima, global int *over, int limit) {
    local int total[256], most[256], any[256];
    int value = in[get_global_id(0)];
    uint sg = get_sub_group_id();
    int sum = sub_group_scan_inclusive_add(value);
    int high = max(sub_group_scan_exclusive_max(value), value);
    int above = sub_group_any(value > limit);
    int top = sub_group_broadcast(high, get_sub_group_size() - 1);
    if (get_sub_group_local_id() == get_sub_group_size() - 1) {
        total[sg] = sum;
        most[sg] = top;
        any[sg] = above;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = 0; i < sg; i++) {
        sum += total[i];
        high = max(high, most[i]);
    }
    sums[get_global_id(0)] = sum;
    maxima[get_global_id(0)] = high;
    if (get_local_id(0) == 0) {
        int found = 0;
        for (uint i = 0; i < get_num_sub_groups(); i++)
            found |= any[i];
        over[get_group_id(0)] = found ? 1 : -1;
    }
}
