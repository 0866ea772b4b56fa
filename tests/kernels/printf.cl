// What kernels print. Integers and floats are given, so that nothing is folded away.

kernel void print_hello(global int *out) {
    uint i = get_global_id(0);
    if (i % 3 == 0)
        printf("lane %u of %d\n", i, (int)get_global_size(0));
    out[i] = i;
}

kernel void print_integers(global const int *in, long wide, char small, short middle) {
    int i = get_global_id(0);
    int v = in[i];
    printf("%i %u %o %x %X|%5d|%-5d|%05d|%+d|% d|%#x|%#o|%.3d\n", v, v, v, v, v, v, v, v, v, v, v, v, v);
    printf("%ld %lu %lx %hd %hu %hhd %hhu\n", wide, wide, wide, middle, middle, small, small);
}

kernel void print_floats(global const float *in) {
    int i = get_global_id(0);
    float v = in[i];
    printf("%f %F %e %E %g %G %a %A\n", v, v, v, v, v, v, v, v);
    printf("|%8.3f|%-10.2e|%+g|%#g|%08.1f|\n", v, v, v, v, v);
}

constant char text[] = "table text";

kernel void print_strings(char small) {
    int i = get_global_id(0);
    printf("%c%c %s %10s|%-6s|%.2s %% %s\n", 'a' + i, small, "constant", "right", "left", "cut", text);
    printf("%s item, %p\n", i == 1 ? "one" : "another", (global void *)0);
    printf("no arguments\n");
}

kernel void print_vectors(global const float4 *f, global const int4 *n) {
    int i = get_global_id(0);
    printf("%v4hlf %.2v4hlf|%v4hld\n", f[i], f[i], n[i]);
    printf("%v2hlx %v3hld\n", n[i].xy, n[i].xyz);
    printf("%v8hhd %v16hhx\n", (char8)(1, 2, 3, 4, 5, 6, -7, (char)i), (uchar16)(i));
    printf("%v2hd %v2ld\n", (short2)(-1, i), (long2)(-5, i));
}

// Items print different numbers of lines, in step.
kernel void print_loop(local int *turn) {
    int i = get_local_id(0);
    for (int k = 0; k < i; k++)
        printf("%d.%d\n", i, k);
    turn[i] = i;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (i == 0)
        printf("group %d of %d items\n", (int)get_group_id(0), turn[get_local_size(0) - 1] + 1);
}
