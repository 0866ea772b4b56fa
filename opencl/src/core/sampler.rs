//! Samplers.

use visa_runtime::{Addressing, Comparison, SamplerState};

use super::context::Context;
use super::error::{Cl, err};
use super::object::Ref;
use crate::abi::{
    CL_ADDRESS_CLAMP, CL_ADDRESS_CLAMP_TO_EDGE, CL_ADDRESS_MIRRORED_REPEAT, CL_ADDRESS_NONE,
    CL_ADDRESS_REPEAT, CL_FILTER_LINEAR, CL_FILTER_NEAREST, CL_INVALID_VALUE, cl_addressing_mode,
    cl_filter_mode,
};

/// How images are sampled.
pub struct Sampler {
    /// Whose it is.
    pub context: Ref<Context>,
    /// Whether coordinates run from 0 to 1.
    pub normalized: bool,
    /// Coordinates beyond the edges.
    pub addressing: cl_addressing_mode,
    /// Whether neighbours are mixed.
    pub filter: cl_filter_mode,
    /// The list of properties it was made with.
    pub given: Vec<u64>,
    /// The same for the engine.
    pub state: SamplerState,
}

impl Sampler {
    /// A sampler.
    ///
    /// # Errors
    /// `CL_INVALID_VALUE` for what does not exist.
    pub fn new(
        context: Ref<Context>,
        normalized: bool,
        addressing: cl_addressing_mode,
        filter: cl_filter_mode,
        given: Vec<u64>,
    ) -> Cl<Sampler> {
        let linear = match filter {
            CL_FILTER_NEAREST => false,
            CL_FILTER_LINEAR => true,
            _ => return err(CL_INVALID_VALUE),
        };
        let around = match addressing {
            CL_ADDRESS_NONE => Addressing::None,
            CL_ADDRESS_CLAMP_TO_EDGE => Addressing::Edge,
            CL_ADDRESS_CLAMP => Addressing::Border,
            CL_ADDRESS_REPEAT if normalized => Addressing::Repeat,
            CL_ADDRESS_MIRRORED_REPEAT if normalized => Addressing::Mirror,
            _ => return err(CL_INVALID_VALUE),
        };
        Ok(Sampler {
            context,
            normalized,
            addressing,
            filter,
            given,
            state: SamplerState {
                addressing: around,
                linear,
                normalized,
                comparison: Comparison::Never,
            },
        })
    }
}
