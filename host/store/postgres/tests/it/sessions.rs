//! What is kept for sessions that nobody ends.

use postgres::{Client, NoTls};
use tenon_store::{Bucket, Quota, StateStore as _};

use super::connect;
use super::server::Server;

pub(crate) const TESTS: &[(&str, super::Test)] =
    &[("sessions_that_nobody_has_used_for_long_are_forgotten", forgotten)];

fn forgotten(server: &Server) {
    let url = server.database();
    let quota = Quota { keys: 10, bytes: 1_000 };
    let buckets = [Bucket::session("a", "old"), Bucket::session("a", "new"), Bucket::user("a")];
    let store = connect(&url);
    for bucket in &buckets {
        store.set(bucket, "k", b"v", quota).expect("there is room");
    }
    let mut client = Client::connect(&url, NoTls).expect("it answers");
    let aged = "UPDATE tenon_buckets SET changed = now() - INTERVAL '91 days'
        WHERE scope = 'user' OR name = convert_to('old', 'UTF8')";
    assert_eq!(client.execute(aged, &[]).expect("it is changed"), 2);
    let kept = |store: &dyn tenon_store::StateStore| {
        buckets.each_ref().map(|bucket| store.get(bucket, "k").expect("it is read").is_some())
    };
    assert_eq!(kept(&store), [true, true, true]);
    // A host that begins forgets them.
    assert_eq!(kept(&connect(&url)), [false, true, true]);
}
