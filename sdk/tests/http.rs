//! HTTP requests, answered by the scripted host.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use tenon_sdk::http::{self, Method};
use tenon_sdk::testing::{Host, HttpAnswer};
use tenon_sdk::{Error, ErrorCode, json, sleep};

const URL: &str = "https://api.test/v1?key=secret";

fn send(host: &Host, request: http::RequestBuilder) -> Result<http::Response, Error> {
    host.run(request.send())
}

#[test]
fn a_request_is_sent_as_it_was_made() {
    let host = Host::new().http("POST https://api.test/*", 204);
    let request = http::post("https://api.test/notes?a=1")
        .header("x-number", 7)
        .bearer_auth("word")
        .query("q", "ä b")
        .json(&json!({ "text": "hi" }))
        .timeout(Duration::from_secs(5));
    assert_eq!(send(&host, request).unwrap().status, 204);
    let request = host.requests().remove(0);
    assert_eq!(request.method, Method::Post);
    assert_eq!(request.url.as_str(), "https://api.test/notes?a=1&q=%C3%A4+b");
    assert_eq!(request.header("X-Number"), Some("7"));
    assert_eq!(request.header("authorization"), Some("Bearer word"));
    assert_eq!(request.header("content-type"), Some("application/json"));
    assert!(request.header("user-agent").is_some_and(|agent| agent.starts_with("tenon-rust/")));
    assert_eq!(request.json(), Some(json!({ "text": "hi" })));
    assert_eq!(request.timeout, Some(Duration::from_secs(5)));
}

