//! The operands of an instruction one by one, for everything that treats them alike whatever instruction they belong to:
//! linking renumbers them, validation checks that they exist and fit.

use super::inst::*;
use super::operand::{Dst, Origin, Predicate, Raw, Src};
use super::vars::{AddrId, LabelId, PredId, SamplerId, SurfaceId, VarId};

/// Makes an enum of operands and the function that visits them; `mut` or nothing makes them changeable or not.
macro_rules! operands {
    ($name:ident, $visit:ident, $what:literal $(, $mut:tt)?) => {
        #[doc = $what]
        #[derive(Debug)]
        pub enum $name<'a> {
            /// The predicate in front.
            Guard(&'a $($mut)? Predicate),
            /// A destination of as many elements as the instruction has lanes.
            Dst(&'a $($mut)? Dst),
            /// A destination of one element.
            ScalarDst(&'a $($mut)? Dst),
            /// A source that is read for each lane.
            Src(&'a $($mut)? Src),
            /// A source of one element, whatever the execution size.
            Scalar(&'a $($mut)? Src),
            /// A payload that says where a message goes: addresses, offsets or coordinates. It is read.
            Address(&'a $($mut)? Raw),
            /// Another payload, or a matrix, that is read.
            Read(&'a $($mut)? Raw),
            /// A payload or matrix that is written.
            Written(&'a $($mut)? Raw),
            /// Elements from an origin on that are read: one of a surface, a stride or a coordinate; the A matrix of `dpas`.
            Element(&'a $($mut)? Origin),
            /// A surface.
            Surface(&'a $($mut)? SurfaceId),
            /// A sampler.
            Sampler(&'a $($mut)? SamplerId),
            /// A label, defined or branched to.
            Label(&'a $($mut)? LabelId),
            /// A general variable without its contents (`lifetime`).
            Var(&'a $($mut)? VarId),
            /// An address variable without its contents.
            AddressVar(&'a $($mut)? AddrId),
            /// A predicate variable without its contents.
            PredVar(&'a $($mut)? PredId),
        }

        impl Inst {
            /// Visits all operands: the guard first, the others in the order of the text, but what a store writes to memory
            /// after its address.
            pub fn $visit<'a>(&'a $($mut)? self, mut f: impl FnMut($name<'a>)) {
                use $name as O;
                let stores = self.stores();
                let data = |r: &'a $($mut)? Raw| if stores { O::Read(r) } else { O::Written(r) };
                if let Some(p) = &$($mut)? self.pred {
                    f(O::Guard(p));
                }
                match &$($mut)? self.body {
                    Body::Alu(Alu { dst, dst2, srcs, .. }) => {
                        f(O::Dst(dst));
                        dst2.into_iter().for_each(|d| f(O::Dst(d)));
                        srcs.into_iter().for_each(|s| f(O::Src(s)));
                    }
                    Body::Label(l) | Body::Branch(l) => f(O::Label(l)),
                    Body::SwitchJmp { index, targets } => {
                        f(O::Scalar(index));
                        targets.into_iter().for_each(|l| f(O::Label(l)));
                    }
                    Body::Ifcall { addr, .. } => f(O::Src(addr)),
                    Body::Faddr { dst, .. } => f(O::ScalarDst(dst)),
                    Body::Mem(mem) => mem.$visit(stores, &mut f),
                    Body::Svm(svm) => svm.$visit(stores, &mut f),
                    Body::Lsc(Lsc { surface, addr, stride, data: r, src1, src2, .. }) => {
                        if let LscSurface::Var(o) = surface {
                            f(O::Element(o));
                        }
                        f(O::Address(addr));
                        if let Some(LscScalar::Var(o)) = stride {
                            f(O::Element(o));
                        }
                        f(data(r));
                        [src1, src2].into_iter().for_each(|r| f(O::Read(r)));
                    }
                    Body::LscBlock2d(LscBlock2d { address, data: r, .. }) => {
                        match address {
                            BlockAddress::Operands(all) => {
                                for o in all {
                                    if let LscScalar::Var(o) = o {
                                        f(O::Element(o));
                                    }
                                }
                            }
                            BlockAddress::Payload { payload, .. } => f(O::Address(payload)),
                        }
                        f(data(r));
                    }
                    Body::LscTyped(LscTyped { surface, coords, data: r, src1, src2, .. }) => {
                        if let LscSurface::Var(o) = surface {
                            f(O::Element(o));
                        }
                        coords.into_iter().for_each(|c| f(O::Address(c)));
                        f(data(r));
                        [src1, src2].into_iter().for_each(|r| f(O::Read(r)));
                    }
                    Body::Sample(Sample { aoffimmi, sampler, surface, dst, params, .. }) => {
                        aoffimmi.into_iter().for_each(|a| f(O::Scalar(a)));
                        sampler.into_iter().for_each(|s| f(O::Sampler(s)));
                        f(O::Surface(surface));
                        f(O::Written(dst));
                        params.into_iter().for_each(|r| f(O::Address(r)));
                    }
                    Body::RawSend(RawSend { ex_desc, desc, src0, src1, dst, .. }) => {
                        [ex_desc, desc].into_iter().for_each(|s| f(O::Scalar(s)));
                        [src0, src1].into_iter().for_each(|r| f(O::Read(r)));
                        f(O::Written(dst));
                    }
                    Body::Dpas(Dpas { dst, src0, src1, src2, .. }) => {
                        f(O::Written(dst));
                        [src0, src1].into_iter().for_each(|r| f(O::Read(r)));
                        f(O::Element(src2));
                    }
                    Body::Wait(s) => f(O::Scalar(s)),
                    Body::Nbarrier { id, step } => {
                        f(O::Scalar(id));
                        match step {
                            NamedBarrier::Wait => {}
                            NamedBarrier::Signal { threads } => f(O::Scalar(threads)),
                            NamedBarrier::SignalAs { role, producers, consumers } => {
                                [role, producers, consumers].into_iter().for_each(|s| f(O::Scalar(s)));
                            }
                        }
                    }
                    Body::Lifetime { var, .. } => match var {
                        LifetimeVar::General(v) => f(O::Var(v)),
                        LifetimeVar::Address(a) => f(O::AddressVar(a)),
                        LifetimeVar::Pred(p) => f(O::PredVar(p)),
                    },
                    Body::Ret
                    | Body::Fcall { .. }
                    | Body::LscFence { .. }
                    | Body::Fence(_)
                    | Body::Nullary
                    | Body::Sbarrier(_)
                    | Body::File(_)
                    | Body::Loc(_) => {}
                }
            }
        }

        impl Mem {
            fn $visit<'a>(&'a $($mut)? self, stores: bool, f: &mut impl FnMut($name<'a>)) {
                use $name as O;
                let data = |r: &'a $($mut)? Raw| if stores { O::Read(r) } else { O::Written(r) };
                f(O::Surface(&$($mut)? self.surface));
                match &$($mut)? self.kind {
                    MemKind::Oword { offset, data: r, .. } => {
                        f(O::Scalar(offset));
                        f(data(r));
                    }
                    MemKind::Media { x, y, data: r, .. } => {
                        f(O::Scalar(x));
                        f(O::Scalar(y));
                        f(data(r));
                    }
                    MemKind::Gather { global, offsets, data: r, .. }
                    | MemKind::Gather4Scaled { global, offsets, data: r, .. }
                    | MemKind::GatherScaled { global, offsets, data: r, .. } => {
                        f(O::Scalar(global));
                        f(O::Address(offsets));
                        f(data(r));
                    }
                    MemKind::Typed { coords, data: r, .. } => {
                        coords.into_iter().for_each(|c| f(O::Address(c)));
                        f(data(r));
                    }
                    MemKind::DwordAtomic { offsets, src0, src1, dst, .. } => {
                        f(O::Address(offsets));
                        [src0, src1].into_iter().for_each(|r| f(O::Read(r)));
                        f(O::Written(dst));
                    }
                    MemKind::TypedAtomic { coords, src0, src1, dst, .. } => {
                        coords.into_iter().for_each(|c| f(O::Address(c)));
                        [src0, src1].into_iter().for_each(|r| f(O::Read(r)));
                        f(O::Written(dst));
                    }
                    MemKind::Qword { offsets, data: r, .. } => {
                        f(O::Address(offsets));
                        f(data(r));
                    }
                }
            }
        }

        impl Svm {
            fn $visit<'a>(&'a $($mut)? self, stores: bool, f: &mut impl FnMut($name<'a>)) {
                use $name as O;
                let data = |r: &'a $($mut)? Raw| if stores { O::Read(r) } else { O::Written(r) };
                match self {
                    Svm::Block { addr, data: r, .. } => {
                        f(O::Scalar(addr));
                        f(data(r));
                    }
                    Svm::Gather { addrs, data: r, .. } => {
                        f(O::Address(addrs));
                        f(data(r));
                    }
                    Svm::Gather4Scaled { base, offsets, data: r, .. } => {
                        f(O::Scalar(base));
                        f(O::Address(offsets));
                        f(data(r));
                    }
                    Svm::Atomic { addrs, src0, src1, dst, .. } => {
                        f(O::Address(addrs));
                        [src0, src1].into_iter().for_each(|r| f(O::Read(r)));
                        f(O::Written(dst));
                    }
                }
            }
        }
    };
}

operands!(Operand, operands, "An operand of an instruction.");
operands!(
    OperandMut,
    operands_mut,
    "An operand of an instruction, to be changed.",
    mut
);
