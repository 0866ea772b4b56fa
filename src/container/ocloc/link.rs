//! Links SPIR-V modules into one, which LLVM's bitcode is the form of, and compiles that.

use super::{
    Call, CompileRequest, Compiled, ContainerError, ELF_MAGIC, Files, LOG_NAME, Ocloc, SourceKind,
    c_string,
};

/// First bytes of a SPIR-V module.
pub(super) const SPIRV_MAGIC: &[u8] = b"\x03\x02\x23\x07";
/// First bytes of what the linker makes.
const BITCODE_MAGIC: &[u8] = b"BC\xC0\xDE";
const LINKED: &str = "linked.bc";

impl Ocloc {
    /// Links the source with the modules that came in place of headers, and compiles the result.
    pub(super) fn link(&self, request: &CompileRequest<'_>) -> Result<Compiled, ContainerError> {
        let (code, outputs) = self.call(&linking(request)?)?;
        let bitcode = outputs.iter().find(|o| o.data.starts_with(BITCODE_MAGIC));
        let Some(bitcode) = bitcode.filter(|_| code == 0) else {
            let logs = outputs.iter().filter(|output| output.name == LOG_NAME);
            let log: String = logs
                .map(|output| String::from_utf8_lossy(&output.data).into_owned())
                .collect();
            return Err(ContainerError::CompileFailed {
                name: request.name.to_owned(),
                device: request.device.to_string(),
                code,
                log: log.trim_matches(['\0', '\n']).to_owned(),
            });
        };
        let linked = CompileRequest {
            name: LINKED,
            source: &bitcode.data,
            headers: &[],
            ..*request
        };
        let mut call = Call::new(&linked)?;
        debug_assert_eq!(request.kind, SourceKind::SpirV);
        for argument in &mut call.argv {
            if argument.as_bytes() == b"-spirv_input" {
                *argument = c_string("-llvm_input")?;
            }
        }
        call.magic = ELF_MAGIC;
        let (code, outputs) = self.call(&call)?;
        self.result(request, code, outputs)
    }
}

fn linking(request: &CompileRequest<'_>) -> Result<Call, ContainerError> {
    let others = request.headers.iter().map(|(_, module)| *module);
    let mut source = Files::default();
    let mut argv = vec![c_string("ocloc")?, c_string("link")?];
    for (i, module) in [request.source].into_iter().chain(others).enumerate() {
        let name = format!("{i}.spv");
        source.add(&name, module)?;
        argv.extend([c_string("-file")?, c_string(&name)?]);
    }
    argv.extend([c_string("-out")?, c_string(LINKED)?]);
    Ok(Call {
        argv,
        terminator: 0,
        magic: BITCODE_MAGIC,
        source,
        headers: Files::default(),
    })
}
