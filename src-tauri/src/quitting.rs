//! Quitting the window (SV-09): carries out what `holdfast_desktop::quitting` decides.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use holdfast_api::desktop::{Parting, QuitQuestion, QuitWord};
use holdfast_desktop::Desktop;
use holdfast_desktop::quitting::{Happening, Stage, Step, next};
use serde::{Deserialize, Serialize};
use tauri::{AppHandle, Manager, Runtime};
use tauri_specta::Event;

use crate::events::WINDOW;

/// Time for looking up what runs, and for the page to show the question.
const PATIENCE: Duration = Duration::from_secs(4);

/// SV-09: commands run, and the person is asked.
#[derive(Debug, Clone, Serialize, Deserialize, specta::Type, Event)]
#[tauri_specta(event_name = "quit:asked")]
pub struct QuitAsked(pub QuitQuestion);

/// How far quitting is, and what was decided.
#[derive(Default)]
pub struct Quitting(Mutex<(Stage, Option<Parting>)>);

impl Quitting {
    fn take(&self, happening: Happening) -> Step {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (stage, step) = next(state.0, happening);
        state.0 = stage;
        if let Step::Leave(parting) = step {
            state.1 = parting;
        }
        step
    }

    /// What a person decided.
    pub(crate) fn decided(&self) -> Option<Parting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).1
    }

    /// The app ends now, by no wish of a person.
    pub(crate) fn decide(&self, parting: Parting) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = (Stage::Leaving, Some(parting));
    }
}

/// Somebody said something about quitting. True when it is being seen to; otherwise the app has not
/// started, and may simply end.
pub fn hear<R: Runtime>(handle: &AppHandle<R>, word: QuitWord) -> bool {
    if handle.try_state::<Quitting>().is_none() {
        return false;
    }
    go_on(handle, Happening::Said(word));
    true
}

fn go_on<R: Runtime>(handle: &AppHandle<R>, happening: Happening) {
    match handle.state::<Quitting>().take(happening) {
        Step::Nothing => {}
        Step::Look => look(handle.clone()),
        // The page was told what was found.
        Step::Ask => {}
        Step::Leave(_) => handle.exit(0),
    }
}

fn look<R: Runtime>(handle: AppHandle<R>) {
    tauri::async_runtime::spawn(async move {
        let desktop = handle.state::<Desktop>().inner().clone();
        let looked = tokio::time::timeout(PATIENCE, desktop.quit_question()).await;
        let Ok(question) = looked else {
            return go_on(&handle, Happening::TimeOver);
        };
        go_on(&handle, Happening::Found(question.commands.len()));
        if question.commands.is_empty() {
            return;
        }
        if let Err(error) = QuitAsked(question).emit_to(&handle, WINDOW) {
            tracing::warn!(%error, "the question did not reach the window");
        }
        tokio::time::sleep(PATIENCE).await;
        go_on(&handle, Happening::TimeOver);
    });
}
