use super::*;

fn assembler() -> Assembler {
    let mut request = CompletionRequest::new("asked", "");
    request.sampling.stop_sequences = vec!["END".into()];
    Assembler::new(Endpoint { name: "https://ai.test".into(), key: None }, &request, "c7")
}

fn take(chunks: &[Value]) -> Result<(Vec<Delta>, Completion), Error> {
    let mut assembler = assembler();
    let mut deltas = Vec::new();
    for chunk in chunks {
        deltas.extend(assembler.take(chunk.to_string().as_bytes())?);
    }
    let (last, completion) = assembler.finish()?;
    deltas.extend(last);
    Ok((deltas, completion))
}

/// A whole answer.
fn whole(message: Value, reason: &str) -> Value {
    json!({"choices": [{"index": 0, "message": message, "finish_reason": reason}]})
}

/// A chunk of an answer.
fn chunk(delta: Value) -> Value {
    json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
}

fn end(reason: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

fn calls(calls: Value) -> Value {
    chunk(json!({"tool_calls": calls}))
}

fn call(id: &str, name: &str, arguments: &str) -> Part {
    Part::ToolCall(ToolCall { id: id.into(), name: name.into(), arguments: arguments.into() })
}

fn thought(text: &str) -> Part {
    Part::Reasoning(Reasoning { text: text.into(), signature: None })
}

fn text(text: &str) -> Part {
    Part::Text(text.into())
}

/// Checks what an answer is made of, and that its deltas say the same as the whole.
fn check(chunks: &[Value], parts: &[Part], stop: StopReason) {
    let (deltas, completion) = take(chunks).unwrap();
    assert_eq!(completion.parts, parts, "{chunks:?}");
    assert_eq!(completion.summary.stop_reason, stop, "{chunks:?}");

    let (mut said, mut thoughts, mut calls) = (String::new(), String::new(), Vec::new());
    for delta in deltas {
        match delta {
            Delta::Text(text) => said.push_str(&text),
            Delta::Reasoning(text) => thoughts.push_str(&text),
            Delta::ToolCallStart(start) => {
                assert_eq!(start.index as usize, calls.len());
                calls.push((start.id, start.name, String::new()));
            }
            Delta::ToolCallArguments(more) => {
                assert!(!more.fragment.is_empty());
                calls[more.index as usize].2.push_str(&more.fragment);
            }
        }
    }
    let mut again = Vec::new();
    again.extend((!thoughts.is_empty()).then(|| thought(&thoughts)));
    again.extend((!said.is_empty()).then(|| text(&said)));
    again.extend(calls.iter().map(|(id, name, arguments)| self::call(id, name, arguments)));
    assert_eq!(again, parts, "{chunks:?}");
}

fn failed(chunks: &[Value], expected: &str) {
    assert_eq!(take(chunks), Err(Error::failed(expected)), "{chunks:?}");
}

#[test]
fn texts_and_reasoning_of_every_dialect() {
    let one = |message: Value, parts: &[Part]| {
        check(&[whole(message.clone(), "stop")], parts, StopReason::EndTurn);
        check(&[chunk(message), end("stop")], parts, StopReason::EndTurn);
    };
    one(json!({"role": "assistant", "content": "hi"}), &[text("hi")]);
    one(json!({"content": null}), &[]);
    one(json!({"content": 7, "tool_calls": null}), &[]);
    one(json!({"content": "b", "reasoning_content": "a"}), &[thought("a"), text("b")]);
    one(json!({"content": "b", "reasoning": "a"}), &[thought("a"), text("b")]);
    one(
        json!({"content": "b", "reasoning": "a", "reasoning_content": "a"}),
        &[thought("a"), text("b")],
    );
    one(
        json!({"content": [
            {"type": "thinking", "thinking": [{"type": "text", "text": "a"}]},
            {"type": "text", "text": "b"},
        ]}),
        &[thought("a"), text("b")],
    );
}

#[test]
fn chunks_are_joined() {
    check(
        &[
            chunk(json!({"role": "assistant", "content": ""})),
            chunk(json!({"reasoning_content": "hm"})),
            chunk(json!({"content": "grö"})),
            chunk(json!({"content": "ße"})),
            json!({"choices": [{"index": 1, "delta": {"content": "another choice"}}]}),
            end("stop"),
            json!({"choices": [], "usage": null}),
            json!({"choices": null}),
        ],
        &[thought("hm"), text("größe")],
        StopReason::EndTurn,
    );
}

#[test]
fn why_it_ended() {
    let one = |message: Value, reason: &str, parts: &[Part], stop| {
        check(&[whole(message, reason)], parts, stop);
    };
    let hi = || json!({"content": "hi"});
    one(hi(), "stop", &[text("hi")], StopReason::EndTurn);
    one(hi(), "", &[text("hi")], StopReason::EndTurn);
    one(hi(), "eos", &[text("hi")], StopReason::EndTurn);
    one(hi(), "length", &[text("hi")], StopReason::MaxTokens);
    one(hi(), "content_filter", &[text("hi")], StopReason::Refusal);
    one(hi(), "weird", &[text("hi")], StopReason::Other("weird".into()));
    one(json!({"refusal": "no"}), "stop", &[text("no")], StopReason::Refusal);
    let stopped = |stop: Value| json!({"choices": [{"message": hi(), "finish_reason": "stop", "stop_reason": stop}]});
    check(&[stopped(json!("END"))], &[text("hi")], StopReason::StopSequence);
    check(&[stopped(json!("other"))], &[text("hi")], StopReason::EndTurn);
    check(&[stopped(json!(128009))], &[text("hi")], StopReason::EndTurn);
}

#[test]
fn tool_calls_of_whole_answers() {
    let one = |calls: Value, parts: &[Part]| {
        let message = json!({"content": null, "tool_calls": calls});
        check(&[whole(message.clone(), "tool_calls")], parts, StopReason::ToolUse);
        check(&[whole(message, "stop")], parts, StopReason::ToolUse);
    };
    one(
        json!([
            {"id": "a", "type": "function", "function": {"name": "x", "arguments": "{\"n\":1}"}},
            {"id": "b", "type": "function", "function": {"name": "x", "arguments": "{}"}},
        ]),
        &[call("a", "x", "{\"n\":1}"), call("b", "x", "{}")],
    );
    // Without ids or arguments, or with arguments in other forms.
    one(
        json!([
            {"function": {"name": "x", "arguments": {"n": 1}}},
            {"function": {"name": "x"}},
            {"function": {"name": "x", "arguments": ""}},
            {"function": {"name": "x", "arguments": "null"}},
            {"function": {"name": "x", "arguments": "\"{\\\"n\\\":1}\""}},
        ]),
        &[
            call("call_c7_0", "x", "{\"n\":1}"),
            call("call_c7_1", "x", "{}"),
            call("call_c7_2", "x", "{}"),
            call("call_c7_3", "x", "{}"),
            call("call_c7_4", "x", "{\"n\":1}"),
        ],
    );
}

#[test]
fn tool_calls_in_fragments() {
    check(
        &[
            chunk(json!({"content": "let me see"})),
            calls(json!([{"index": 0, "id": "a", "function": {"name": "x", "arguments": ""}}])),
            calls(json!([{"index": 0, "function": {"arguments": "{\"n"}}])),
            calls(json!([{"index": 1, "id": "b", "function": {"name": "y", "arguments": ""}}])),
            calls(json!([
                {"index": 0, "function": {"arguments": "\":1}"}},
                {"index": 1, "function": {"arguments": " {}"}},
            ])),
            end("tool_calls"),
        ],
        &[text("let me see"), call("a", "x", "{\"n\":1}"), call("b", "y", " {}")],
        StopReason::ToolUse,
    );
}

#[test]
fn tool_calls_of_servers_that_do_not_count() {
    let piece = |index: Option<u64>, id: &str, name: &str, arguments: &str| {
        calls(json!([
            {"index": index, "id": id, "function": {"name": name, "arguments": arguments}}
        ]))
    };
    let both = [call("a", "x", "{}"), call("b", "x", "{}")];
    let one = |pieces: [Value; 2]| {
        let [first, second] = pieces;
        check(&[first, second, end("stop")], &both, StopReason::ToolUse);
    };
    one([piece(None, "a", "x", "{}"), piece(None, "b", "x", "{}")]);
    one([piece(Some(0), "a", "x", "{}"), piece(Some(0), "b", "x", "{}")]);
    // They do count, but from elsewhere.
    one([piece(Some(3), "a", "x", "{}"), piece(Some(9), "b", "x", "{}")]);
    // The id and the name may be repeated with each fragment.
    let repeated = [piece(Some(0), "a", "x", "{\"n\""), piece(Some(0), "a", "x", ":1}")];
    check(&repeated, &[call("a", "x", "{\"n\":1}")], StopReason::ToolUse);
    let nameless = [piece(None, "", "x", "{\"n\""), piece(None, "", "", ":1}")];
    check(&nameless, &[call("call_c7_0", "x", "{\"n\":1}")], StopReason::ToolUse);
    let two = [piece(None, "", "x", "{}"), piece(None, "", "x", "{}")];
    check(&two, &[call("call_c7_0", "x", "{}"), call("call_c7_1", "x", "{}")], StopReason::ToolUse);
    // The name comes after the arguments have begun.
    let late = [piece(Some(0), "a", "", "{\"n\""), piece(Some(0), "", "x", ":1}")];
    check(&late, &[call("a", "x", "{\"n\":1}")], StopReason::ToolUse);
}

#[test]
fn arguments_that_are_no_object_fail_unless_the_answer_was_cut() {
    let pieces = |reason: &str| {
        let function = json!({"name": "x", "arguments": "{\"n\":"});
        [calls(json!([{"index": 0, "id": "a", "function": function}])), end(reason)]
    };
    failed(
        &pieces("tool_calls"),
        "https://ai.test: the arguments of the call of the tool \"x\" are no JSON object",
    );
    let (deltas, completion) = take(&pieces("length")).unwrap();
    assert_eq!(deltas.len(), 2);
    assert_eq!(completion.parts, []);
    assert_eq!(completion.summary.stop_reason, StopReason::MaxTokens);
    failed(
        &[calls(json!([{"index": 0, "id": "a", "function": {"arguments": "{}"}}]))],
        "https://ai.test: the answer asks for a tool without a name",
    );
}

#[test]
fn tokens_and_what_else_is_told() {
    let check = |usage: Value, expected: [u64; 4]| {
        let mut chunk = whole(json!({"content": "hi"}), "stop");
        chunk["usage"] = usage;
        let usage = take(&[chunk]).unwrap().1.summary.usage;
        assert_eq!([usage.input, usage.output, usage.cached_input, usage.reasoning], expected);
    };
    check(
        json!({
            "prompt_tokens": 9,
            "completion_tokens": 7,
            "prompt_tokens_details": {"cached_tokens": 3},
            "completion_tokens_details": {"reasoning_tokens": 2},
        }),
        [9, 7, 3, 2],
    );
    check(
        json!({
            "prompt_tokens": 9.0,
            "completion_tokens": null,
            "prompt_tokens_details": null,
            "prompt_cache_hit_tokens": 4,
        }),
        [9, 0, 4, 0],
    );
    check(json!({"prompt_tokens": -1, "completion_tokens": "7"}), [0; 4]);
    check(Value::Null, [0; 4]);

    let first = json!({
        "id": "chatcmpl-1",
        "model": "asked-0613",
        "system_fingerprint": "fp",
        "service_tier": null,
        "choices": [{"delta": {"content": "hi"}}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1},
    });
    let last =
        json!({"model": "", "choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 2}});
    let summary = take(&[first, last]).unwrap().1.summary;
    assert_eq!(summary.model, "asked-0613");
    assert_eq!(summary.usage.output, 2);
    assert_eq!(summary.extra.unwrap(), r#"{"id":"chatcmpl-1","system_fingerprint":"fp"}"#);

    let summary = take(&[whole(json!({"content": "hi"}), "stop")]).unwrap().1.summary;
    assert_eq!((summary.model.as_str(), summary.extra), ("asked", None));
}

#[test]
fn what_is_no_answer_is_told() {
    failed(&[json!({})], "https://ai.test: the answer has no choices");
    failed(&[json!({"choices": "none"})], "https://ai.test: the answer has no choices");
    failed(&[json!(7)], "https://ai.test: the answer has another form than a chat completion");
    let error = assembler().take(b"<html>").unwrap_err();
    assert_eq!(error, Error::failed("https://ai.test: the answer is no valid JSON"));
}

#[test]
fn errors_in_the_place_of_an_answer_are_told() {
    let busy = || {
        let message = "https://ai.test reports an error: busy";
        Error::unavailable(message)
    };
    let error = json!({"message": "busy", "code": 503});
    assert_eq!(take(&[json!({"error": error})]), Err(busy()));
    let begun = chunk(json!({"content": "hi"}));
    assert_eq!(take(&[begun, json!({"error": error, "choices": []})]), Err(busy()));
    let choice = json!({"choices": [{"error": error, "finish_reason": "error"}]});
    assert_eq!(take(&[choice]), Err(busy()));
    assert_eq!(assembler().take_error(&error.to_string()), busy());
    assert_eq!(assembler().take_error(&json!({"error": error}).to_string()), busy());
    let plain = Error::failed("https://ai.test reports an error: oh no");
    assert_eq!(assembler().take_error("oh no"), plain);
}

#[test]
fn answers_are_bounded() {
    let mut assembler = assembler();
    let piece = chunk(json!({"content": "x".repeat(MOST_ANSWER / 2)})).to_string();
    assert!(assembler.take(piece.as_bytes()).is_ok());
    assert!(assembler.take(piece.as_bytes()).is_ok());
    let error = assembler.take(chunk(json!({"content": "x"})).to_string().as_bytes());
    assert_eq!(error, Err(Error::failed("https://ai.test: the answer is too long")));

    let many: Vec<Value> =
        (0..=MOST_CALLS).map(|i| json!({"index": i, "function": {"name": "x"}})).collect();
    failed(&[calls(json!(many))], "https://ai.test: the answer asks for too many tools");
}
