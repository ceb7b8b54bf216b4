//! Quitting while commands run: keep or stop (SV-09).
//!
//! Guarantees: with nothing running nobody is asked; a window can always be closed: a second wish
//! to quit, and a page that does not show the question, mean the configured default.

use holdfast_api::desktop::{Parting, QuitQuestion, QuitWord, RunningCommand};
use holdfast_api::host::Selector;
use holdfast_controller::config::HostLoss;

use crate::desktop::{Desktop, Inner};

/// How far quitting is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stage {
    /// Nobody wants to quit.
    #[default]
    Staying,
    /// What runs is looked up.
    Looking,
    /// The question went to the page.
    Asked,
    /// The page shows it.
    Shown,
    /// It is decided.
    Leaving,
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Happening {
    /// This many commands run.
    Found(usize),
    /// The page said something, or the window was asked to close (`Quit`).
    Said(QuitWord),
    /// The page had its time to show the question.
    TimeOver,
}

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Nothing.
    Nothing,
    /// Look what runs.
    Look,
    /// Ask the page.
    Ask,
    /// Leave; `None` is the configured default.
    Leave(Option<Parting>),
}

/// The next stage, and what is to be done.
pub fn next(stage: Stage, happening: Happening) -> (Stage, Step) {
    let leave = |parting| (Stage::Leaving, Step::Leave(parting));
    match (stage, happening) {
        (Stage::Leaving, _) => (stage, Step::Nothing),
        (Stage::Staying, Happening::Said(QuitWord::Quit)) => (Stage::Looking, Step::Look),
        (Stage::Looking, Happening::Found(0)) => leave(None),
        (Stage::Looking, Happening::Found(_)) => (Stage::Asked, Step::Ask),
        (Stage::Asked, Happening::Said(QuitWord::Shown)) => (Stage::Shown, Step::Nothing),
        (Stage::Asked | Stage::Looking, Happening::TimeOver)
        | (_, Happening::Said(QuitWord::Quit)) => leave(None),
        (Stage::Asked | Stage::Shown, Happening::Said(QuitWord::Keep)) => {
            leave(Some(Parting::Keep))
        }
        (Stage::Asked | Stage::Shown, Happening::Said(QuitWord::Stop)) => {
            leave(Some(Parting::Stop))
        }
        (Stage::Asked | Stage::Shown, Happening::Said(QuitWord::Cancel)) => {
            (Stage::Staying, Step::Nothing)
        }
        (
            Stage::Staying | Stage::Looking | Stage::Asked | Stage::Shown,
            Happening::Found(_) | Happening::Said(_) | Happening::TimeOver,
        ) => (stage, Step::Nothing),
    }
}

impl Desktop {
    /// What runs now in all open sessions, and what happens to it without an answer.
    pub async fn quit_question(&self) -> QuitQuestion {
        QuitQuestion {
            commands: self.inner.running_commands().await,
            default: self.parting().await,
        }
    }

    /// The configured default.
    pub async fn parting(&self) -> Parting {
        match self.inner.config.read().await {
            Ok(config) if config.agent.on_host_loss == HostLoss::Stop => Parting::Stop,
            Ok(_) | Err(_) => Parting::Keep,
        }
    }
}

impl Inner {
    async fn running_commands(&self) -> Vec<RunningCommand> {
        let mut found: Vec<RunningCommand> = Vec::new();
        for row in self.hub.runtime_states().sessions {
            if row.state.running || row.state.background_jobs > 0 {
                let id = row.session_path.trim_start_matches("session-id:");
                self.commands_of(id, &mut found).await;
            }
        }
        found.sort_by_key(|command| command.started_at);
        found
    }

    /// A session that does not answer is one without commands: it can't be asked about.
    async fn commands_of(&self, session_id: &str, found: &mut Vec<RunningCommand>) {
        let selector = Selector::of(session_id);
        let title = match self.host.status(&selector).await {
            Ok(status) => status.title,
            Err(_) => return,
        };
        let mut add = |attempt_id: String, command: String, started_at| {
            if found.iter().all(|known| known.attempt_id != attempt_id) {
                found.push(RunningCommand {
                    attempt_id,
                    session_id: session_id.to_owned(),
                    session_title: title.clone(),
                    command,
                    started_at,
                });
            }
        };
        for job in self.host.jobs(&selector).await.unwrap_or_default() {
            add(job.id, job.subject, job.started_at);
        }
        let Ok(snapshot) = self.host.transcript_snapshot(&selector).await else {
            return;
        };
        let tools = snapshot.items.into_iter().filter_map(|item| item.tool);
        for tool in tools.filter(|tool| tool.name == "shell" && tool.state == "in_flight") {
            let command = tool.args["command"].as_str().unwrap_or_default();
            add(tool.attempt_id, command.to_owned(), tool.started_at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walk(happenings: &[Happening]) -> (Stage, Step) {
        let start = (Stage::Staying, Step::Nothing);
        happenings.iter().fold(start, |(stage, step), happening| {
            let (stage, now) = next(stage, *happening);
            // What was done last counts.
            (stage, if now == Step::Nothing { step } else { now })
        })
    }

    const QUIT: Happening = Happening::Said(QuitWord::Quit);
    const ASKED: [Happening; 2] = [QUIT, Happening::Found(1)];

    #[test]
    fn sv_09_with_nothing_running_nobody_is_asked() {
        let left = (Stage::Leaving, Step::Leave(None));
        assert_eq!(walk(&[QUIT, Happening::Found(0)]), left);
    }

    #[test]
    fn sv_09_an_answer_is_what_happens() {
        for (word, parting) in [
            (QuitWord::Keep, Parting::Keep),
            (QuitWord::Stop, Parting::Stop),
        ] {
            let words = [QuitWord::Shown, word].map(Happening::Said);
            let end = walk(&[&ASKED[..], &words].concat());
            assert_eq!(end, (Stage::Leaving, Step::Leave(Some(parting))));
        }
        let cancelled = [QuitWord::Shown, QuitWord::Cancel].map(Happening::Said);
        let stays = [&ASKED[..], &cancelled, &[Happening::TimeOver]].concat();
        assert_eq!(walk(&stays), (Stage::Staying, Step::Ask));
        // And it can be asked again.
        let again = [&stays[..], &ASKED].concat();
        assert_eq!(walk(&again), (Stage::Asked, Step::Ask));
    }

    #[test]
    fn sv_09_a_window_can_always_be_closed() {
        let left = (Stage::Leaving, Step::Leave(None));
        let shown = Happening::Said(QuitWord::Shown);
        // A page that does not answer; a host that does not; a second wish at any time.
        assert_eq!(walk(&[QUIT, Happening::TimeOver]), left);
        assert_eq!(walk(&[ASKED[0], ASKED[1], Happening::TimeOver]), left);
        assert_eq!(walk(&[QUIT, QUIT]), left);
        assert_eq!(walk(&[ASKED[0], ASKED[1], QUIT]), left);
        assert_eq!(walk(&[ASKED[0], ASKED[1], shown, QUIT]), left);
        // A person who reads has all the time.
        let reads = walk(&[ASKED[0], ASKED[1], shown, Happening::TimeOver]);
        assert_eq!(reads, (Stage::Shown, Step::Ask));
    }
}
