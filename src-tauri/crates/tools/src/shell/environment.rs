//! The environment that commands get.
//!
//! Guarantee: keys that the program knows of never reach a command, and what looks like a secret
//! only when the person listed it.

use std::ffi::{OsStr, OsString};

/// What keeps commands from waiting for a terminal that is not there (SV-01).
const FIXED: [(&str, &str); 4] = [
    ("GIT_TERMINAL_PROMPT", "0"),
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("GIT_EDITOR", "true"),
];

/// Words that stand alone between separators.
const WORDS: [&str; 5] = ["KEY", "KEYS", "PASS", "CREDENTIAL", "CREDENTIALS"];
/// Words that also count at the end of a longer one, as in `PGPASSWORD` or `AUTHTOKEN`.
const ENDINGS: [&str; 13] = [
    "TOKEN",
    "TOKENS",
    "SECRET",
    "SECRETS",
    "PASSWORD",
    "PASSWORDS",
    "PASSWD",
    "PASSPHRASE",
    "APIKEY",
    "ACCESSKEY",
    "SECRETKEY",
    "PRIVATEKEY",
    "AUTHKEY",
];
/// Names that no rule finds.
const NAMES: [&str; 2] = ["MYSQL_PWD", "SSHPASS"];

/// The person's environment without what a command must not see: `remove` (every configured
/// `api_key_env`), the program's own variables (`HOLDFAST_*`, `REASONIX_*`), and names that look
/// like secrets, unless `keep` lists them. `keep` does not bring back the first two.
///
/// A name looks like a secret when one of its parts (between `_`, `-` and `.`, digits at its end
/// aside) is KEY, KEYS, PASS, CREDENTIAL(S), or is or ends with TOKEN(S), SECRET(S), PASSWORD(S),
/// PASSWD, PASSPHRASE, APIKEY, ACCESSKEY, SECRETKEY, PRIVATEKEY, AUTHKEY; or it is MYSQL_PWD or
/// SSHPASS. Case does not matter.
///
/// Adds `GIT_TERMINAL_PROMPT=0`, `PAGER=cat`, `GIT_PAGER=cat`, `GIT_EDITOR=true`. The result is
/// sorted by name.
pub fn command_environment(
    base: impl IntoIterator<Item = (OsString, OsString)>,
    remove: &[String],
    keep: &[String],
) -> Vec<(OsString, OsString)> {
    let mut chosen: Vec<(OsString, OsString)> = base
        .into_iter()
        .filter(|(name, _)| is_passed(name, remove, keep))
        .collect();
    for (name, value) in FIXED {
        set(&mut chosen, name, OsStr::new(value));
    }
    chosen.sort();
    chosen
}

/// Sets one variable, in place of any of that name.
pub(crate) fn set(environment: &mut Vec<(OsString, OsString)>, name: &str, value: &OsStr) {
    environment.retain(|(other, _)| !is_same(other, name));
    environment.push((OsString::from(name), value.to_owned()));
}

fn is_same(name: &OsStr, other: &str) -> bool {
    if cfg!(windows) {
        name.eq_ignore_ascii_case(other)
    } else {
        name == other
    }
}

fn is_passed(name: &OsStr, remove: &[String], keep: &[String]) -> bool {
    // A key is a key in every spelling; names that differ in case only are not worth the risk.
    if remove.iter().any(|other| name.eq_ignore_ascii_case(other)) {
        return false;
    }
    let upper = name.to_string_lossy().to_ascii_uppercase();
    if upper.starts_with("HOLDFAST_") || upper.starts_with("REASONIX_") {
        return false;
    }
    keep.iter().any(|other| is_same(name, other)) || !looks_secret(&upper)
}

fn looks_secret(upper: &str) -> bool {
    NAMES.contains(&upper)
        || upper.split(['_', '-', '.']).any(|part| {
            let part = part.trim_end_matches(|c: char| c.is_ascii_digit());
            WORDS.contains(&part) || ENDINGS.iter().any(|ending| part.ends_with(ending))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(base: &[&str], remove: &[&str], keep: &[&str]) -> Vec<String> {
        let owned = |list: &[&str]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
        let base = base
            .iter()
            .map(|n| (OsString::from(n), OsString::from("value")));
        command_environment(base, &owned(remove), &owned(keep))
            .into_iter()
            .filter(|(name, _)| FIXED.iter().all(|(fixed, _)| name != fixed))
            .map(|(name, _)| name.into_string().unwrap())
            .collect()
    }

    #[test]
    fn tr_07_commands_get_no_secrets() {
        let secret = [
            "OPENAI_API_KEY",
            "apikey",
            "AWS_SECRET_ACCESS_KEY",
            "GITHUB_TOKEN",
            "npm_config__authToken",
            "PGPASSWORD",
            "DB_PASS",
            "MY_SECRET_2",
            "TOKEN2",
            "KEY",
            "GOOGLE_APPLICATION_CREDENTIALS",
            "MYSQL_PWD",
            "SSHPASS",
            "ssh-key",
            "HOLDFAST_HOME",
            "holdfast_x",
            "REASONIX_ANY",
        ];
        assert_eq!(names(&secret, &[], &[]), Vec::<String>::new());
        let plain = [
            "HOME",
            "KEYBOARD_LAYOUT",
            "MONKEY",
            "PATH",
            "PWD",
            "SSH_ASKPASS",
            "SSH_AUTH_SOCK",
            "TOKENIZERS_PARALLELISM",
            "XAUTHORITY",
        ];
        assert_eq!(names(&plain, &[], &[]), plain);
    }

    #[test]
    fn keep_passes_a_secret_and_never_a_configured_key() {
        let base = [
            "GITHUB_TOKEN",
            "DEEPSEEK_API_KEY",
            "HOLDFAST_TOKEN",
            "MY_MODEL",
        ];
        let keep = ["GITHUB_TOKEN", "DEEPSEEK_API_KEY", "HOLDFAST_TOKEN"];
        assert_eq!(
            names(&base, &["DEEPSEEK_API_KEY", "MY_MODEL"], &keep),
            ["GITHUB_TOKEN"]
        );
    }

    #[test]
    fn sv_01_nothing_waits_for_a_terminal() {
        let base = [("PAGER", "less"), ("GIT_EDITOR", "vi")].map(|(n, v)| (n.into(), v.into()));
        let chosen = command_environment(base, &[], &[]);
        let text: Vec<String> = chosen
            .iter()
            .map(|(n, v)| format!("{}={}", n.to_string_lossy(), v.to_string_lossy()))
            .collect();
        assert_eq!(
            text,
            [
                "GIT_EDITOR=true",
                "GIT_PAGER=cat",
                "GIT_TERMINAL_PROMPT=0",
                "PAGER=cat"
            ]
        );
    }
}
