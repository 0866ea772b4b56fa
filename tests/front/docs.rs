//! Generated documentation is up to date.

#[test]
fn isa_md_is_fresh() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/isa.md");
    let text = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        text == visa_jit::isa::doc::markdown(),
        "docs/isa.md is stale: run `cargo run -p xtask -- docs`"
    );
}
