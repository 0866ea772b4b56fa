// Pointers that do not say where they point, pointers in memory, narrow members, copies of a group.

int bump(int *at, int by) {
    int old = *at;
    *at = old + by;
    return old;
}

// One pointer, local for odd items and global for even ones.
kernel void generic_both(global int *out, global int *in, local int *tile) {
    int i = get_global_id(0), l = get_local_id(0);
    tile[l] = 1000 + l;
    barrier(CLK_LOCAL_MEM_FENCE);
    int *at = in[i] & 1 ? (int *)&tile[l] : (int *)&in[i];
    int old = bump(at, 7);
    barrier(CLK_LOCAL_MEM_FENCE);
    out[2 * i] = old;
    out[2 * i + 1] = tile[l];
}

typedef struct node {
    global struct node *next;
    int value;
    int spare[5];
} node;

kernel void chase_link(global node *nodes, global const uint *next) {
    int i = get_global_id(0);
    nodes[i].next = &nodes[next[i]];
    nodes[i].value = 3 * i + 1;
}

kernel void chase_sum(global int *out, global node *nodes, global const uint *steps) {
    int i = get_global_id(0), sum = 0;
    global node *at = &nodes[i];
    for (uint k = 0; k < steps[i]; k++) {
        sum += at->value;
        at = at->next;
    }
    out[i] = sum;
}

typedef struct {
    global char *a;
    global short *b;
    global uchar *c;
    global ushort *d;
} arrays_of;

void put(arrays_of s, int from, uint to) {
    s.c[to] = s.a[from] ^ 0x55;
    s.d[to] = s.b[from] * 3;
    if (from % 3 == 0)
        s.c[to] += s.d[to];
}

kernel void arrays(global char *a, global short *b, global uchar *c, global ushort *d, global const uint *permutation) {
    int i = get_global_id(0);
    arrays_of s = {a, b, c, d};
    put(s, i, permutation[i]);
}

kernel void group_copy(global float *out, global const float *in, local float *tile) {
    int n = get_local_size(0), l = get_local_id(0);
    int first = get_group_id(0) * n;
    event_t e = async_work_group_copy(tile, in + first, n, 0);
    wait_group_events(1, &e);
    tile[n + l] = 2 * tile[n - 1 - l];
    barrier(CLK_LOCAL_MEM_FENCE);
    e = async_work_group_copy(out + first, tile + n, n, 0);
    wait_group_events(1, &e);
}

kernel void group_copy_strided(global uint *out, global const uint *in, uint stride, local uint *tile) {
    int n = get_local_size(0), l = get_local_id(0);
    int first = get_group_id(0) * n;
    event_t e = async_work_group_strided_copy(tile, in + first * stride, n, stride, 0);
    wait_group_events(1, &e);
    out[first + l] = tile[l] + 1;
}
