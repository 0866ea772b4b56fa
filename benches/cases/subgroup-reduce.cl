// Sums by sub-groups and then by atomics

#pragma OPENCL EXTENSION cl_khr_subgroups : enable
kernel void reduce(global const int *in, global int *out) {
    int sum = sub_group_reduce_add(in[get_global_id(0)]);
    if (get_sub_group_local_id() == 0)
        atomic_add(&out[get_group_id(0) & 63], sum);
}
