//! Habits of writing: what comes is not what a line should be.

use serde_json::{Value, json};

use crate::Habit;
use crate::server::{answer, on_call, said, send, serve, tell, text, write};

pub(crate) const HABITS: &[Habit] = &[
    // A banner before anything was asked, and lines that are no messages between the answers.
    ("noisy", || {
        write("Welcome to my server!\nlistening on stdio\n");
        serve(|_| {
            write("Welcome to my server!\r\n\n{\"half\": \n\u{1b}[32mINFO\u{1b}[0m 3\n[]\n\"a\"\n");
            false
        });
    }),
    // Line ends of another system.
    ("crlf", || on_call(|call| write(format!("{}\r\n", said(call, "rude"))))),
    ("bom", || on_call(|call| write(format!("\u{feff}{}\n", said(call, "rude"))))),
    // Byte by byte, so that every character is cut.
    ("split", || {
        on_call(|call| {
            let line = format!("{}\n", said(call, "r\u{fc}d\u{20ac} \u{1f980}"));
            line.bytes().for_each(|byte| write([byte]));
        });
    }),
    // In an encoding of another time.
    ("latin", || {
        on_call(|call| {
            let line = format!("{}\n", said(call, "r?de")).into_bytes();
            let line = line.into_iter().map(|byte| if byte == b'?' { 0xfc } else { byte });
            write(line.collect::<Vec<_>>());
        });
    }),
    // A line of a megabyte.
    ("giant", || on_call(|call| write(format!("{}\n", said(call, &"x".repeat(1 << 20)))))),
    // Another, whose id comes last.
    ("giant-back", || {
        on_call(|call| {
            let result = text("x".repeat(1 << 20));
            write(format!("{{\"result\":{result},\"id\":{},\"jsonrpc\":\"2.0\"}}\n", call["id"]));
        });
    }),
    // A line of megabytes without an end, and then one that is meant well.
    ("endless", || {
        on_call(|call| {
            (0..64).for_each(|_| write([b'x'; 64 << 10]));
            answer(call, text("rude"));
        });
    }),
    // Results that no parser should follow all the way down.
    ("deep-structure", || {
        on_call(|call| {
            let result = format!("{{\"content\":[],\"structuredContent\":{}}}", nested());
            write_result(call, &result);
        });
    }),
    ("deep-block", || {
        on_call(|call| {
            let block = format!("{{\"type\":\"new\",\"x\":{}}}", nested());
            write_result(call, &format!("{{\"content\":[{block}]}}"));
        });
    }),
    ("deep-extra", || {
        on_call(|call| {
            let block = r#"{"type":"text","text":"rude"}"#;
            write_result(call, &format!("{{\"content\":[{block}],\"_meta\":{}}}", nested()));
        });
    }),
    ("deep-error", || {
        on_call(|call| {
            let error = format!("{{\"code\":5,\"message\":\"rude\",\"data\":{}}}", nested());
            write(format!("{{\"id\":{},\"error\":{error}}}\n", call["id"]));
        });
    }),
    // Everything but the answer.
    ("deep-news", || {
        on_call(|call| {
            for (method, member) in [
                ("notifications/message", "data"),
                ("notifications/progress", "progressToken"),
                ("notifications/cancelled", "requestId"),
                ("notifications/resources/updated", "uri"),
                ("notifications/unheard-of", "a"),
            ] {
                let params = format!("{{\"{member}\":{}}}", nested());
                write(format!("{{\"method\":\"{method}\",\"params\":{params}}}\n"));
            }
            for method in ["elicitation/create", "sampling/createMessage", "unheard/of"] {
                let (id, params) = (nested(), nested());
                write(format!("{{\"id\":1,\"method\":\"{method}\",\"params\":{params}}}\n"));
                write(format!("{{\"id\":{id},\"method\":\"{method}\"}}\n"));
            }
            write(format!("{}\n", nested()));
            write(format!("{}\n", "[".repeat(100_000)));
            answer(call, text("rude"));
        });
    }),
    // A list whose one tool is broken by its depth.
    ("deep-schema", || {
        serve(|message| {
            if message["method"] != "tools/list" {
                return false;
            }
            let schema = format!("{{\"type\":\"object\",\"x\":{}}}", nested());
            let echo = r#"{"name":"echo","inputSchema":{"type":"object"}}"#;
            let deep = format!("{{\"name\":\"rude\",\"inputSchema\":{schema}}}");
            write_result(message, &format!("{{\"tools\":[{deep},{echo}]}}"));
            true
        });
    }),
    // All in batches of one, news among them.
    ("batch", || {
        serve(|message| {
            if message["method"] == "tools/call" {
                let news = json!({ "method": "notifications/unheard-of" });
                let echo = text(message["params"]["arguments"]["text"].clone());
                send(&json!([news, { "id": message["id"], "result": echo }, 3]));
                return true;
            }
            false
        });
    }),
    // Standard error as a place to put megabytes.
    ("loud", || {
        on_call(|call| {
            for line in 0..20_000 {
                eprintln!("{line} {}", "x".repeat(100));
            }
            eprint!("{}", "y".repeat(4 << 20));
            tell("notifications/unheard-of", json!({}));
            answer(call, text("rude"));
        });
    }),
];

/// JSON, a hundred thousand levels deep.
fn nested() -> String {
    "[".repeat(100_000) + &"]".repeat(100_000)
}

fn write_result(request: &Value, result: &str) {
    write(format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{result}}}\n", request["id"]));
}
