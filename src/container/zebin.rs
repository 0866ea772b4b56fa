//! Zebin files: kernels with their vISA text and launch information, data, symbols and relocations.

use std::collections::{HashMap, HashSet};

use super::elf::{CopyBudget, Elf};
use super::error::ContainerError;
use super::sections::{
    read_build_options, read_data, read_relocations, read_symbols, read_target, utf8,
};
use super::ze_info::{FunctionInfo, KernelInfo, ZeInfo};
use crate::isa::Versions;

const VISA_SECTION: &str = ".visaasm";
const SPIRV_SECTION: &str = ".spv";
/// What modules of SPIR-V begin with.
const SPIRV_MAGIC: [u8; 4] = [0x03, 0x02, 0x23, 0x07];
pub(super) const NATIVE_PREFIX: &str = ".text.";

/// From an ELF section index to an index in [`Zebin::data`].
pub(super) type SectionMap = HashMap<usize, usize>;

/// A zebin, read completely.
#[derive(Clone, Debug)]
pub struct Zebin {
    /// Kernels in the order of `.ze_info`; may be empty.
    pub kernels: Vec<ZebinKernel>,
    /// Stack-call functions, in file order.
    pub functions: Vec<ZebinFunction>,
    /// Everything `.ze_info` says; empty when the file has none.
    pub ze_info: ZeInfo,
    /// Program-scope variables and strings.
    pub data: Vec<DataSection>,
    /// The symbol table; entry 0 is ELF's null symbol, so that indices agree with the file's.
    pub symbols: Vec<Symbol>,
    /// Relocations of every section, in file order.
    pub relocations: Vec<Relocation>,
    /// What the file says about the device it was compiled for.
    pub target: Target,
    /// Options the compiler was called with, when recorded.
    pub build_options: Option<String>,
}

/// vISA text and where it stands in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VisaText {
    /// The text; its `.kernel` directive reads `"kernel"` whatever the kernel's name.
    pub text: String,
    /// ELF section index.
    pub section_index: usize,
    /// ELF section name.
    pub section_name: String,
    /// Offset of the first byte in the file.
    pub file_offset: u64,
}

/// A kernel.
#[derive(Clone, Debug)]
pub struct ZebinKernel {
    /// Name, from `.ze_info`.
    pub name: String,
    /// Its vISA.
    pub visa: VisaText,
    /// How to launch it.
    pub info: KernelInfo,
}

/// A stack-call function.
#[derive(Clone, Debug)]
pub struct ZebinFunction {
    /// Name, from the section `.visaasm.<name>`.
    pub name: String,
    /// Its vISA.
    pub visa: VisaText,
    /// Index of the kernel it was compiled with: the one whose text precedes it. Two kernels may each have
    /// their own copy. Address-taken functions belong to the symbol-table pseudo-kernel.
    pub owner: Option<usize>,
    /// Its `.ze_info` entry; only externally visible functions have one.
    pub info: Option<FunctionInfo>,
}

/// What a data section is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DataKind {
    /// `.data.const`, `.bss.const`: program-scope constants.
    Const,
    /// `.data.const.string`: format strings.
    ConstString,
    /// `.data.global`, `.bss.global`: program-scope variables.
    Global,
    /// Any other `.data*` or `.bss*` section.
    Other,
}

/// A section of program-scope data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataSection {
    /// Section name.
    pub name: String,
    /// What it is for.
    pub kind: DataKind,
    /// ELF section index.
    pub section_index: usize,
    /// Initial contents; shorter than `size` where the rest starts as zeros.
    pub bytes: Vec<u8>,
    /// Size in memory.
    pub size: u64,
    /// Alignment in memory, as the file states it (the compiler writes 0).
    pub align: u64,
}

/// A symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// Name, as `faddr` in vISA spells it.
    pub name: String,
    /// What it names.
    pub kind: SymbolKind,
    /// Whether other modules may refer to it.
    pub is_global: bool,
    /// Where it lies.
    pub place: SymbolPlace,
    /// Offset in its section.
    pub value: u64,
    /// Size in bytes.
    pub size: u64,
}

