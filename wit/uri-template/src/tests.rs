use super::*;

/// A template with these variables, of which those of type `Option` may be missing.
macro_rules! template {
    ($uri:literal $(, $variable:ident: $type:ty)*) => {{
        let types: &[(&str, &str)] = &[$((stringify!($variable), stringify!($type))),*];
        let is_optional =
            |name: &str| types.iter().any(|(known, of)| *known == name && of.starts_with("Option"));
        UriTemplate::parse_with($uri, is_optional).expect("it is a template")
    }};
}

fn pairs(values: &Values) -> Vec<(&str, &str)> {
    values.iter().map(|(name, value)| (&**name, &**value)).collect()
}

/// Checks what the variables stand for in a URI, and that the values give the URI again.
#[track_caller]
fn check(template: &UriTemplate, uri: &str, expected: &[(&str, &str)]) {
    check_decoded(template, uri, expected);
    assert_eq!(expanded(template, expected).as_deref(), Some(uri));
}

/// Checks the first alone, for a URI that no expansion gives.
#[track_caller]
fn check_decoded(template: &UriTemplate, uri: &str, expected: &[(&str, &str)]) {
    let values = template.matches(uri);
    assert_eq!(values.as_ref().map(pairs).as_deref(), Some(expected), "{uri}");
}

#[track_caller]
fn check_none(template: &UriTemplate, uris: &[&str]) {
    for uri in uris {
        assert_eq!(template.matches(uri), None, "{uri}");
    }
}

fn expanded(template: &UriTemplate, values: &[(&str, &str)]) -> Option<String> {
    let values: Vec<_> = values.iter().map(|(n, v)| (n.to_string(), v.to_string())).collect();
    template.expand(&values)
}

#[test]
fn a_uri_without_variables_matches_itself() {
    let fixed = template!("notes://all?x=1#y");
    assert!(fixed.is_fixed());
    check(&fixed, "notes://all?x=1#y", &[]);
    check_none(&fixed, &["", "notes://all", "notes://all?x=1#y ", "NOTES://all?x=1#y"]);
}

#[test]
fn a_simple_variable_ends_at_what_it_would_encode() {
    let notes = template!("notes://{name}", name: String);
    check(&notes, "notes://shopping", &[("name", "shopping")]);
    check(&notes, "notes://a.b-c_d~e", &[("name", "a.b-c_d~e")]);
    check(&notes, "notes://a%20b%2Fc", &[("name", "a b/c")]);
    check(&notes, "notes://%C3%BC", &[("name", "ü")]);
    check_decoded(&notes, "notes://%2e%2E%2f%41", &[("name", "../A")]);
    check_none(&notes, &["notes://", "notes://a/b", "notes://a/", "notes:///a", "notes:/a", "n"]);
    check_none(
        &notes,
        &["notes://a?b", "notes://a#b", "notes://a,b", "notes://a+b", "notes://a b"],
    );
    check_none(&notes, &["Notes://a", "other://a", "notes://ü"]);
}

#[test]
fn hostile_uris_are_decoded_once_or_match_nothing() {
    let notes = template!("notes://{name}", name: String);
    check(&notes, "notes://%252e%252e%252F", &[("name", "%2e%2e%2F")]);
    check(&notes, "notes://%25", &[("name", "%")]);
    check(&notes, "notes://%0D%0A", &[("name", "\r\n")]);
    check_none(&notes, &["notes://%00", "notes://a%00b", "notes://a\0b", "notes://%"]);
    check_none(&notes, &["notes://%2", "notes://%zz", "notes://%+1", "notes://a%", "notes://%%41"]);
    // No UTF-8: a byte of none, a surrogate, a `/` in more bytes than it needs.
    check_none(&notes, &["notes://%FF", "notes://%ED%A0%80", "notes://%C0%AF"]);
    let long = "a".repeat(1 << 20);
    check(&notes, &format!("notes://{long}"), &[("name", &long)]);
    check_none(&notes, &[&format!("notes://{long}/")]);
    check_none(
        &template!("x:{/path*}", path: Vec<String>),
        &[&format!("x:{}", "/".repeat(1 << 20))],
    );
    check_none(&template!("x:{?a*}", a: Vec<String>), &[&format!("x:?{}", "&".repeat(1 << 20))]);
}

#[test]
fn text_after_a_variable_belongs_to_the_text() {
    let data = template!("test://template/{id}/data", id: String);
    check(&data, "test://template/123/data", &[("id", "123")]);
    check_none(&data, &["test://template//data", "test://template/1/2/data", "test://template/1"]);
    let file = template!("notes://{name}.txt", name: String);
    check(&file, "notes://a.txt.txt", &[("name", "a.txt")]);
    check_none(&file, &["notes://.txt", "notes://a.txt.md", "notes://a.txt/b"]);
    let digits = template!("x:{name}41", name: String);
    check_none(&digits, &["x:%41", "x:a%41"]);
    check(&digits, "x:a41", &[("name", "a")]);
}

#[test]
fn several_values_stand_in_their_order() {
    let two = template!("x:{a,b}", a: String, b: Option<String>);
    check(&two, "x:1,2", &[("a", "1"), ("b", "2")]);
    check(&two, "x:1", &[("a", "1")]);
    check(&two, "x:1%2C2", &[("a", "1,2")]);
    check_none(&two, &["x:", "x:,2", "x:1,", "x:1,2,3"]);
    let list = template!("x:{tags*}", tags: Vec<String>);
    check(&list, "x:1,2,3", &[("tags", "1"), ("tags", "2"), ("tags", "3")]);
    check(&list, "x:", &[]);
    check_none(&list, &["x:,", "x:1,", "x:1,,2"]);
    let may_be_missing = template!("x:{a}", a: Option<String>);
    check(&may_be_missing, "x:", &[]);
    check(&may_be_missing, "x:1", &[("a", "1")]);
}

