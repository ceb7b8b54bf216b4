//! `shell`: real commands under the real supervisor.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use holdfast_domain::recovery::lifecycle::AttemptState;
use holdfast_domain::recovery::process::{EndedBy, TreeProof};
use holdfast_supervisor::{read_receipt, request_stop};
use holdfast_tools::{
    Context, FullOutput, Prepared, Progress, ToolOutcome, command_environment, finish_shell,
};
use serde_json::{Value, json};

use crate::place::{Place, supervisor, wait_for};

/// A prepared command with what it has printed so far.
struct Running {
    prepared: Prepared,
    context: Context,
    printed: Arc<Mutex<String>>,
}

impl Running {
    fn new(place: &Place, arguments: &Value) -> Self {
        let prepared = place.prepare("shell", arguments).unwrap();
        let mut context = place.context(&prepared);
        context.supervisor_binary = supervisor();
        let printed = Arc::new(Mutex::new(String::new()));
        context.progress = Progress::to({
            let printed = Arc::clone(&printed);
            move |text| printed.lock().unwrap().push_str(text)
        });
        Self {
            prepared,
            context,
            printed,
        }
    }

    async fn run(&self, place: &Place) -> ToolOutcome {
        place.execute(&self.prepared, &self.context).await
    }

    /// Stops it when a condition is true of what it has printed.
    async fn stop_when(
        &self,
        place: &Place,
        what: &str,
        is_so: impl Fn(&str) -> bool + Send + 'static,
    ) -> ToolOutcome {
        let (cancel, printed) = (self.context.cancel.clone(), Arc::clone(&self.printed));
        let what = what.to_owned();
        let watch = tokio::task::spawn_blocking(move || {
            wait_for(&what, || is_so(&printed.lock().unwrap()));
            cancel.cancel();
        });
        let (outcome, watched) = tokio::join!(self.run(place), watch);
        watched.unwrap();
        outcome
    }

    fn effects(&self) -> PathBuf {
        self.context.effects_root.join(&self.context.attempt_id)
    }
}

async fn run(place: &Place, command: &str) -> ToolOutcome {
    Running::new(place, &json!({ "command": command }))
        .run(place)
        .await
}

fn is_alive(pid: u32) -> bool {
    // A zombie has ended.
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| {
        !stat
            .rsplit(')')
            .next()
            .unwrap_or_default()
            .trim_start()
            .starts_with('Z')
    })
}

#[tokio::test]
async fn output_and_exit_status_come_back_in_order() {
    let place = Place::new();
    let outcome = run(&place, "echo one; echo two >&2; echo three; pwd").await;
    assert_eq!(outcome.state, AttemptState::Completed, "{}", outcome.text);
    let root = place.workspace.root().display();
    assert_eq!(
        outcome.text,
        format!("one\ntwo\nthree\n{root}\n[exit status 0]\n")
    );
    let receipt = outcome.exit.unwrap();
    assert_eq!((receipt.code, receipt.ended_by), (Some(0), EndedBy::Itself));
    assert!(!outcome.truncated && outcome.survivors.is_empty());

    let outcome = run(&place, "printf oops; exit 3").await;
    assert_eq!(
        (outcome.state, outcome.code),
        (AttemptState::Failed, Some("exit_status"))
    );
    assert_eq!(outcome.text, "oops\n[exit status 3]\n");
    let outcome = run(&place, "kill -9 $$").await;
    assert_eq!(outcome.text, "[ended by signal 9]\n");
    assert_eq!(outcome.state, AttemptState::Failed);
}

#[tokio::test]
async fn sv_01_there_is_no_terminal_and_no_input() {
    let place = Place::new();
    let outcome = run(
        &place,
        "cat; tty; (: </dev/tty) 2>/dev/null || echo no terminal; echo $PAGER $GIT_EDITOR",
    )
    .await;
    assert_eq!(
        outcome.text,
        "not a tty\nno terminal\ncat true\n[exit status 0]\n"
    );
}

#[tokio::test]
async fn tr_07_a_command_gets_its_key_and_no_secrets() {
    let place = Place::new();
    let mut running = Running::new(&place, &json!({"command": "env"}));
    let base = [
        ("PATH", "/usr/bin:/bin"),
        ("OPENAI_API_KEY", "sk-1"),
        ("HOLDFAST_HOME", "/x"),
        ("MINE", "yes"),
    ];
    let base = base.map(|(name, value)| (name.into(), value.into()));
    running.context.environment = command_environment(base, &[], &[]);
    let text = running.run(&place).await.text;
    assert!(
        text.contains("HOLDFAST_IDEMPOTENCY_KEY=the-key\n") && text.contains("MINE=yes\n"),
        "{text}"
    );
    assert!(
        !text.contains("sk-1") && !text.contains("HOLDFAST_HOME"),
        "{text}"
    );
}

