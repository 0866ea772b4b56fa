// Ways to place queens, by backtracking from the first three rows

#define N 12

kernel void solve(global uint *solutions, global uint *nodes) {
    int g = get_global_id(0);
    uint all = (1u << N) - 1;
    uint cols = 0, left = 0, right = 0;
    int prefix = g;
    bool possible = true;
    for (int row = 0; row < 3; row++) {
        uint bit = 1u << (prefix % N);
        prefix /= N;
        if ((cols | left | right) & bit)
            possible = false;
        cols |= bit;
        left = (left | bit) << 1;
        right = (right | bit) >> 1;
    }
    uint found = 0, visited = 0;
    if (possible) {
        uint free[N], c[N], l[N], r[N];
        int row = 3;
        c[row] = cols;
        l[row] = left;
        r[row] = right;
        free[row] = all & ~(cols | left | right);
        while (row >= 3) {
            if (free[row] == 0) {
                row--;
                continue;
            }
            uint bit = free[row] & -free[row];
            free[row] ^= bit;
            visited++;
            if (row == N - 1) {
                found++;
                continue;
            }
            c[row + 1] = c[row] | bit;
            l[row + 1] = (l[row] | bit) << 1;
            r[row + 1] = (r[row] | bit) >> 1;
            row++;
            free[row] = all & ~(c[row] | l[row] | r[row]);
        }
    }
    solutions[g] = found;
    nodes[g] = visited;
}
