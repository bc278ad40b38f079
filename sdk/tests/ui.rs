//! What the compiler says of a plugin that is written wrongly: where, and what to write.

#[test]
fn mistakes_are_explained_where_they_are() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
