//! The functions are those of the contract, and the sizes those of the canonical ABI.

use tenon_exports::{ALIGNMENT, FUNCTIONS};
use wit_parser::abi::AbiVariant;
use wit_parser::{Resolve, SizeAlign, WorldItem};

#[test]
fn every_exported_function_with_parameters_in_memory_has_their_size() {
    let mut resolve = Resolve::default();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../plugin");
    resolve.push_dir(folder).expect("the contract is read");
    let mut sizes = SizeAlign::default();
    sizes.fill(&resolve);

    let mut expected = Vec::new();
    for (_, world) in &resolve.worlds {
        for item in world.exports.values() {
            let WorldItem::Interface { id, .. } = item else {
                panic!("{} exports something other than interfaces", world.name);
            };
            let interface = &resolve.interfaces[*id];
            let name = interface.name.as_deref().expect("interfaces of the contract have names");
            for function in interface.functions.values() {
                let signature = resolve.wasm_signature(AbiVariant::GuestExportAsync, function);
                if signature.indirect_params {
                    let parameters = function.params.iter().map(|parameter| &parameter.ty);
                    let layout = sizes.record(parameters);
                    assert_eq!(layout.align.align_wasm32(), ALIGNMENT, "{}", function.name);
                    expected.push((name, function.name.as_str(), layout.size.size_wasm32()));
                }
            }
        }
    }
    expected.sort();
    expected.dedup();
    let named = FUNCTIONS.iter().map(|(interface, function, size)| {
        (interface.replace('_', "-"), function.to_string(), *size)
    });
    let named: Vec<_> = named.collect();
    let expected: Vec<_> = expected
        .into_iter()
        .map(|(interface, function, size)| (interface.to_string(), function.to_string(), size))
        .collect();
    assert_eq!(named, expected);
}
