//! The HTTP server of the conformance suite, for tests that need no more of the suite.

pub(crate) use tenon_conformance::server::Server;

pub(crate) async fn serve() -> Server {
    Server::start().await.expect("there is a port")
}