#[test]
fn a_header_of_the_author_stands() {
    let host = Host::new().http("https://api.test/*", 204);
    let request = http::put(URL)
        .header("User-Agent", "mine")
        .header("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
        .form([("a", "1"), ("b", "x y")]);
    send(&host, request).unwrap();
    let request = host.requests().remove(0);
    assert_eq!(request.headers.len(), 2);
    assert_eq!(request.text(), Some("a=1&b=x+y"));
}

#[test]
fn a_body_is_read_in_many_ways() {
    let answer = HttpAnswer::new(200).body(r#"{"a":"#).body("").body("1}");
    let host = Host::new().http("https://api.test/*", answer);
    let get = || send(&host, http::get(URL)).unwrap();
    assert_eq!(host.run(get().text()).unwrap(), r#"{"a":1}"#);
    assert_eq!(host.run(get().bytes()).unwrap(), br#"{"a":1}"#);
    assert_eq!(host.run(get().json::<tenon_sdk::Value>()).unwrap(), json!({ "a": 1 }));
    assert_eq!(host.run(get().read(3)).unwrap(), (br#"{"a"#.to_vec(), true));
    let mut response = get();
    let chunks = host.run(async {
        let mut chunks = Vec::new();
        while let Some(chunk) = response.chunk().await.unwrap() {
            chunks.push(chunk);
        }
        chunks
    });
    assert_eq!(chunks, [r#"{"a":"#, "1}"].map(Vec::from));
    let other = host.run(get().json::<u32>()).unwrap_err();
    assert_eq!(other.code, ErrorCode::Failed);
    assert!(
        other.message.starts_with("https://api.test/v1: the answer is unexpected: "),
        "{other:?}"
    );
    let short = send(&host, http::get(URL).max_bytes(6)).unwrap();
    let expected = Error::failed("https://api.test/v1: the answer is longer than 6 bytes");
    assert_eq!(host.run(short.text()).unwrap_err(), expected);
}

#[test]
fn what_is_not_granted_is_refused_with_the_line_that_requests_it() {
    let host = Host::new().http("POST https://api.test/*", 200);
    let error = send(&host, http::get(URL)).err().unwrap();
    assert_eq!(error.code, ErrorCode::Denied);
    let line = "network = [\"https://api.test/*\"]";
    assert!(error.message.contains(line) && !error.message.contains("secret"), "{error:?}");
    assert!(host.requests().is_empty());
}

#[test]
fn a_status_is_an_error_where_the_author_asks() {
    let check = |answer: HttpAnswer, expected: Option<(ErrorCode, Option<u64>)>| {
        let status = answer.clone();
        let host = Host::new().http("https://api.test/*", answer);
        let response = send(&host, http::get(URL).retries(0)).unwrap();
        let error = response.error_for_status().err();
        let found = error.as_ref().map(|error| (error.code, error.retry_after));
        assert_eq!(found, expected, "{status:?}");
        if let Some(error) = error {
            assert!(error.message.starts_with("GET https://api.test/v1 answered "), "{error:?}");
        }
    };
    check(HttpAnswer::new(204), None);
    check(HttpAnswer::new(304), None);
    check(HttpAnswer::new(404), Some((ErrorCode::NotFound, None)));
    check(HttpAnswer::new(403), Some((ErrorCode::Denied, None)));
    check(HttpAnswer::new(418), Some((ErrorCode::Failed, None)));
    check(HttpAnswer::new(500), Some((ErrorCode::Unavailable, None)));
    let busy = HttpAnswer::new(429).header("Retry-After", "3");
    check(busy, Some((ErrorCode::Unavailable, Some(3000))));
}

#[test]
fn a_request_is_sent_again_where_that_may_help() {
    // The request, the answers before 200, and how many requests and milliseconds that takes.
    let check = |request: http::RequestBuilder, before: Vec<HttpAnswer>, status, count, millis| {
        let host = before
            .into_iter()
            .chain([HttpAnswer::new(200)])
            .fold(Host::new(), |host, answer| host.http("https://api.test/*", answer));
        assert_eq!(send(&host, request).unwrap().status, status);
        assert_eq!((host.requests().len(), host.elapsed().as_millis()), (count, millis));
    };
    let busy = || HttpAnswer::new(503);
    check(http::get(URL), vec![], 200, 1, 0);
    check(http::get(URL), vec![busy()], 200, 2, 200);
    check(http::get(URL), vec![busy(), busy()], 200, 3, 600);
    check(http::get(URL), vec![busy(), busy(), busy()], 503, 3, 600);
    check(http::get(URL), vec![busy().header("retry-after", "7")], 200, 2, 7000);
    check(http::get(URL), vec![busy().header("retry-after", "31")], 503, 1, 0);
    check(http::get(URL), vec![HttpAnswer::new(500)], 500, 1, 0);
    check(http::get(URL).retries(0), vec![busy()], 503, 1, 0);
    check(http::post(URL), vec![busy()], 503, 1, 0);
    check(http::post(URL).retries(1), vec![HttpAnswer::new(429)], 200, 2, 200);
    check(http::delete(URL), vec![HttpAnswer::new(502), HttpAnswer::new(504)], 200, 3, 600);
}

#[test]
fn a_server_that_cannot_be_reached_is_asked_again() {
    let refused = Error::unavailable("https://api.test/v1: the connection was refused");
    let host =
        Host::new().http("https://api.test/*", refused.clone()).http("https://api.test/*", 200);
    assert_eq!(send(&host, http::get(URL)).unwrap().status, 200);

    let check = |error: Error, count| {
        let host = Host::new().http("https://api.test/*", error.clone());
        assert_eq!(send(&host, http::get(URL)).err(), Some(error));
        assert_eq!(host.requests().len(), count);
    };
    check(refused, 3);
    check(Error::timeout("https://api.test/v1: no answer in time"), 1);
}

#[test]
fn redirects_are_followed_without_what_was_meant_for_another_origin() {
    let to = |location: &str| HttpAnswer::new(302).header("location", location);
    let host = Host::new()
        .http("https://api.test/v1*", to("/v2"))
        .http("https://api.test/v2", to("https://other.test/"))
        .http("https://other.test/", "found");
    let response = send(&host, http::get(URL).bearer_auth("word").header("accept", "*/*")).unwrap();
    assert_eq!(response.url.as_str(), "https://other.test/");
    let shows =
        host.requests().iter().map(|r| r.header("authorization").is_some()).collect::<Vec<_>>();
    assert_eq!(shows, [true, true, false]);
    assert!(host.requests()[2].header("accept").is_some());

    assert_eq!(send(&host, http::get(URL).redirects(0)).unwrap().status, 302);
    let error = send(&host, http::get(URL).redirects(1)).err().unwrap();
    assert_eq!(error, Error::failed("https://api.test/v1 redirects more than 1 times"));
}

#[test]
fn what_is_no_url_fails_when_it_is_sent() {
    let error = send(&Host::new(), http::get("example.com").query("a", 1)).err().unwrap();
    let expected = "the URL is not valid: relative URL without a base";
    assert_eq!(error, Error::invalid_input(expected));
}

#[test]
fn time_passes_at_once_and_in_order() {
    let host = Host::new();
    let order = host.run(async {
        let order = std::cell::RefCell::new(Vec::new());
        let wait = async |name: &'static str, seconds| {
            sleep(Duration::from_secs(seconds)).await;
            order.borrow_mut().push(name);
        };
        futures::join!(wait("late", 7200), wait("soon", 60), wait("now", 0));
        order.into_inner()
    });
    assert_eq!(order, ["now", "soon", "late"]);
    assert_eq!(host.elapsed(), Duration::from_secs(7200));
}

#[test]
fn time_stands_still_while_something_goes_on() {
    let host = Host::new();
    let steps = Rc::new(Cell::new(0));
    let worked = steps.clone();
    let work = async move {
        for _ in 0..10 {
            yield_now().await;
            worked.set(worked.get() + 1);
        }
    };
    let limit = sleep(Duration::from_secs(1));
    host.run(async {
        let (work, limit) = (std::pin::pin!(work), std::pin::pin!(limit));
        futures::future::select(work, limit).await;
    });
    assert_eq!((steps.get(), host.elapsed()), (10, Duration::ZERO));
}

#[test]
#[should_panic(expected = "waits for ever")]
fn a_timer_that_was_dropped_wakes_nobody() {
    Host::new().run(async {
        {
            let long = std::pin::pin!(sleep(Duration::from_secs(100)));
            let short = std::pin::pin!(sleep(Duration::from_secs(1)));
            futures::future::select(long, short).await;
        }
        std::future::pending::<()>().await;
    });
}

#[test]
fn other_executors_let_the_time_pass_as_well() {
    let host = Host::new();
    futures::executor::block_on(host.scope(sleep(Duration::from_secs(9))));
    assert_eq!(host.elapsed(), Duration::from_secs(9));
    // Without any host, there is nothing to wait for.
    futures::executor::block_on(sleep(Duration::from_secs(9)));
}

async fn yield_now() {
    let mut yielded = false;
    std::future::poll_fn(|task| {
        if std::mem::replace(&mut yielded, true) {
            return std::task::Poll::Ready(());
        }
        task.waker().wake_by_ref();
        std::task::Poll::Pending
    })
    .await;
}
