//! Components of any bytes.

use super::*;

/// Any bytes. They are a component of which all can be shown, or it is said why they are none.
pub fn inspect(data: &[u8]) {
    match Component::read(data) {
        Ok(component) => {
            let _ = component.wit();
            assert!(
                component.exports.is_sorted() && component.imports.is_sorted_by_key(|i| &i.import)
            );
            assert_eq!(component.import_names().len(), component.imports.len());
            assert!(component.worlds.is_empty() || component.contract.is_some());
            assert_eq!(component.metadata["size"], data.len());
        }
        Err(problem) => assert!(!problem.trim().is_empty(), "it is none for no reason"),
    }
}
