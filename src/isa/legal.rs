//! What the columns of a row together say about the types of an instruction's operands.
//!
//! Each function gives the broken rule as words, ready for an error. An operand without an element type (a
//! predicate, an address, `%null`) has type `None` and breaks no rule here.

use super::{OpcodeInfo, Platform, Platforms, Type, TypeClass, disagreement};

impl OpcodeInfo {
    /// A rule that the types of destination and sources break.
    pub fn type_rule(&self, dst: Option<Type>, srcs: &[Option<Type>]) -> Option<String> {
        let outside = |what: String, ty: Option<Type>, class: TypeClass| {
            let ty = ty.filter(|t| !class.contains(*t))?;
            Some(format!(
                "{what} has type `{ty}`; allowed: {}",
                class.describe()
            ))
        };
        outside("the destination".into(), dst, self.dst_types)
            .or_else(|| {
                let mut each = srcs.iter().enumerate();
                each.find_map(|(i, ty)| outside(format!("source {i}"), *ty, self.src_type(i)))
            })
            .or_else(|| self.mixture(dst, srcs).map(str::to_owned))
            .or_else(|| self.conversion(dst, srcs))
    }

    /// Types that do not go together. Where any type may be the destination, it takes no part; conversions have rules
    /// of their own.
    fn mixture(&self, dst: Option<Type>, srcs: &[Option<Type>]) -> Option<&'static str> {
        if self.src_type(0) == TypeClass::Any || !self.pairs.is_empty() {
            return None;
        }
        let dst = dst.filter(|_| self.dst_types != TypeClass::Any);
        let types: Vec<Type> = srcs.iter().copied().chain([dst]).flatten().collect();
        disagreement(&types)
    }

    fn conversion(&self, dst: Option<Type>, srcs: &[Option<Type>]) -> Option<String> {
        let (to, from) = (dst?, srcs.first().copied().flatten()?);
        if self.pairs.is_empty() || self.pairs.contains(&(to, from)) {
            return None;
        }
        let known: Vec<String> = self
            .pairs
            .iter()
            .map(|(to, from)| format!("{to} ← {from}"))
            .collect();
        Some(format!(
            "no conversion of `{from}` to `{to}`; there are {}",
            known.join(", ")
        ))
    }

    /// What does not exist on a platform: the opcode, or it with these operand types.
    pub fn platform_rule(&self, platform: Platform, types: &[Type]) -> Option<String> {
        let missing = |set: Platforms| !set.contains(platform);
        let elsewhere = |what: String, set: Platforms| {
            let there = match set {
                Platforms::NONE => "only on later devices".to_owned(),
                _ => format!("only on {}", set.names()),
            };
            Some(format!("{what} does not exist on {platform}, {there}"))
        };
        if missing(self.platforms) {
            return elsewhere("the instruction".into(), self.platforms);
        }
        for ty in types {
            if missing(ty.platforms()) {
                return elsewhere(format!("type `{ty}`"), ty.platforms());
            }
            let limits = self.limited.iter().find(|(c, _)| c.contains(*ty));
            if let Some((_, set)) = limits.filter(|(_, set)| missing(*set)) {
                return elsewhere(format!("the instruction with type `{ty}`"), *set);
            }
        }
        None
    }
}
