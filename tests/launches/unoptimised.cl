// Built by ocloc 22.43 for skl with -options -cl-opt-disable -internal_options -ze-emit-zebin-visa-sections.
float4 f(float4 r) {
    return r;
}

kernel void k(global float4 *a, global float4 *b, const int n) {
    int bx = get_group_id(0);
    if (bx * get_local_size(0) + get_local_id(0) < n / 4) {
        float4 r = a[bx * get_local_size(0) + get_local_id(0)];
        b[bx * get_local_size(0) + get_local_id(0)] = f(r);
    }
}
