//! Compilation ahead of time: kernels as they go into object files.

use super::error::Error;
use super::fault::compiled_site;
use super::kernel::Kernel;
use super::linked::policy_name;
use crate::artifact::object::{ObjectKernel, descriptor_symbol, identifier};
use crate::backend::{Backend, CodegenOptions, OobPolicy};
use crate::lower::LocalIdShape;
use crate::ssa::Site;
use visa_runtime::LocalIdLayout;
use visa_runtime::linked::{KernelRecord, SiteRecord, SlotSource, Variant, digest, encode_data};

impl Kernel {
    /// Compiles for an object file, for any target of the code generator: for any launch, and again for launches whose lanes lie in rows.
    ///
    /// # Errors
    /// When the kernel cannot be compiled, or needs of its caller what a program without a compiler does not do.
    pub fn ahead_of_time(
        &self,
        backend: &dyn Backend,
        oob: OobPolicy,
    ) -> Result<ObjectKernel, Error> {
        self.unchecked("code compiled ahead of time")?;
        let plan = self.plan().clone();
        if let Some(what) = &plan.unsupported {
            return Err(self.unsupported(what));
        }
        let data = self
            .uses_variables()
            .then(|| encode_data(&self.parts().data.image));
        let data = data.transpose().map_err(|e| self.unsupported(e))?;
        let identity = backend.identity();
        let Some(mut features) = backend.needs() else {
            // The runtime could not tell whether a processor has what the code uses.
            let name = identity.name;
            return Err(self.unsupported(format_args!("code of {name} for this processor alone")));
        };
        features.sort_unstable();
        let codegen = CodegenOptions {
            oob,
            ..self.codegen(oob)
        };
        let any = (LocalIdShape::General, LocalIdLayout::Any, "any");
        let shapes = if self.walks_rows() {
            vec![
                (LocalIdShape::FullRow, LocalIdLayout::FullRows, "full_rows"),
                (LocalIdShape::Row, LocalIdLayout::Rows, "rows"),
                any,
            ]
        } else {
            vec![any]
        };
        let (mut variants, mut codes, mut lines) = (Vec::new(), Vec::new(), Vec::new());
        for (shape, lanes, suffix) in shapes {
            let artifact = self.generate(backend, shape, &codegen)?;
            variants.push(Variant {
                lanes,
                symbol: format!("visa_jit_code_{}_{suffix}", identifier(self.name())),
                meta: artifact.meta,
                code_bytes: artifact.code.len() as u64,
                code_digest: digest(&artifact.code),
                sites: artifact.sites.iter().map(site_record).collect(),
            });
            codes.push((artifact.code, artifact.align));
            lines.push(artifact.lines);
        }
        let record = KernelRecord {
            name: self.name().to_owned(),
            symbol: descriptor_symbol(self.name()),
            device: self.parts().manifest.key.device.device().to_owned(),
            triple: identity.triple.to_string(),
            features,
            backend: identity.name.to_owned(),
            oob: policy_name(oob).to_owned(),
            data_digest: data.as_deref().map(digest),
            plan,
            variants,
        };
        Ok(ObjectKernel {
            record,
            codes,
            lines,
            text: self.parts().engine.0.options.tools.text,
            data,
        })
    }

    /// Whether code or arguments have addresses of program-scope variables.
    fn uses_variables(&self) -> bool {
        let plan = self.plan();
        let mut slots = plan.slots.iter();
        !plan.data_bindings.is_empty()
            || slots.any(|slot| matches!(slot.source, SlotSource::Data { .. }))
    }

    fn unsupported(&self, what: impl std::fmt::Display) -> Error {
        Error::Unsupported {
            kernel: self.name().into(),
            what: format!("{what} in a kernel that is compiled ahead of time"),
        }
    }
}

fn site_record(site: &Site) -> SiteRecord {
    let place = compiled_site(site);
    SiteRecord {
        line: place.line,
        opcode: place.opcode.to_owned(),
        access: place.access.to_owned(),
        space: place.space.to_owned(),
        surface: place.surface,
        bytes: place.bytes,
    }
}