/// What a symbol names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SymbolKind {
    /// A kernel or function.
    Function,
    /// A variable.
    Object,
    /// Anything else.
    Other,
}

/// Where a symbol lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SymbolPlace {
    /// Defined elsewhere.
    Undefined,
    /// In [`Zebin::data`].
    Data(usize),
    /// In another section (native code, mostly), by ELF index.
    Section(usize),
    /// Absolute, common or otherwise special.
    Special,
}

/// One relocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relocation {
    /// What it patches.
    pub place: RelocationPlace,
    /// Offset in the patched section. Against a kernel this is native code and of no use for vISA.
    pub offset: u64,
    /// How.
    pub kind: RelocationKind,
    /// Index in [`Zebin::symbols`]; `None` for the null symbol.
    pub symbol: Option<usize>,
    /// Number to add to the symbol's address; `None` means the patched bytes hold it.
    pub addend: Option<i64>,
}

/// What a relocation patches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RelocationPlace {
    /// Native code of a kernel, by index in [`Zebin::kernels`].
    Kernel(usize),
    /// A data section, by index in [`Zebin::data`].
    Data(usize),
    /// Another section, by ELF index.
    Section(usize),
}

/// How a relocation patches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RelocationKind {
    /// Type 1: the 64-bit address.
    Address,
    /// Type 2: bits 31:0 of the address.
    AddressLow32,
    /// Type 3: bits 63:32 of the address.
    AddressHigh32,
    /// Type 4: the offset of the per-thread payload.
    PerThreadPayloadOffset,
    /// Any other type.
    Other(u32),
}

/// What the file says about its device. See [`infer_device`](super::infer_device).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Target {
    /// `e_machine`: 205 (Intel graphics) in every file seen.
    pub elf_machine: u16,
    /// `e_type`: 1 in every file seen; older compilers wrote 0xff12 and others.
    pub elf_type: u16,
    /// `e_flags`: 0 in every file seen.
    pub elf_flags: u32,
    /// Product family, note type 1 of `.note.intelgt.compat`.
    pub product_family: Option<u32>,
    /// Core family, note type 2; the compiler writes 0 where it gives the product instead.
    pub gfx_core: Option<u32>,
    /// Target metadata, note type 3: bits 12:8 lowest and 20:16 highest hardware revision, 23:21 generator.
    pub metadata: Option<u32>,
    /// Version of the zebin format, note type 4.
    pub zebin_version: Option<String>,
}

impl Zebin {
    /// Reads a zebin whose `.ze_info` is of a known version.
    ///
    /// ```
    /// use visa_jit::container::{Blame, Zebin};
    /// let error = Zebin::parse(b"CTNI....").unwrap_err();
    /// assert_eq!(error.blame(), Blame::Input);
    /// assert!(error.to_string().contains("--format zebin"));
    /// ```
    pub fn parse(bytes: &[u8]) -> Result<Self, ContainerError> {
        Self::parse_with(bytes, Versions::Known)
    }

    /// Reads a zebin whose `.ze_info` is of one of these versions.
    ///
    /// # Errors
    /// As [`Zebin::parse`].
    pub fn parse_with(bytes: &[u8], versions: Versions) -> Result<Self, ContainerError> {
        let elf = Elf::parse(bytes)?;
        let mut budget = CopyBudget::new(bytes.len());
        let (ze_info, has_ze_info) = read_ze_info(&elf, versions)?;
        let texts = read_visa_texts(&elf, &mut budget)?;
        let natives = native_names(&elf);
        check_order(&ze_info, &natives)?;
        if texts.is_empty() && !(ze_info.kernels.is_empty() && natives.is_empty()) {
            let kernels = if has_ze_info {
                ze_info.kernels.len()
            } else {
                natives.len()
            };
            return Err(ContainerError::MissingVisa { kernels });
        }
        if !texts.is_empty() && !has_ze_info {
            return Err(ContainerError::Inconsistent(
                "vISA text but no .ze_info section".to_owned(),
            ));
        }
        let (kernels, functions) = pair(&ze_info, texts)?;
        let data = read_data(&elf, &mut budget)?;
        let places: SectionMap = data
            .iter()
            .enumerate()
            .map(|(index, section)| (section.section_index, index))
            .collect();
        let symbols = read_symbols(&elf, &places, &mut budget)?;
        let relocations = read_relocations(&elf, &ze_info, &places, symbols.len())?;
        Ok(Self {
            kernels,
            functions,
            ze_info,
            data,
            symbols,
            relocations,
            target: read_target(&elf)?,
            build_options: read_build_options(&elf, &mut budget)?,
        })
    }

