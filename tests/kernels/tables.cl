// Tables at program scope: constant, written, zeroed, and of pointers to each other.

constant uint squares[16] = {0, 1, 4, 9, 16, 25, 36, 49, 64, 81, 100, 121, 144, 169, 196, 225};
constant ushort odd[8] = {1, 3, 5, 7, 9, 11, 13, 15};
constant float halves[4] = {0.5f, 1.5f, 2.5f, 3.5f};
constant char letters[] = "program scope";

kernel void table_read(global uint *out, global const uint *in) {
    int i = get_global_id(0);
    uint v = in[i];
    out[4 * i + 0] = squares[v % 16];
    out[4 * i + 1] = odd[v % 8];
    out[4 * i + 2] = as_uint(halves[v % 4]);
    out[4 * i + 3] = letters[v % 13];
}

// Pointers between variables: relocations in the data itself.
typedef struct node {
    int value;
    global struct node *next;
} node;

global int numbers[4] = {11, 22, 33, 44};
global node last = {300, 0};
global node middle = {200, &last};
global node first = {100, &middle};
global int *global cells[3] = {&numbers[2], &middle.value, numbers};
constant uint *constant places[2] = {&squares[4], squares};

kernel void table_walk(global int *out, global const int *steps) {
    int i = get_global_id(0);
    global node *at = &first;
    for (int k = 0; k < steps[i] && at->next; k++)
        at = at->next;
    out[3 * i] = at->value;
    out[3 * i + 1] = *cells[steps[i] % 3];
    out[3 * i + 2] = places[steps[i] % 2][2];
}

// Zero at first, written by one kernel, read by another.
global uint sums[4];
global uint base = 1000;

kernel void table_count(global const uint *in) {
    uint v = in[get_global_id(0)];
    atomic_add((volatile global uint *)&sums[v & 3], v + base);
}

kernel void table_sums(global uint *out) {
    for (int k = 0; k < 4; k++)
        out[k] = sums[k];
    base = 2000;
}