#[test]
fn paths_are_cut_at_slashes() {
    let one = template!("x:{/a}{/b}", a: String, b: Option<String>);
    check(&one, "x:/1/2", &[("a", "1"), ("b", "2")]);
    check(&one, "x:/1", &[("a", "1")]);
    check(&one, "x:/1%2F2", &[("a", "1/2")]);
    check_none(&one, &["x:", "x:/", "x:/1/", "x://2", "x:/1/2/3", "x:1"]);
    let two = template!("x:{/a,b}", a: String, b: String);
    check(&two, "x:/1/2", &[("a", "1"), ("b", "2")]);
    check_none(&two, &["x:/1", "x:/1/2/3"]);
    let list = template!("x:{/path*}/data:{id}", path: Vec<String>, id: u32);
    check(&list, "x:/a/..%2F/data:1", &[("path", "a"), ("path", "../"), ("id", "1")]);
    check(&list, "x:/data:1", &[("id", "1")]);
    check(&list, "x:/data/data:1", &[("path", "data"), ("id", "1")]);
    check_none(&list, &["x:a/data:1", "x:/a//data:1", "x://data:1", "x:/a:1"]);
}

#[test]
fn a_reserved_variable_takes_everything() {
    let file = template!("file://{+path}", path: String);
    check(&file, "file:///a/b,c.txt?d#e", &[("path", "/a/b,c.txt?d#e")]);
    check(&file, "file://a%20b", &[("path", "a b")]);
    check_decoded(&file, "file://a%2Fb", &[("path", "a/b")]);
    check_none(&file, &["file://", "file://a b", "file://%00", "file://<"]);
    let notes = template!("file://{+path}/notes.md", path: String);
    check(&notes, "file://a/notes.md/notes.md", &[("path", "a/notes.md")]);
    check_none(&notes, &["file:///notes.md", "file://notes.md", "file://a/notes.md#1"]);
}

#[test]
fn queries_have_names_in_any_order() {
    let list = template!("x:l{?page,tag*,q}", page: Option<u32>, tag: Vec<String>, q: String);
    check(
        &list,
        "x:l?page=2&tag=a&tag=b&q=c",
        &[("page", "2"), ("tag", "a"), ("tag", "b"), ("q", "c")],
    );
    check(&list, "x:l?q=", &[("q", "")]);
    check(&list, "x:l?q=%26page%3D2", &[("q", "&page=2")]);
    check_decoded(&list, "x:l?q=c&tag=a&page=2", &[("q", "c"), ("tag", "a"), ("page", "2")]);
    check_none(&list, &["x:l", "x:l?", "x:l?page=1", "x:l?q", "x:l?q=1&", "x:l?q=1&&tag=2"]);
    check_none(&list, &["x:l?q=1&q=2", "x:l?q=1&other=2", "x:l?q=1=2", "x:l?q=a/b", "x:l?q=a+b"]);
    check_none(&list, &["x:l?q=1#x", "x:l?q=%00", "x:l?%71=1", "x:l?q=1?q=2", "x:l&q=1"]);
    let more = template!("x:l?fixed=1{&page}{#line}", page: Option<u32>, line: Option<u32>);
    check(&more, "x:l?fixed=1&page=2#3", &[("page", "2"), ("line", "3")]);
    check(&more, "x:l?fixed=1#3", &[("line", "3")]);
    check(&more, "x:l?fixed=1", &[]);
    check_none(&more, &["x:l?fixed=1&", "x:l?fixed=1#", "x:l?fixed=1?page=2", "x:l?page=2"]);
}

#[test]
fn what_is_expanded_is_read_again() {
    let values = ["a", ".", "..", "/", "a/b", ",", "%", "%2F", "&a=", "?", "#", "ü", " ", "data"];
    let check_all = |template: &UriTemplate| {
        for (a, b) in values.iter().flat_map(|a| values.map(|b| (*a, b))) {
            check(
                template,
                &expanded(template, &[("a", a), ("b", b)]).unwrap(),
                &[("a", a), ("b", b)],
            );
        }
    };
    check_all(&template!("x:{a}/{b}", a: String, b: String));
    check_all(&template!("x:{a}.{/b}", a: String, b: String));
    check_all(&template!("x:{a,b}data", a: String, b: String));
    check_all(&template!("x:{/a}{/b}:data", a: String, b: Option<String>));
    check_all(&template!("x:{/a,b}/data", a: String, b: Option<String>));
    check_all(&template!("x:{/a*}/data:{b}data", a: Vec<String>, b: String));
    check_all(&template!("x:{a*}{?b}", a: Vec<String>, b: Option<String>));
    check_all(&template!("x:{?a}{#b}data", a: Option<String>, b: String));
    check_all(&template!("x:{?a*,b}#data", a: Vec<String>, b: String));
    check_all(&template!("x:?data=1{&a,b}&data=2", a: String, b: Option<String>));
    check_all(&template!("x:{a}/data{+b}data", a: String, b: String));
}

#[test]
fn values_of_no_variable_make_no_uri() {
    let notes = template!("notes://{name}", name: String);
    assert_eq!(expanded(&notes, &[("name", "a"), ("other", "b")]), None);
    assert_eq!(expanded(&notes, &[]).as_deref(), Some("notes://"));
}