    /// The SPIR-V module that a zebin was made of and carries with it, in the section `.spv`; files without vISA text have one too.
    /// None if there is none, or the file cannot be read.
    pub fn spirv(bytes: &[u8]) -> Option<Vec<u8>> {
        let elf = Elf::parse(bytes).ok()?;
        let section = elf.sections.iter().find(|s| s.name == SPIRV_SECTION)?;
        let is_module = section.data.starts_with(&SPIRV_MAGIC);
        is_module.then(|| section.data.to_vec())
    }

    /// The kernel of this name.
    pub fn kernel(&self, name: &str) -> Option<&ZebinKernel> {
        self.kernels.iter().find(|kernel| kernel.name == name)
    }

    /// Kernels that can be launched, which excludes the compiler's symbol-table pseudo-kernel.
    pub fn launchable(&self) -> impl Iterator<Item = &ZebinKernel> {
        self.kernels
            .iter()
            .filter(|kernel| !kernel.info.is_symbol_table())
    }

    /// The function `name` as kernel number `caller` sees it: its own copy, else an address-taken one.
    pub fn function(&self, caller: usize, name: &str) -> Option<&ZebinFunction> {
        let named = || {
            self.functions
                .iter()
                .filter(|function| function.name == name)
        };
        let shared = |function: &&ZebinFunction| {
            let owner = function.owner.and_then(|owner| self.kernels.get(owner));
            owner.is_none_or(|owner| owner.info.is_symbol_table())
        };
        named()
            .find(|function| function.owner == Some(caller))
            .or_else(|| named().find(shared))
    }

    /// Whether some function of this name had its address taken, so that every kernel sees it.
    pub fn is_shared(&self, name: &str) -> bool {
        self.functions.iter().any(|function| {
            let owner = function.owner.and_then(|owner| self.kernels.get(owner));
            function.name == name && owner.is_none_or(|owner| owner.info.is_symbol_table())
        })
    }

    /// The variable `name`: its data section (index in [`Zebin::data`]) and offset there.
    pub fn variable(&self, name: &str) -> Option<(usize, u64)> {
        self.symbols.iter().find_map(|symbol| match symbol.place {
            SymbolPlace::Data(section) if symbol.name == name => Some((section, symbol.value)),
            _ => None,
        })
    }
}

fn read_ze_info(elf: &Elf<'_>, versions: Versions) -> Result<(ZeInfo, bool), ContainerError> {
    let mut found = elf
        .sections
        .iter()
        .filter(|section| section.name == ".ze_info");
    let Some(section) = found.next() else {
        return Ok((ZeInfo::default(), false));
    };
    if found.next().is_some() {
        return Err(ContainerError::Inconsistent(
            "more than one .ze_info section".to_owned(),
        ));
    }
    Ok((ZeInfo::parse(utf8(section)?, versions)?, true))
}

/// Every vISA text, with the name after `.visaasm.` where there is one.
fn read_visa_texts(
    elf: &Elf<'_>,
    budget: &mut CopyBudget,
) -> Result<Vec<(Option<String>, VisaText)>, ContainerError> {
    let mut texts = Vec::new();
    for section in &elf.sections {
        let Some(rest) = section.name.strip_prefix(VISA_SECTION) else {
            continue;
        };
        let name = match rest.strip_prefix('.') {
            Some(name) => Some(name.to_owned()),
            None if rest.is_empty() => None,
            None => continue,
        };
        let text = utf8(section)?;
        budget.charge(text.len().saturating_add(section.name.len()))?;
        texts.push((
            name,
            VisaText {
                text: text.to_owned(),
                section_index: section.index,
                section_name: section.name.to_owned(),
                file_offset: section.file_offset,
            },
        ));
    }
    Ok(texts)
}