#[tokio::test]
async fn tr_11_a_stop_ends_the_whole_tree_and_says_so() {
    let place = Place::new();
    let command = "trap '' TERM; echo pid $$; sleep 600 & echo pid $!; setsid sleep 600 & echo pid $!; sleep 600";
    let running = Running::new(&place, &json!({ "command": command }));
    let outcome = running
        .stop_when(&place, "three pids", |printed| {
            printed.matches("pid").count() == 3 && printed.ends_with('\n')
        })
        .await;
    assert_eq!(
        (outcome.state, outcome.code),
        (AttemptState::Interrupted, Some("interrupted"))
    );
    assert!(
        outcome
            .text
            .ends_with("[stopped; effects may be partial]\n"),
        "{}",
        outcome.text
    );
    assert_eq!(outcome.effect_summary, "effects may be partial");
    let receipt = outcome.exit.unwrap();
    assert_eq!(
        (receipt.ended_by, receipt.tree_proof),
        (EndedBy::Stop, TreeProof::Full)
    );
    assert!(!outcome.may_continue_elsewhere);
    let pids: Vec<u32> = outcome
        .text
        .lines()
        .filter_map(|line| line.strip_prefix("pid ")?.parse().ok())
        .collect();
    assert_eq!(pids.len(), 3);
    assert!(!pids.into_iter().any(is_alive));
}

#[tokio::test]
async fn tr_11_a_time_limit_is_an_interruption_that_names_itself() {
    let place = Place::new();
    let arguments = json!({"command": "echo begun; sleep 600", "timeout_s": 1});
    let outcome = Running::new(&place, &arguments).run(&place).await;
    assert_eq!(outcome.state, AttemptState::Interrupted);
    assert_eq!(
        outcome.text,
        "begun\n[stopped at its time limit; effects may be partial]\n"
    );
    assert_eq!(outcome.exit.unwrap().ended_by, EndedBy::Timeout);
}

#[tokio::test]
async fn tr_11_work_that_was_handed_over_may_continue() {
    let place = Place::new();
    place.put("bin/docker", "#!/bin/sh\necho started\nexec sleep 600\n");
    let command = "chmod +x bin/docker; PATH=$PWD/bin:$PATH; docker run -d nginx";
    let running = Running::new(&place, &json!({ "command": command }));
    let outcome = running
        .stop_when(&place, "started", |printed| printed.contains("started"))
        .await;
    assert_eq!(outcome.state, AttemptState::Interrupted);
    assert!(outcome.may_continue_elsewhere);
    assert!(
        outcome
            .text
            .contains("[what docker started may continue elsewhere;"),
        "{}",
        outcome.text
    );
}

#[tokio::test]
async fn c03_a_stop_in_a_commit_hook_tells_that_effects_may_have_happened() {
    let place = Place::new();
    let prepare = "git init -q . && git config user.email a@b && git config user.name a \
        && printf '#!/bin/sh\\necho in the hook\\nexec sleep 60\\n' > .git/hooks/post-commit \
        && chmod +x .git/hooks/post-commit && echo text > file && git add file";
    let outcome = run(&place, prepare).await;
    assert_eq!(outcome.state, AttemptState::Completed, "{}", outcome.text);
    let running = Running::new(&place, &json!({"command": "git commit -q -m first"}));
    let outcome = running
        .stop_when(&place, "the hook", |printed| {
            printed.contains("in the hook")
        })
        .await;
    assert_eq!(outcome.state, AttemptState::Interrupted);
    assert!(
        outcome
            .text
            .ends_with("[stopped; effects may be partial]\n")
    );
    for word in ["rejected", "not written", "nothing was"] {
        assert!(!outcome.text.contains(word), "{}", outcome.text);
    }
    let log = run(&place, "git log --oneline").await;
    assert!(log.text.contains("first"), "{}", log.text);
}

#[tokio::test]
async fn c31_what_lives_on_is_a_job_and_the_call_ends() {
    let place = Place::new();
    let running = Running::new(&place, &json!({"command": "sleep 600 & echo up"}));
    let outcome = running.run(&place).await;
    assert_eq!(outcome.state, AttemptState::Completed, "{}", outcome.text);
    let pid = outcome.survivors[0].pid;
    assert_eq!(
        outcome.text,
        format!("up\n[still running as a job: sleep (pid {pid})]\n[exit status 0]\n")
    );
    assert!(is_alive(pid));
    request_stop(&running.effects()).unwrap();
    wait_for("the job is gone", || !is_alive(pid));
}

#[tokio::test]
async fn a_huge_output_is_cut_for_the_model_and_kept_whole() {
    let place = Place::new();
    let outcome = run(
        &place,
        "echo first; yes 0123456789abcde | head -n 200000; echo last",
    )
    .await;
    assert_eq!(outcome.state, AttemptState::Completed);
    assert!(
        outcome.text.len() <= 32 * 1024 && outcome.truncated,
        "{}",
        outcome.text.len()
    );
    assert!(
        outcome.text.starts_with("first\n0123")
            && outcome.text.ends_with("\nlast\n[exit status 0]\n")
    );
    assert!(outcome.text.contains("of 3200011 bytes are left out here"));
    let FullOutput::File(path) = outcome.full_output else {
        panic!("the whole is kept");
    };
    assert_eq!(fs::metadata(path).unwrap().len(), 3_200_011);

    let mut running = Running::new(&place, &json!({"command": "yes | head -c 100000"}));
    running.context.output_cap = 1000;
    let outcome = running.run(&place).await;
    assert!(
        outcome.truncated
            && outcome
                .text
                .ends_with("[more output was discarded]\n[exit status 0]\n")
    );
}

