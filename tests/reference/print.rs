//! What the kernels of `printf.cl` print. Items of a thread print one after the other, each `printf` for all of them before the next.

use std::fmt::Write as _;

/// `print_hello` on a given number of items.
pub fn hello(items: u32) -> String {
    (0..items).step_by(3).fold(String::new(), |mut text, i| {
        let _ = writeln!(text, "lane {i} of {items}");
        text
    })
}

/// `print_loop`: threads of `simd` items, and the last line at the barrier.
pub fn repeated(groups: u32, items: u32, simd: u32) -> String {
    let mut text = String::new();
    for group in 0..groups {
        for first in (0..items).step_by(simd as usize) {
            let end = items.min(first + simd);
            for k in 0..end {
                for i in first.max(k + 1)..end {
                    let _ = writeln!(text, "{i}.{k}");
                }
            }
        }
        let _ = writeln!(text, "group {group} of {items} items");
    }
    text
}

/// `print_integers` on 0, 1, -1 and 42, the greatest and the least number, in groups of three, as the C library prints it.
pub const INTEGERS: &str = "\
0 0 0 0 0|    0|0    |00000|+0| 0|0|0|000\n\
1 1 1 1 1|    1|1    |00001|+1| 1|0x1|01|001\n\
-1 4294967295 37777777777 ffffffff FFFFFFFF|   -1|-1   |-0001|-1|-1|0xffffffff|037777777777|-001\n\
-5000000000 18446744068709551616 fffffffed5fa0e00 -1000 64536 -3 253\n\
-5000000000 18446744068709551616 fffffffed5fa0e00 -1000 64536 -3 253\n\
-5000000000 18446744068709551616 fffffffed5fa0e00 -1000 64536 -3 253\n\
42 42 52 2a 2A|   42|42   |00042|+42| 42|0x2a|052|042\n\
2147483647 2147483647 17777777777 7fffffff 7FFFFFFF|2147483647|2147483647|2147483647|+2147483647| 2147483647|0x7fffffff|017777777777|2147483647\n\
-2147483648 2147483648 20000000000 80000000 80000000|-2147483648|-2147483648|-2147483648|-2147483648|-2147483648|0x80000000|020000000000|-2147483648\n\
-5000000000 18446744068709551616 fffffffed5fa0e00 -1000 64536 -3 253\n\
-5000000000 18446744068709551616 fffffffed5fa0e00 -1000 64536 -3 253\n\
-5000000000 18446744068709551616 fffffffed5fa0e00 -1000 64536 -3 253\n\
";

/// `print_floats` on 0, -1.5, 123456 and infinity, as the C library prints it.
pub const FLOATS: &str = "\
0.000000 0.000000 0.000000e+00 0.000000E+00 0 0 0x0p+0 0X0P+0\n\
-1.500000 -1.500000 -1.500000e+00 -1.500000E+00 -1.5 -1.5 -0x1.8p+0 -0X1.8P+0\n\
123456.000000 123456.000000 1.234560e+05 1.234560E+05 123456 123456 0x1.e24p+16 0X1.E24P+16\n\
inf INF inf INF inf INF inf INF\n\
|   0.000|0.00e+00  |+0|0.00000|000000.0|\n\
|  -1.500|-1.50e+00 |-1.5|-1.50000|-00001.5|\n\
|123456.000|1.23e+05  |+123456|123456.|123456.0|\n\
|     inf|inf       |+inf|inf|     inf|\n\
";

/// What the kernels of `assert.cl` say of failing items in one group.
pub fn assertions(kernel: &str, items: &[u32]) -> String {
    let (place, condition) = match kernel {
        "assert_range" => ("assert.cl:34: assert_range", "in[i] <= limit"),
        _ => ("assert.cl:17: doubled", "a <= limit"),
    };
    items.iter().fold(String::new(), |mut text, i| {
        let ids = format!("global id: [{i},0,0], local id: [{i},0,0]");
        let _ = writeln!(text, "{place}: {ids} Assertion `{condition}` failed.");
        text
    })
}

/// `print_strings` on three items, as the C library prints it.
pub const STRINGS: &str = "\
az constant      right|left  |cu % table text\n\
bz constant      right|left  |cu % table text\n\
cz constant      right|left  |cu % table text\n\
another item, (nil)\n\
one item, (nil)\n\
another item, (nil)\n\
no arguments\n\
no arguments\n\
no arguments\n\
";

/// `print_vectors`, as the C library prints it.
pub const VECTORS: &str = "\
1.000000,-2.500000,0.000000,10000000000.000000 1.00,-2.50,0.00,10000000000.00|1,2,3,4\n\
0.100000,0.200000,0.300000,0.400000 0.10,0.20,0.30,0.40|-1,255,256,-2147483648\n\
1,2 1,2,3\n\
ffffffff,ff -1,255,256\n\
1,2,3,4,5,6,-7,0 0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0\n\
1,2,3,4,5,6,-7,1 1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1\n\
-1,0 -5,0\n\
-1,1 -5,1\n\
";
