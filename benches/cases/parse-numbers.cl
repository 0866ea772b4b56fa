// Decimal numbers in text become integers with three decimals

bool is_digit(uchar c) {
    return c >= '0' && c <= '9';
}

kernel void parse(global const uchar *text, int length, global long *sums, global int *counts) {
    int g = get_global_id(0);
    global const uchar *s = text + g * length;
    long sum = 0;
    int count = 0, at = 0;
    while (at < length) {
        uchar c = s[at];
        bool negative = c == '-' && at + 1 < length && is_digit(s[at + 1]);
        if (!negative && !is_digit(c)) {
            at++;
            continue;
        }
        if (negative)
            at++;
        ulong value = 0;
        while (at < length && is_digit(s[at]))
            value = value * 10 + (s[at++] - '0');
        value *= 1000;
        if (at + 1 < length && s[at] == '.' && is_digit(s[at + 1])) {
            ulong scale = 100;
            at++;
            while (at < length && is_digit(s[at])) {
                value += scale * (s[at++] - '0');
                scale /= 10;
            }
        }
        sum += negative ? -(long)value : (long)value;
        count++;
    }
    sums[g] = sum;
    counts[g] = count;
}
