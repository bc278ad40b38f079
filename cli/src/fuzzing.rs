//! What is fuzzed: what registries say, and components that anybody may have made. Each stands beside what
//! it is about.

pub use crate::component::fuzz::inspect;
pub use crate::fetch::fuzz::oci_manifest;

#[cfg(test)]
mod tests {
    use tenon_inputs::{InputKind, fuzz};

    #[test]
    fn components() {
        fuzz("inspect", InputKind::Bytes, super::inspect);
    }

    #[test]
    fn what_registries_say() {
        fuzz("oci_manifest", InputKind::Text, super::oci_manifest);
    }
}
