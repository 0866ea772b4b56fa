// Lines are matched by a table of states and characters

#define DEAD 0
#define ACCEPT 63

kernel void match(global const uchar *text, int length, global const ushort *table, global ushort *matches, global int *ends) {
    int line = get_global_id(0);
    global const uchar *s = text + line * length;
    ushort state = 1;
    ushort found = 0;
    int i;
    for (i = 0; i < length; i++) {
        uchar c = s[i];
        if (c >= 128)
            break;
        state = table[state * 128 + c];
        if (state == DEAD)
            break;
        if (state == ACCEPT)
            found++;
    }
    matches[line] = found;
    ends[line] = i;
}
