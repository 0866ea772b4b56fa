// Local alignment of proteins with a table of scores and affine gaps, one pair a work-item

#define QUERY 32

kernel void align(global const uchar *queries, global const uchar *targets, int length, constant char *scores, int open,
                  int extend, global int *best, global int *ends) {
    int g = get_global_id(0);
    short h[QUERY + 1], gap[QUERY + 1];
    uchar query[QUERY];
    for (int i = 0; i <= QUERY; i++) {
        h[i] = 0;
        gap[i] = -1000;
    }
    for (int i = 0; i < QUERY; i++)
        query[i] = queries[g * QUERY + i] - 'A';
    int most = 0, end = -1;
    for (int t = 0; t < length; t++) {
        int row = (targets[g * length + t] - 'A') * 26;
        int diagonal = 0, left = -1000;
        for (int i = 1; i <= QUERY; i++) {
            int e = max(h[i] - open, gap[i] - extend);
            left = max(h[i - 1] - open, left - extend);
            int score = max(max(diagonal + scores[row + query[i - 1]], 0), max(e, left));
            diagonal = h[i];
            h[i] = score;
            gap[i] = e;
            if (score > most) {
                most = score;
                end = t * QUERY + i - 1;
            }
        }
    }
    best[g] = most;
    ends[g] = end;
}
