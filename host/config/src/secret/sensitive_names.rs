//! Which names speak of secrets.

/// The ends of names whose values are secrets, after `_`.
const SUFFIXES: &[&str] = &[
    "TOKEN",
    "KEY",
    "SECRET",
    "PASSWORD",
    "PASS",
    "PWD",
    "PASSCODE",
    "CREDENTIAL",
    "CREDS",
    "PAT",
    "AUTH",
    "APIKEY",
    "BEARER",
    "SESSION",
    "JWT",
    "COOKIE",
    "PASSWD",
    "PASSPHRASE",
];

/// What makes a name one of a secret wherever it stands in it.
const PARTS: &[&str] = &["PASSWORD", "SECRET", "CREDENTIAL", "PRIVATE_KEY", "PRIVATEKEY"];

/// The ends of names whose values are secrets, also without `_`: `accesstoken`.
const JOINED: &[&str] = &["TOKEN", "APIKEY"];

/// Names of secrets that are nothing but that.
const WHOLE: &[&str] = &[
    "PASS",
    "PASSWD",
    "PASSCODE",
    "CREDS",
    "PASSPHRASE",
    "JWT",
    "AUTHORIZATION",
    "BEARER",
    "COOKIE",
];

/// Whether what goes under a name is a secret: `GITHUB_TOKEN`, `apiKey`, `client-secret`.
pub fn is_secret_name(name: &str) -> bool {
    // The variable `PWD` is the folder that a program runs in.
    if name == "pwd" {
        return true;
    }
    let name = upper_snake(name);
    // One of several: `API_TOKEN_2`.
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end_matches('_');
    let ends = |suffix: &str| {
        name.strip_suffix(suffix).is_some_and(|start| start.len() > 1 && start.ends_with('_'))
    };
    WHOLE.contains(&name)
        || SUFFIXES.iter().any(|suffix| ends(suffix))
        || JOINED.iter().any(|joined| name.ends_with(joined))
        || PARTS.iter().any(|part| name.contains(part))
}

/// The same of a variable, which may be named `KEY` and nothing more.
pub fn is_secret_variable(name: &str) -> bool {
    let upper = upper_snake(name);
    is_secret_name(name) || upper != "PWD" && SUFFIXES.contains(&upper.as_str())
}

/// `clientSecret` and `client-secret` as `CLIENT_SECRET`.
pub(super) fn upper_snake(name: &str) -> String {
    let mut upper = String::with_capacity(name.len() + 2);
    let mut was_lower = false;
    for c in name.chars() {
        if c.is_ascii_uppercase() && was_lower {
            upper.push('_');
        }
        was_lower = c.is_ascii_lowercase() || c.is_ascii_digit();
        upper.push(if c.is_alphanumeric() { c.to_ascii_uppercase() } else { '_' });
    }
    upper
}