/// Names of the native code sections, in file order.
fn native_names<'d>(elf: &Elf<'d>) -> Vec<&'d str> {
    elf.sections
        .iter()
        .filter_map(|section| section.name.strip_prefix(NATIVE_PREFIX))
        .collect()
}

/// Kernels are paired with texts by position, so the two lists of names in the file must agree on it.
fn check_order(ze_info: &ZeInfo, natives: &[&str]) -> Result<(), ContainerError> {
    if natives.is_empty()
        || ze_info
            .kernels
            .iter()
            .map(|kernel| kernel.name.as_str())
            .eq(natives.iter().copied())
    {
        return Ok(());
    }
    let position = ze_info
        .kernels
        .iter()
        .zip(natives)
        .position(|(kernel, native)| kernel.name != **native)
        .unwrap_or(ze_info.kernels.len().min(natives.len()));
    let named = |name: Option<&str>| name.map_or("nothing".to_owned(), |name| format!("`{name}`"));
    Err(ContainerError::Inconsistent(format!(
        ".ze_info and the .text sections list kernels differently: entry {position} is {} in one and {} in the other",
        named(
            ze_info
                .kernels
                .get(position)
                .map(|kernel| kernel.name.as_str())
        ),
        named(natives.get(position).copied()),
    )))
}

/// Pairs texts with kernels: unnamed texts by position, named ones by name; the rest are functions.
fn pair(
    ze_info: &ZeInfo,
    texts: Vec<(Option<String>, VisaText)>,
) -> Result<(Vec<ZebinKernel>, Vec<ZebinFunction>), ContainerError> {
    let by_name: HashMap<&str, usize> = ze_info
        .kernels
        .iter()
        .enumerate()
        .map(|(index, kernel)| (kernel.name.as_str(), index))
        .collect();
    let named: HashSet<usize> = texts
        .iter()
        .filter_map(|(name, _)| by_name.get(name.as_deref()?).copied())
        .collect();
    let mut unnamed = (0..ze_info.kernels.len()).filter(|index| !named.contains(index));
    let info_of: HashMap<&str, &FunctionInfo> = ze_info
        .functions
        .iter()
        .map(|info| (info.name.as_str(), info))
        .collect();
    let mut slots: Vec<Option<VisaText>> = vec![None; ze_info.kernels.len()];
    let mut functions = Vec::new();
    let mut owner = None;
    for (name, visa) in texts {
        let kernel = match &name {
            None => Some(
                unnamed
                    .next()
                    .ok_or_else(|| too_many(ze_info.kernels.len()))?,
            ),
            Some(name) => by_name.get(name.as_str()).copied(),
        };
        match (kernel, name) {
            (Some(kernel), _) => {
                owner = Some(kernel);
                match slots.get_mut(kernel) {
                    Some(slot @ None) => *slot = Some(visa),
                    _ => return Err(too_many(ze_info.kernels.len())),
                }
            }
            (None, name) => {
                let name = name.unwrap_or_default();
                let info = info_of.get(name.as_str()).map(|info| (*info).clone());
                functions.push(ZebinFunction {
                    name,
                    visa,
                    owner,
                    info,
                });
            }
        }
    }
    // The holder of address-taken functions has no text when its functions were all inlined, and is never launched.
    let mut kept = vec![None; slots.len()];
    let mut kernels = Vec::new();
    for ((info, visa), kept) in ze_info.kernels.iter().zip(slots).zip(&mut kept) {
        let Some(visa) = visa else {
            if info.is_symbol_table() {
                continue;
            }
            let missing = format!("kernel `{}` has no vISA text", info.name);
            return Err(ContainerError::Inconsistent(missing));
        };
        *kept = Some(kernels.len());
        kernels.push(ZebinKernel {
            name: info.name.clone(),
            visa,
            info: info.clone(),
        });
    }
    for function in &mut functions {
        function.owner = function
            .owner
            .and_then(|owner| kept.get(owner).copied().flatten());
    }
    Ok((kernels, functions))
}

fn too_many(kernels: usize) -> ContainerError {
    ContainerError::Inconsistent(format!(
        "more vISA texts of kernels than the {kernels} kernel(s) of .ze_info"
    ))
}
