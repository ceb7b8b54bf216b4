//! Windows command lines: several arguments as the one text that a process gets there.
//!
//! Guarantee: a program that splits its command line as the C runtime and `CommandLineToArgvW` do
//! gets exactly these arguments; `cmd` gets its command as it was written.

const QUOTE: u16 = b'"' as u16;
const BACKSLASH: u16 = b'\\' as u16;
const SPACE: u16 = b' ' as u16;
const TAB: u16 = b'\t' as u16;

/// The command line of a program and its arguments, as UTF-16 without the ending zero.
///
/// `cmd` does not split its command line: after `/C` and `/S` it takes the rest, without the
/// outermost quotes, as the command. Its arguments are therefore joined as they are, the last one
/// in quotes.
pub(crate) fn command_line<I>(program: &[u16], arguments: I, for_cmd: bool) -> Vec<u16>
where
    I: IntoIterator<Item = Vec<u16>>,
{
    // A program's path can't contain a quote; it is split by simpler rules than the rest.
    let mut line = vec![QUOTE];
    line.extend(program.iter().filter(|unit| **unit != QUOTE));
    line.push(QUOTE);
    let mut arguments = arguments.into_iter().peekable();
    while let Some(argument) = arguments.next() {
        line.push(SPACE);
        if !for_cmd {
            append_quoted(&mut line, &argument);
        } else if arguments.peek().is_some() {
            line.extend(argument);
        } else {
            line.push(QUOTE);
            line.extend(argument);
            line.push(QUOTE);
        }
    }
    line
}

fn append_quoted(line: &mut Vec<u16>, argument: &[u16]) {
    let plain = !argument.is_empty()
        && !argument
            .iter()
            .any(|unit| [QUOTE, SPACE, TAB, u16::from(b'\n')].contains(unit));
    if plain {
        line.extend(argument);
        return;
    }
    line.push(QUOTE);
    let mut backslashes = 0;
    for unit in argument {
        if *unit == BACKSLASH {
            backslashes += 1;
        } else {
            // Backslashes are ordinary except before a quote, where each needs another.
            if *unit == QUOTE {
                line.extend(std::iter::repeat_n(BACKSLASH, backslashes + 1));
            }
            backslashes = 0;
        }
        line.push(*unit);
    }
    line.extend(std::iter::repeat_n(BACKSLASH, backslashes));
    line.push(QUOTE);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(arguments: &[&str], for_cmd: bool) -> String {
        let wide = |text: &str| text.encode_utf16().collect::<Vec<u16>>();
        let arguments: Vec<Vec<u16>> = arguments.iter().map(|text| wide(text)).collect();
        String::from_utf16(&command_line(&wide(r"C:\a b\p.exe"), arguments, for_cmd)).unwrap()
    }

    #[test]
    fn arguments_are_quoted_as_programs_split_them() {
        let program = r#""C:\a b\p.exe""#;
        for (argument, quoted) in [
            ("plain", "plain"),
            ("", r#""""#),
            ("two words", r#""two words""#),
            (r"back\slash", r"back\slash"),
            (r"end of a\folder\", r#""end of a\folder\\""#),
            (r#"say "hi""#, r#""say \"hi\"""#),
            (r#"\\"x"#, r#""\\\\\"x""#),
            ("line\nbreak", "\"line\nbreak\""),
        ] {
            assert_eq!(line(&[argument], false), format!("{program} {quoted}"));
        }
    }

    #[test]
    fn cmd_gets_its_command_as_it_is() {
        assert_eq!(
            line(&["/D", "/S", "/C", r#"echo "a b" & dir C:\"#], true),
            r#""C:\a b\p.exe" /D /S /C "echo "a b" & dir C:\""#
        );
    }
}
