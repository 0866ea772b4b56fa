// Functions that ask where they run. A function that calls itself is called through the stack, and reads it from memory.

int weigh(int a, int b) { return a * 31 + b; }

__attribute__((noinline)) int here(int rounds) {
    if (rounds > 0)
        return weigh(here(rounds - 1), rounds);
    int v = (int)get_global_id(0);
    v = weigh(v, (int)get_global_id(1));
    v = weigh(v, (int)get_local_id(0));
    v = weigh(v, (int)get_local_id(1));
    v = weigh(v, (int)get_group_id(0));
    v = weigh(v, (int)get_group_id(1));
    v = weigh(v, (int)get_global_size(0));
    v = weigh(v, (int)get_local_size(0));
    v = weigh(v, (int)get_enqueued_local_size(0));
    v = weigh(v, (int)get_num_groups(1));
    v = weigh(v, (int)get_global_offset(0));
    return weigh(v, (int)get_work_dim());
}

// As deep as each lane says.
kernel void call_ids(global int *out, global const int *in) {
    size_t i = (get_global_id(1) - get_global_offset(1)) * get_global_size(0) + get_global_id(0) - get_global_offset(0);
    out[i] = here(in[i] & 3);
}

__attribute__((noinline)) int deep(int rounds, int i) {
    if (rounds > 0)
        return deep(rounds - 1, i) + 1;
    printf("item %d of %d\n", i, (int)get_global_size(0));
    return i;
}

// Prints where the recursion ends.
kernel void print_deep(global int *out) {
    int i = get_global_id(0);
    out[i] = deep(i & 3, i);
}
