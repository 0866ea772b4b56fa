//! Lines in parts: what instructions that access some of their words leave.

use super::*;

/// Lines whose even and odd words are accessed by different instructions, again and again, need no cells: reads, and writes after them, also of fewer words,
/// from words in the middle of a line on, too.
#[test]
fn even_and_odd_words_need_no_cells() {
    if !is_x86_feature_detected!("avx512f") || !is_x86_feature_detected!("avx512vl") {
        return;
    }
    const LOCAL: u64 = 0x1000;
    let memory = Memory::Local(LOCAL);
    let mut races = Races::new(None).unwrap();
    races.start_launch([1; 3], 0..0);
    for group in 0..3 {
        races.start_group();
        for repeated in 0..3 {
            for (site, writes, words) in [
                (1, false, 0x5555_5555),
                (2, false, 0x5555_5555),
                (3, true, 0x1151_5115),
                (4, true, 0x1151_5115),
            ] {
                let does = Does {
                    writes,
                    atomic: false,
                };
                let now = races.now(memory, 1, site, does);
                // The partners of the first ones, each by the lane of the word before it.
                let at = LOCAL + if site % 2 == 0 { 4 } else { 0 };
                assert!(races.words(memory, &now, at, (31, words), 0));
                let (shadow, _) = races.shadow(memory);
                let seen = (shadow.in_parts(0..32), shadow.in_cells(0..32));
                assert_eq!(seen, (8, vec![false; 8]), "{group} {repeated} {site}");
            }
        }
        let writes = Does {
            writes: true,
            atomic: false,
        };
        let other = races.now(memory, 2, 5, writes);
        for (word, site, lane) in [(0, 3, 0), (1, 4, 0), (6, 1, 6), (7, 2, 6), (29, 4, 28)] {
            let found = races.conflict(memory, &other, (LOCAL + 4 * word, 4));
            let who = races.who(found.unwrap(), [0; 3]);
            assert_eq!((who.site, who.lane), (site, lane), "word {word}");
        }
    }
}

/// A few accesses to any words of a line of which nothing is known, and what is known then of each word.
#[test]
fn parts_of_lines_are_cells() {
    if !is_x86_feature_detected!("avx512f") || !is_x86_feature_detected!("avx512vl") {
        return;
    }
    const LOCAL: u64 = 0x1000;
    let memory = Memory::Local(LOCAL);
    let mut rng = Rng::new(17);
    let [mut parts, mut cells] = [(); 2].map(|()| Races::new(None).unwrap());
    let mut parted = 0;
    for line in 0..4000 {
        let at = LOCAL + 16 * (line % 64);
        if line % 64 == 0 {
            for races in [&mut parts, &mut cells] {
                races.start_launch([1; 3], 0..0);
                races.start_group();
                races.launch = races.group;
            }
        }
        let threads = 1 + rng.below(2);
        for site in 0..2 + rng.below(4) as u32 {
            let does = Does {
                writes: rng.below(3) == 0,
                atomic: false,
            };
            let thread = rng.below(threads) as u32;
            let words = 1 + rng.below(15) as u64;
            let now = parts.now(memory, thread, site, does);
            let known = cells.now(memory, thread, site, does);
            let one_by_one = |races: &mut Races, now: &Now| {
                let words = (0..4).filter(|word| words >> word & 1 != 0);
                let each =
                    words.map(|word| races.element(memory, now, (at + 4 * word, 4), word as u32));
                each.collect::<Vec<_>>()
            };
            let wanted = one_by_one(&mut cells, &known);
            if !parts.words(memory, &now, at, (4, words), 0) {
                assert_eq!(one_by_one(&mut parts, &now), wanted);
            }
        }
        let (shadow, first) = parts.shadow(memory);
        let word = (at - first) / WORD;
        parted += shadow.in_parts(word..word + 4);
        let writes = Does {
            writes: true,
            atomic: false,
        };
        let [mut found, mut wanted] = [&mut parts, &mut cells].map(|races| {
            let other = races.now(memory, 7, 7, writes);
            move |word: u64| races.conflict(memory, &other, (at + 4 * word, 4))
        });
        for word in 0..4 {
            assert_eq!(found(word), wanted(word), "line {line}, word {word}");
        }
    }
    assert!(parted > 500, "{parted}");
}
