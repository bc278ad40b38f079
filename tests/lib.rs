#![doc = include_str!("../README.md")]

#[doc = include_str!("../docs/reference/authoring.md")]
mod authoring {}

#[doc = include_str!("../docs/reference/embedding.md")]
mod embedding {}
