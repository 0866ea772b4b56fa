// Seconds since 1970 become dates and times as text, by 64-bit and 32-bit divisions

void digits(global uchar *to, uint value, int count) {
    for (int i = count - 1; i >= 0; i--) {
        to[i] = '0' + value % 10;
        value /= 10;
    }
}

kernel void format(global const long *stamps, global uchar *text) {
    size_t g = get_global_id(0);
    global uchar *to = text + g * 20;
    long stamp = stamps[g], days = stamp / 86400;
    int second = stamp % 86400;
    if (second < 0) {
        second += 86400;
        days--;
    }
    // Days since the first of March of the year 0, in periods of 400 years.
    days += 719468;
    int period = (days >= 0 ? days : days - 146096) / 146097;
    uint day = days - (long)period * 146097;
    uint year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
    day -= 365 * year + year / 4 - year / 100;
    uint month = (5 * day + 2) / 153;
    day -= (153 * month + 2) / 5;
    month = month < 10 ? month + 3 : month - 9;
    digits(to, period * 400 + year + (month <= 2), 4);
    to[4] = to[7] = '-';
    digits(to + 5, month, 2);
    digits(to + 8, day + 1, 2);
    to[10] = 'T';
    digits(to + 11, second / 3600, 2);
    to[13] = to[16] = ':';
    digits(to + 14, second / 60 % 60, 2);
    digits(to + 17, second % 60, 2);
    to[19] = 'Z';
}
