//! The hostile scripts.

/// Turns to the host for everything that a script can ask for.
pub(crate) const ASKING: &str = r#"
    let schema = #{ type: "object" };
    tool(#{ name: "fetch", description: "d", schema: schema }, |a| {
        let got = http_get(a.url);
        `${got.status} ${got.body}`
    });
    tool(#{ name: "call", description: "d", schema: schema }, |a| `${call_tool(a.name, a.arguments)}`);
    tool(#{ name: "fork", description: "d", schema: schema }, |a| {
        let calls = 1;
        for branch in 0..2 {
            if a.depth > 0 {
                try {
                    calls += parse_int(call_tool(a.name, #{ name: a.name, depth: a.depth - 1 }));
                } catch { }
            }
        }
        `${calls}`
    });
    tool(#{ name: "ask", description: "d", schema: schema }, |a| complete(a.model, a.prompt));
    tool(#{ name: "send", description: "d", schema: schema }, |a| {
        if "channel" in a { send_message(a.channel, a.text) } else { send_message(a.text) }
        "sent"
    });
    tool(#{ name: "recall", description: "d", schema: schema }, |a| {
        let texts = "";
        for found in search_memory(a.query, 3) {
            if texts != "" { texts += "; "; }
            texts += found.text;
        }
        texts
    });
    tool(#{ name: "question", description: "d", schema: schema }, |a| {
        ask(a.message, #{ type: "object", properties: #{} });
        "answered"
    });
    tool(#{ name: "keep", description: "d", schema: schema }, |a| {
        state.set("kept", a.text);
        state.get("kept")
    });
    tool(#{ name: "echo", description: "d", schema: schema }, |a| a.text);
"#;

/// Goes wrong.
pub(crate) const MISBEHAVING: &str = r#"
    fn deeper(n) { if n == 0 { 0 } else { 1 + deeper(n - 1) } }
    let schema = #{ type: "object" };
    tool(#{ name: "echo", description: "d", schema: schema }, |a| a.text);
    tool(#{ name: "compute", description: "d", schema: schema }, |a| {
        for n in 0..parse_int(a.text) { }
        a.text
    });
    tool(#{ name: "go_down", description: "d", schema: schema }, |a| `${deeper(parse_int(a.text))}`);
    tool(#{ name: "double", description: "d", schema: schema }, |a| {
        let text = "x";
        for n in 0..parse_int(a.text) { text += text; }
        `${text.len}`
    });
    tool(#{ name: "take_items", description: "d", schema: schema }, |a| {
        let items = [];
        for n in 0..parse_int(a.text) { items.push([n]); }
        `${items.len()}`
    });
    tool(#{ name: "log_lines", description: "d", schema: schema }, |a| {
        for n in 0..parse_int(a.text) { log("again and again"); }
        a.text
    });
    tool(#{ name: "ask_host", description: "d", schema: schema }, |a| {
        for n in 0..parse_int(a.text) {
            try { call_tool("nobody", #{}) } catch { }
        }
        a.text
    });
"#;

/// Takes code from elsewhere: the engine's own way to find it would find this.
pub(crate) const IMPORTING: &str = r#"
    import "{fixture}/pub/module" as stolen;
    tool(#{ name: "echo", description: "d", schema: #{ type: "object" } }, |a| stolen::said());
"#;

/// The same without that.
pub(crate) const NOT_IMPORTING: &str = r#"
    tool(#{ name: "echo", description: "d", schema: #{ type: "object" } }, |a| a.text);
"#;

/// Makes code of texts.
pub(crate) const EVALUATING: &str = r#"
    tool(#{ name: "echo", description: "d", schema: #{ type: "object" } }, |a| eval(a.text));
"#;
