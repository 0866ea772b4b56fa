//! Mappings of this process, as the system lists them.

use std::ops::Range;

/// All mappings with their protections, such as `rw-p`.
pub fn all() -> Vec<(Range<u64>, String)> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    maps.lines()
        .map(|line| {
            let mut words = line.split_whitespace();
            let (start, end) = words.next().unwrap().split_once('-').unwrap();
            let number = |s| u64::from_str_radix(s, 16).unwrap();
            (number(start)..number(end), words.next().unwrap().to_owned())
        })
        .collect()
}

/// Protection of the mapping that holds an address.
pub fn protection(address: u64) -> Option<String> {
    all()
        .into_iter()
        .find(|(range, _)| range.contains(&address))
        .map(|(_, p)| p)
}
