//! Files for profilers, read back as their formats are written down.
use visa_runtime::tools::{CodeInfo, CodeLine, JitDump, PerfMap};

/// A directory that is gone with the value.
struct Dir(std::path::PathBuf);

impl Dir {
    fn new(name: &str) -> Dir {
        let name = format!("visa-runtime-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).unwrap();
        Dir(path)
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Takes a file apart.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn bytes(&mut self, n: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(n);
        self.0 = rest;
        taken
    }

    fn u32(&mut self) -> u32 {
        u32::from_ne_bytes(self.bytes(4).try_into().unwrap())
    }

    fn u64(&mut self) -> u64 {
        u64::from_ne_bytes(self.bytes(8).try_into().unwrap())
    }

    fn string(&mut self) -> &'a str {
        let end = self.0.iter().position(|b| *b == 0).unwrap();
        let text = std::str::from_utf8(self.bytes(end)).unwrap();
        self.bytes(1);
        text
    }
}

fn code<'a>(name: &'a str, bytes: &'a [u8], lines: Vec<CodeLine<'a>>) -> CodeInfo<'a> {
    CodeInfo {
        name,
        address: 0x1000,
        bytes,
        lines,
    }
}

fn line(offset: u32, line: u32) -> CodeLine<'static> {
    let file = "/tmp/k.visaasm";
    CodeLine { offset, file, line }
}

#[test]
fn maps_have_a_line_a_function() {
    let dir = Dir::new("map");
    let map = PerfMap::create_in(&dir.0).unwrap();
    map.add(&code("first", &[0; 17], vec![])).unwrap();
    map.add(&code("sec ond\n", &[0; 1], vec![])).unwrap();
    assert!(
        map.path()
            .ends_with(format!("perf-{}.map", std::process::id()))
    );
    let text = std::fs::read_to_string(map.path()).unwrap();
    assert_eq!(text, "1000 11 first\n1000 1 sec ond\n");
}

#[test]
fn dumps_have_code_and_lines() {
    let dir = Dir::new("dump");
    let dump = JitDump::create(&dir.0).unwrap();
    dump.add(&code("a", &[1, 2, 3], vec![line(0, 7), line(2, 0)]))
        .unwrap();
    dump.add(&code("b\0c", &[9], vec![])).unwrap();
    let name = format!("jit-{}.dump", std::process::id());
    assert!(dump.path().ends_with(&name));
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let marker = maps
        .lines()
        .find(|l| l.ends_with(&name))
        .expect("a mapping that perf sees");
    assert_eq!(marker.split(' ').nth(1), Some("r-xp"));

    let file = std::fs::read(dump.path()).unwrap();
    let mut r = Reader(&file);
    assert_eq!([r.u32(), r.u32(), r.u32()], [0x4A69_5444, 1, 40]);
    let machine = if cfg!(target_arch = "x86_64") {
        62
    } else {
        183
    };
    assert_eq!(
        [r.u32(), r.u32(), r.u32()],
        [machine, 0, std::process::id()]
    );
    let mut time = r.u64();
    assert!(time != 0);
    assert_eq!(r.u64(), 0);
    let mut record = |r: &mut Reader<'_>, id: u32, bytes: usize| {
        assert_eq!([r.u32(), r.u32()], [id, bytes as u32]);
        let at = r.u64();
        assert!(at >= time);
        time = at;
    };
    let place = 8 + 4 + 4 + "/tmp/k.visaasm".len() + 1;
    record(&mut r, 2, 16 + 16 + 2 * place);
    assert_eq!([r.u64(), r.u64()], [0x1000, 2]);
    for (address, line) in [(0x1000, 7), (0x1002, 0)] {
        assert_eq!((r.u64(), r.u32(), r.u32()), (address, line, 0));
        assert_eq!(r.string(), "/tmp/k.visaasm");
    }
    for (index, (name, bytes)) in [("a", &[1, 2, 3][..]), ("b", &[9])].into_iter().enumerate() {
        record(&mut r, 0, 16 + 8 + 32 + name.len() + 1 + bytes.len());
        assert_eq!([r.u32(), r.u32()], [std::process::id(); 2]);
        let words = [0x1000, 0x1000, bytes.len() as u64, index as u64];
        assert_eq!([r.u64(), r.u64(), r.u64(), r.u64()], words);
        assert_eq!(r.string(), name);
        assert_eq!(r.bytes(bytes.len()), bytes);
    }
    assert!(r.0.is_empty());
}
