//! Divergent loops whose last lanes run one by one (pass `scalar-tails`): values where nothing faults, and lanes in fault records.

use super::{engine_of, program};
use crate::support::faults_as_text;
use visa_jit::backend::{BackendKind, Choice, OobPolicy, Strategy};
use visa_jit::{Engine, Launch, Program};

const ITEMS: u32 = 96;
/// Bytes of a node of `pointers.cl`: a pointer, a value, and five words.
const NODE: u64 = 32;
/// Where pointers go that leave the list. The same for all engines, whose memory is at different addresses.
const OUTSIDE: u64 = 0x1040;

/// Follows a list for a different number of steps in each lane; every seventh node leads out of memory.
fn chase(engine: &Engine, program: &Program, oob: OobPolicy) -> (Vec<u8>, Vec<String>) {
    let memory = engine.memory();
    let nodes = memory.alloc(NODE * u64::from(ITEMS)).unwrap();
    for i in 0..u64::from(ITEMS) {
        let next = match i % 7 {
            3 => OUTSIDE,
            _ => nodes.address() + NODE * ((5 * i + 1) % u64::from(ITEMS)),
        };
        nodes.write(NODE * i, &next.to_le_bytes()).unwrap();
        nodes
            .write(NODE * i + 8, &(3 * i as u32 + 1).to_le_bytes())
            .unwrap();
    }
    let steps: Vec<u32> = (0..ITEMS).map(|i| i * i % 11).collect();
    let out = memory.alloc_from(&[0xa5u8; 4 * ITEMS as usize]).unwrap();
    let launch = Launch::new([ITEMS, 1, 1])
        .local([ITEMS / 2, 1, 1])
        .threads(1)
        .oob(oob);
    let launch = launch.arg(0, &out).arg(1, &nodes);
    let launch = launch.arg(2, memory.alloc_from(&steps).unwrap());
    let report = program
        .kernel("chase_sum")
        .unwrap()
        .launch(&launch)
        .unwrap();
    let counted = format!("{} in all", report.fault_count);
    let faults = faults_as_text(&report.faults).into_iter();
    (out.to_vec(), faults.chain([counted]).collect())
}

#[test]
fn last_lanes_do_as_all_do() {
    let definition = engine_of(None);
    for device in ["skl", "bmg-26"] {
        let interpreted = program(&definition, device, "pointers");
        for backend in BackendKind::ALL {
            if backend.available().is_err() {
                continue;
            }
            let engine = engine_of(Some(Strategy::from(*backend)));
            let compiled = program(&engine, device, "pointers");
            for oob in [
                OobPolicy::ReadZeroSkipWrite,
                OobPolicy::Report,
                OobPolicy::Trap,
            ] {
                let want = chase(&definition, &interpreted, oob);
                assert!(oob != OobPolicy::Report || want.1.len() > 20, "{want:?}");
                let ours = chase(&engine, &compiled, oob);
                assert_eq!(ours, want, "{device} {backend:?} {oob:?}");
            }
        }
    }
}
