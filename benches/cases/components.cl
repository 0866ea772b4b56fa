// Connected components by hooking and pointer jumping

kernel void hook(global const int *from, global const int *to, global int *label) {
    int e = get_global_id(0);
    int a = label[from[e]], b = label[to[e]];
    if (a == b)
        return;
    int high = max(a, b), low = min(a, b);
    atomic_min(&label[high], low);
}

kernel void jump(global int *label) {
    int i = get_global_id(0);
    int l = label[i];
    while (label[l] != l)
        l = label[l];
    label[i] = l;
}
