//! Commands that hand work to a program which is not in their process tree: a daemon, a scheduler,
//! another machine. Their proven end says nothing about that work (TR-11).
//!
//! This is a list with a simple reading of the command, for a warning and a question; nothing is
//! permitted because of it.

/// Programs that hand work over whatever their arguments are.
const ALWAYS: &[&str] = &[
    // Services and schedulers.
    "systemd-run",
    "systemctl",
    "service",
    "initctl",
    "launchctl",
    "at",
    "batch",
    "crontab",
    "sbatch",
    "srun",
    "qsub",
    "pm2",
    "supervisorctl",
    "schtasks",
    "sc",
    "wmic",
    "runas",
    "start-service",
    "start-scheduledtask",
    "register-scheduledtask",
    "invoke-cimmethod",
    "invoke-wmimethod",
    // Terminals that outlive their client.
    "tmux",
    "screen",
    "zellij",
    "byobu",
    // Containers and virtual machines.
    "docker",
    "docker-compose",
    "podman",
    "nerdctl",
    "ctr",
    "crictl",
    "lxc",
    "incus",
    "vagrant",
    "virsh",
    "multipass",
    "wsl",
    // Other machines.
    "ssh",
    "mosh",
    "rsh",
    "pdsh",
    "psexec",
    "invoke-command",
    "kubectl",
    "oc",
    "helm",
    "nomad",
    "ansible",
    "ansible-playbook",
    "terraform",
    "tofu",
    "pulumi",
    "aws",
    "gcloud",
    "az",
    "flyctl",
    "adb",
    // Database clients: the server may go on with a statement.
    "psql",
    "mysql",
    "mariadb",
    "mongosh",
    "redis-cli",
    "sqlcmd",
    // Build tools with a daemon that may already run.
    "gradle",
    "gradlew",
    "bazel",
    "bazelisk",
    "buck2",
    "mvnd",
];

/// Programs that run the command in their arguments; with their options that take a value.
const WRAPPERS: &[(&str, &[&str])] = &[
    ("sudo", &["-u", "-g", "-h", "-p", "-C", "-D", "-R", "-T"]),
    ("doas", &["-u", "-C"]),
    ("env", &["-u", "-C", "-S"]),
    ("nice", &["-n"]),
    ("ionice", &["-c", "-n"]),
    ("timeout", &["-s", "-k"]),
    ("stdbuf", &["-i", "-o", "-e"]),
    ("time", &[]),
    ("command", &[]),
    ("exec", &[]),
    ("nohup", &[]),
    ("setsid", &[]),
    ("xargs", &["-I", "-n", "-P", "-d", "-L"]),
    ("then", &[]),
    ("do", &[]),
    ("else", &[]),
    ("if", &[]),
    ("while", &[]),
    ("until", &[]),
    ("!", &[]),
    ("{", &[]),
];

/// Shells whose `-c` argument is a command again.
const SHELLS: &[&str] = &["sh", "bash", "dash", "zsh", "ksh", "ash"];

/// The name of the first program in a command that hands work over, if there is one.
pub fn hands_over(command: &str) -> Option<String> {
    search(command, 0)
}

fn search(command: &str, depth: usize) -> Option<String> {
    // Nesting is bounded: a script deep in quotes is not worth a stack.
    if depth > 4 {
        return None;
    }
    simple_commands(command)
        .iter()
        .find_map(|words| in_simple(words, depth))
}

fn in_simple(words: &[String], depth: usize) -> Option<String> {
    let mut words = words.iter().map(String::as_str).peekable();
    loop {
        let word = words.next()?;
        let is_assignment = word.split_once('=').is_some_and(|(name, _)| {
            !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_')
        });
        if is_assignment {
            continue;
        }
        // Windows does not look at case, and the extension can be left out there.
        let program = word.rsplit(['/', '\\']).next().unwrap_or(word);
        let program = program.to_ascii_lowercase();
        let program = program.strip_suffix(".exe").unwrap_or(&program);
        if ALWAYS.contains(&program) {
            return Some(program.to_owned());
        }
        if SHELLS.contains(&program) {
            let is_command = |word: &&str| word.starts_with('-') && word.ends_with('c');
            words.find(is_command)?;
            return search(words.next()?, depth + 1);
        }
        let (_, valued) = WRAPPERS.iter().find(|(name, _)| *name == program)?;
        while let Some(option) = words.next_if(|word| word.starts_with('-')) {
            if valued.contains(&option) {
                words.next();
            }
        }
        if program == "timeout" {
            words.next();
        }
    }
}

/// Words of the simple commands: split where a shell splits commands, quotes respected, a
/// substitution taken as a command of its own.
fn simple_commands(text: &str) -> Vec<Vec<String>> {
    let mut commands = vec![Vec::new()];
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some('\''), '\'') | (Some('"'), '"') => quote = None,
            (Some('"') | None, '$') if chars.peek() == Some(&'(') => {
                chars.next();
                end(&mut commands, &mut word);
            }
            // In Windows' shells it is a part of paths.
            (Some('"') | None, '\\') if !cfg!(windows) => {
                if let Some(next) = chars.next()
                    && next != '\n'
                {
                    word.get_or_insert_default().push(next);
                }
            }
            (Some(_), c) => word.get_or_insert_default().push(c),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, ';' | '&' | '|' | '(' | ')' | '\n' | '`') => end(&mut commands, &mut word),
            (None, c) if c.is_whitespace() => push(&mut commands, &mut word),
            (None, c) => word.get_or_insert_default().push(c),
        }
    }
    push(&mut commands, &mut word);
    commands
}

fn push(commands: &mut [Vec<String>], word: &mut Option<String>) {
    if let (Some(word), Some(last)) = (word.take(), commands.last_mut()) {
        last.push(word);
    }
}

fn end(commands: &mut Vec<Vec<String>>, word: &mut Option<String>) {
    push(commands, word);
    commands.push(Vec::new());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tr_11_commands_that_hand_work_over_are_known() {
        for (command, program) in [
            ("docker run -d nginx", "docker"),
            ("cd x && sudo -u bob systemd-run sleep 60", "systemd-run"),
            ("A=1 B=2 /usr/bin/ssh host 'rm -rf x'", "ssh"),
            ("echo ls | at now", "at"),
            ("bash -lc 'tmux new -d; echo'", "tmux"),
            ("sh -c \"sh -c 'screen -d -m x'\"", "screen"),
            ("if true; then kubectl apply -f x; fi", "kubectl"),
            ("echo $(psql -c 'delete from t')", "psql"),
            ("timeout -k 5 60 ./gradlew build", "gradlew"),
            ("C:/tools/Docker.EXE run -d x", "docker"),
            ("wsl make; Start-Service x", "wsl"),
            ("nohup nice -n 5 podman start x &", "podman"),
        ] {
            assert_eq!(hands_over(command).as_deref(), Some(program), "{command}");
        }
    }

    #[test]
    fn tr_11_ordinary_commands_are_not() {
        for command in [
            "cargo test",
            "echo docker run",
            "git commit -m 'at last; ssh works'",
            "grep -r tmux .",
            "cat <<X\n  text\nX",
            "bash script.sh",
            "",
            "'",
            "$(",
            "sleep 600 & sleep 600",
            "ls at/",
        ] {
            assert_eq!(hands_over(command), None, "{command}");
        }
    }
}
