//! Edits of a text: pure, all or nothing.
//!
//! Guarantees: edits apply in order, each to the result of the one before; each old text occurs
//! exactly once unless the edit says otherwise; line ends and a byte order mark stay as they were.

use std::fmt;

use serde::Deserialize;

/// One replacement.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Edit {
    /// What is there now; not empty.
    pub old_text: String,
    /// What comes in its place.
    pub new_text: String,
    /// Every occurrence, instead of exactly one.
    #[serde(default)]
    pub replace_all: bool,
}

/// Why an edit can't be applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EditFault {
    /// The old text is empty.
    Empty,
    /// Old and new are the same.
    Same,
    /// It does not occur.
    NotFound {
        /// Where something alike is.
        hint: String,
    },
    /// It occurs more than once.
    Ambiguous {
        /// How often.
        count: usize,
        /// The first lines it begins on, from 1.
        lines: Vec<usize>,
    },
}

impl EditFault {
    /// Stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Empty => "edit_empty",
            Self::Same => "edit_same",
            Self::NotFound { .. } => "edit_not_found",
            Self::Ambiguous { .. } => "edit_ambiguous",
        }
    }
}

impl fmt::Display for EditFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("old_text is empty; give the text to replace"),
            Self::Same => f.write_str("old_text and new_text are the same"),
            Self::NotFound { hint } => write!(f, "old_text does not occur ({hint})"),
            Self::Ambiguous { count, lines } => {
                let lines: Vec<String> = lines.iter().map(usize::to_string).collect();
                write!(
                    f,
                    "old_text occurs {count} times (lines {}); add lines around it until it is unique, or set replace_all",
                    lines.join(", ")
                )
            }
        }
    }
}

const MARK: char = '\u{feff}';

