//! What is fuzzed: what becomes of a server's answers, and of what it says in HTTP. Each stands beside
//! what it is about.

pub use crate::convert::fuzz::tool_result;
#[cfg(feature = "http")]
pub use crate::transport::fuzz::http;

#[cfg(test)]
mod tests {
    use tenon_inputs::{InputKind, fuzz};

    #[test]
    fn results() {
        fuzz("tool_result", InputKind::Text, super::tool_result);
    }

    #[cfg(feature = "http")]
    #[test]
    fn answers_over_http() {
        fuzz("http", InputKind::Bytes, super::http);
    }
}
