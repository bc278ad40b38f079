//! The way of messages to a client.

use tokio::sync::mpsc;

/// Where messages for a client go, each of them one line of JSON. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Outlet(mpsc::Sender<String>);

impl Outlet {
    /// An outlet that holds so many messages, and what comes out of it.
    pub(crate) fn new(most: usize) -> (Self, mpsc::Receiver<String>) {
        let (sender, receiver) = mpsc::channel(most);
        (Self(sender), receiver)
    }

    /// An outlet that nothing comes out of.
    pub(crate) fn closed_one() -> Self {
        Self::new(1).0
    }

    /// Sends a message that may get lost: news of which a client that reads too slowly misses some.
    pub(crate) fn tell(&self, message: String) {
        let _ = self.0.try_send(message);
    }

    /// Sends a message that must arrive, and waits for its place. Gives whether the client is still there.
    pub(crate) async fn send(&self, message: String) -> bool {
        self.0.send(message).await.is_ok()
    }

    /// Waits until nobody takes messages any more.
    pub(crate) async fn closed(&self) {
        self.0.closed().await;
    }
}
