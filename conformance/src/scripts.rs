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
        for branch in 0..2 {
            try { call_tool(a.name, a) } catch { }
        }
        "forked"
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
    tool(#{ name: "echo", description: "d", schema: schema }, |a| a.text);
"#;

/// Goes wrong.
pub(crate) const MISBEHAVING: &str = r#"
    fn deeper(n) { deeper(n + 1) }
    let schema = #{ type: "object" };
    tool(#{ name: "echo", description: "d", schema: schema }, |a| a.text);
    tool(#{ name: "spin", description: "d", schema: schema }, |a| loop { });
    tool(#{ name: "recurse", description: "d", schema: schema }, |a| deeper(0));
    tool(#{ name: "hoard", description: "d", schema: schema }, |a| {
        let text = "x";
        loop { text += text; }
    });
    tool(#{ name: "hoard_items", description: "d", schema: schema }, |a| {
        let items = [];
        loop { items.push([items.len()]); }
    });
    tool(#{ name: "flood_log", description: "d", schema: schema }, |a| loop { log("again and again"); });
    tool(#{ name: "flood_host", description: "d", schema: schema }, |a| loop {
        try { call_tool("nobody", #{}) } catch { }
    });
"#;

/// Takes code from elsewhere.
pub(crate) const IMPORTING: &str = r#"
    import "/etc/passwd" as stolen;
    tool(#{ name: "echo", description: "d" }, |a| a.text);
"#;

/// Makes code of texts.
pub(crate) const EVALUATING: &str = r#"
    tool(#{ name: "echo", description: "d" }, |a| eval(a.text));
"#;