#[tokio::test]
async fn c11_any_output_is_valid_text() {
    let place = Place::new();
    let command = r"printf 'a\000b\326\320\n\033[31mred\033[0m\r\n\342\200\250\n'";
    let running = Running::new(&place, &json!({ "command": command }));
    let outcome = running.run(&place).await;
    assert_eq!(
        outcome.text,
        "a\u{2400}b\u{fffd}\u{fffd}\nred\n\u{2028}\n[exit status 0]\n"
    );
    let line = serde_json::to_string(&outcome.text).unwrap();
    assert_eq!(serde_json::from_str::<String>(&line).unwrap(), outcome.text);
    let outcome = run(&place, r"printf '\377\376h\000i\000'").await;
    assert_eq!(outcome.text, "hi\n[exit status 0]\n");
}

#[tokio::test]
async fn tr_18_a_recovered_result_reads_like_the_live_one() {
    let place = Place::new();
    let command = "echo text; exit 5";
    let running = Running::new(&place, &json!({ "command": command }));
    let live = running.run(&place).await;
    let folder = running.effects();
    let receipt = read_receipt(
        &folder,
        &running.context.attempt_id,
        &running.context.argument_digest,
    );
    let recovered = finish_shell(
        command,
        &receipt.unwrap().unwrap(),
        &folder.join("output"),
        false,
    );
    assert_eq!(recovered, live);
    let receipt = live.exit.unwrap();
    let broken = finish_shell(command, &receipt, Path::new("/nowhere/output"), true);
    assert_eq!(
        (broken.state, broken.truncated),
        (AttemptState::Failed, true)
    );
    assert!(
        broken.text.contains("[output incomplete:") && broken.text.ends_with("[exit status 5]\n")
    );
}

#[tokio::test]
async fn c32_a_lost_supervisor_makes_the_outcome_unknown() {
    let place = Place::new();
    let running = Running::new(&place, &json!({"command": "echo begun; exec sleep 600"}));
    let (effects, printed) = (running.effects(), Arc::clone(&running.printed));
    let killer = tokio::task::spawn_blocking(move || {
        wait_for("output", || printed.lock().unwrap().contains("begun"));
        let claim: Value =
            serde_json::from_slice(&fs::read(effects.join("start")).unwrap()).unwrap();
        let pid = claim["pid"].as_u64().unwrap();
        assert!(
            Command::new("kill")
                .args(["-9", &pid.to_string()])
                .status()
                .unwrap()
                .success()
        );
    });
    let (outcome, killed) = tokio::join!(running.run(&place), killer);
    killed.unwrap();
    assert_eq!(
        (outcome.state, outcome.code),
        (AttemptState::Unknown, Some("unknown"))
    );
    let straggler = &outcome.stragglers[0];
    assert!(
        outcome
            .text
            .contains(&format!("still alive: sleep (pid {})", straggler.pid)),
        "{}",
        outcome.text
    );
    let pid = straggler.pid.to_string();
    assert!(
        Command::new("kill")
            .args(["-9", &pid])
            .status()
            .unwrap()
            .success()
    );
}

#[tokio::test]
async fn what_never_started_is_proven_so() {
    let place = Place::new();
    let mut running = Running::new(&place, &json!({"command": "echo ran > ran"}));
    running.context.supervisor_binary = place.path("no such program");
    let outcome = running.run(&place).await;
    assert_eq!(
        (outcome.state, outcome.code),
        (AttemptState::NotStarted, Some("supervisor_unavailable"))
    );
    assert!(!running.effects().exists());

    let mut running = Running::new(&place, &json!({"command": "echo ran > ran"}));
    running.context.supervisor_binary = PathBuf::from("/bin/false");
    let outcome = running.run(&place).await;
    assert_eq!(outcome.state, AttemptState::NotStarted, "{}", outcome.text);

    let running = Running::new(&place, &json!({"command": "echo ran > ran"}));
    running.context.cancel.cancel();
    let outcome = running.run(&place).await;
    assert_eq!(
        (outcome.state, outcome.code),
        (AttemptState::NotStarted, Some("cancelled"))
    );
    assert!(!place.path("ran").exists());
}

#[tokio::test]
async fn without_a_socket_a_command_is_followed_by_its_files() {
    let place = Place::new();
    let mut running = Running::new(&place, &json!({"command": "echo one; sleep 600"}));
    running.context.runtime_folder = None;
    running.context.shell_grace = Duration::from_millis(100);
    let outcome = running
        .stop_when(&place, "output", |printed| printed == "one\n")
        .await;
    assert_eq!(outcome.state, AttemptState::Interrupted);
    assert_eq!(outcome.text, "one\n[stopped; effects may be partial]\n");
}