/// Applies edits to a text.
///
/// # Errors
/// The index of the first edit that can't be applied, and why; then none is.
pub fn apply_edits(text: &str, edits: &[Edit]) -> Result<String, (usize, EditFault)> {
    let (mark, body) = match text.strip_prefix(MARK) {
        Some(body) => (true, body),
        None => (false, text),
    };
    let ends = LineEnds::of(body);
    let mut now = body.to_owned();
    for (index, edit) in edits.iter().enumerate() {
        now = apply(&now, edit, ends).map_err(|fault| {
            let gone = index > 0 && body.contains(&edit.old_text);
            match fault {
                EditFault::NotFound { .. } if gone => {
                    let hint = "an earlier edit of this call changed it".to_owned();
                    (index, EditFault::NotFound { hint })
                }
                fault => (index, fault),
            }
        })?;
    }
    Ok(if mark { format!("{MARK}{now}") } else { now })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineEnds {
    /// `\n`, or no line end at all.
    Lf,
    /// Every `\n` stands after a `\r`.
    Crlf,
    /// Both.
    Mixed,
}

impl LineEnds {
    fn of(text: &str) -> Self {
        let all = text.matches('\n').count();
        let with_return = text.matches("\r\n").count();
        match with_return {
            0 => Self::Lf,
            count if count == all => Self::Crlf,
            _ => Self::Mixed,
        }
    }
}

fn apply(text: &str, edit: &Edit, ends: LineEnds) -> Result<String, EditFault> {
    if edit.old_text.is_empty() {
        return Err(EditFault::Empty);
    }
    if edit.old_text == edit.new_text {
        return Err(EditFault::Same);
    }
    // Models write `\n` whatever the file has.
    let crlf = || (to_crlf(&edit.old_text), to_crlf(&edit.new_text));
    let (old, new) = match ends {
        LineEnds::Lf => (edit.old_text.clone(), edit.new_text.clone()),
        LineEnds::Crlf => crlf(),
        LineEnds::Mixed if text.contains(&edit.old_text) => {
            (edit.old_text.clone(), edit.new_text.clone())
        }
        LineEnds::Mixed => crlf(),
    };
    let places = occurrences(text, &old);
    match places.len() {
        0 => Err(EditFault::NotFound {
            hint: hint(text, &edit.old_text),
        }),
        1 => Ok(text.replacen(&old, &new, 1)),
        _ if edit.replace_all => Ok(text.replace(&old, &new)),
        count => Err(EditFault::Ambiguous {
            count,
            lines: places.iter().take(5).map(|at| line_of(text, *at)).collect(),
        }),
    }
}

fn to_crlf(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\n', "\r\n")
}

/// Every place where `part` begins, overlapping ones too: "exactly once" leaves no choice.
fn occurrences(text: &str, part: &str) -> Vec<usize> {
    let mut places = Vec::new();
    let mut from = 0;
    while let Some(at) = text.get(from..).and_then(|rest| rest.find(part)) {
        let at = from + at;
        places.push(at);
        from = at
            + text
                .get(at..)
                .and_then(|rest| rest.chars().next())
                .map_or(1, char::len_utf8);
    }
    places
}

fn line_of(text: &str, at: usize) -> usize {
    text.get(..at).unwrap_or_default().matches('\n').count() + 1
}

/// Where something alike is: the same lines but for white space, or the first line alone.
fn hint(text: &str, old: &str) -> String {
    let squeeze = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let wanted: Vec<String> = old.trim().lines().map(squeeze).collect();
    let lines: Vec<String> = text.lines().map(squeeze).collect();
    let Some(first) = wanted.first().filter(|line| !line.is_empty()) else {
        return "it is white space only; give the text around it too".to_owned();
    };
    let like = lines
        .windows(wanted.len())
        .position(|window| window.iter().zip(&wanted).all(|(a, b)| a == b));
    if let Some(at) = like {
        return format!(
            "lines {}–{} differ from it only in white space; copy them exactly, indentation included",
            at + 1,
            at + wanted.len()
        );
    }
    match lines.iter().position(|line| line.contains(first.as_str())) {
        Some(at) if wanted.len() > 1 => format!(
            "its first line is on line {}, the lines after it differ; read the file again",
            at + 1
        ),
        Some(at) => format!("line {} is alike but for white space", at + 1),
        None => "not even its first line does; read the file again".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn edit(old: &str, new: &str) -> Edit {
        Edit {
            old_text: old.to_owned(),
            new_text: new.to_owned(),
            replace_all: false,
        }
    }

    #[test]
    fn line_ends_and_the_byte_order_mark_stay() {
        let text = "\u{feff}one\r\ntwo\r\nthree\r\n";
        let out = apply_edits(text, &[edit("one\ntwo", "1\n2"), edit("three", "3\n4")]).unwrap();
        assert_eq!(out, "\u{feff}1\r\n2\r\n3\r\n4\r\n");
    }

    #[test]
    fn a_fault_names_the_edit_and_gives_a_hint() {
        let text = "fn main() {\n\tlet a = 1;\n}\n";
        let (at, fault) = apply_edits(
            text,
            &[edit("main", "start"), edit("    let a = 1;\n}", "x")],
        )
        .unwrap_err();
        assert_eq!((at, fault.code()), (1, "edit_not_found"));
        assert!(
            fault
                .to_string()
                .contains("lines 2–3 differ from it only in white space")
        );
        let (_, fault) = apply_edits("aaa", &[edit("aa", "b")]).unwrap_err();
        assert_eq!(
            fault,
            EditFault::Ambiguous {
                count: 2,
                lines: vec![1, 1]
            }
        );
        let (at, fault) = apply_edits("abc", &[edit("b", "x"), edit("bc", "y")]).unwrap_err();
        assert!(at == 1 && fault.to_string().contains("an earlier edit"));
    }

    /// The simplest thing that can be right, on texts without line ends of its own kind.
    fn naive(text: &str, edits: &[Edit]) -> Option<String> {
        let mut now: Vec<char> = text.chars().collect();
        for edit in edits {
            let old: Vec<char> = edit.old_text.chars().collect();
            let new: Vec<char> = edit.new_text.chars().collect();
            if old.is_empty() || old == new {
                return None;
            }
            let found = (0..now.len())
                .filter(|at| now[*at..].starts_with(&old))
                .count();
            if found == 0 || (found > 1 && !edit.replace_all) {
                return None;
            }
            let (mut out, mut at) = (Vec::new(), 0);
            while at < now.len() {
                if now[at..].starts_with(&old) {
                    out.extend(&new);
                    at += old.len();
                } else {
                    out.push(now[at]);
                    at += 1;
                }
            }
            now = out;
        }
        Some(now.into_iter().collect())
    }

    proptest! {
        #[test]
        fn edits_agree_with_a_naive_model(
            text in "[ab中\n]{0,12}",
            edits in prop::collection::vec(("[ab中\n]{0,3}", "[ab中\n]{0,3}", any::<bool>()), 1..4),
        ) {
            let edits: Vec<Edit> = edits
                .into_iter()
                .map(|(old_text, new_text, replace_all)| Edit { old_text, new_text, replace_all })
                .collect();
            prop_assert_eq!(apply_edits(&text, &edits).ok(), naive(&text, &edits));
        }

        #[test]
        fn edits_of_crlf_text_equal_edits_of_lf_text(
            text in "[ab\n]{0,12}", old in "[ab\n]{1,3}", new in "[ab\n]{0,3}",
        ) {
            prop_assume!(text.contains('\n'));
            let one = [edit(&old, &new)];
            let crlf = apply_edits(&text.replace('\n', "\r\n"), &one).ok();
            let lf = apply_edits(&text, &one).ok();
            prop_assert_eq!(crlf, lf.map(|text| text.replace('\n', "\r\n")));
        }
    }
}
