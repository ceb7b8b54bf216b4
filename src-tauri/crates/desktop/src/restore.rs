//! The sessions of this machine's tabs, opened again: at the start, and when a tab with a problem is looked at.
//!
//! Guarantee: a tab whose session can't be opened stays, with the reason, and nothing of it is lost.

use std::sync::Arc;

use holdfast_api::host::Selector;
use tokio_util::sync::CancellationToken;

use crate::desktop::Inner;

/// Opens the sessions of all tabs in the background, the active one first; recovery runs with it.
pub(crate) fn start(inner: &Arc<Inner>, stopped: &CancellationToken) {
    let inner = Arc::clone(inner);
    let stopped = stopped.clone();
    tokio::spawn(async move {
        let tabs = inner.shelf.read(|remembered| {
            let own = remembered.tabs.iter().filter(|tab| tab.host_id.is_empty());
            let mut tabs: Vec<(String, String)> = own
                .map(|tab| (tab.tab_id.clone(), tab.session_id.clone()))
                .collect();
            tabs.sort_by_key(|(tab_id, _)| *tab_id != remembered.active);
            tabs
        });
        for (tab_id, session_id) in tabs {
            if stopped.is_cancelled() {
                return;
            }
            open(&inner, &tab_id, &session_id).await;
        }
        inner.rows_changed.notify_one();
    });
}

/// Opens one tab's session and remembers what it says, or why it can't be used.
pub(crate) async fn open(inner: &Inner, tab_id: &str, session_id: &str) {
    match inner.host.status(&Selector::of(session_id)).await {
        Ok(status) => inner.shelf.change(|remembered| {
            // Only the tab that was asked for, and only while it shows this session.
            if let Some(tab) = remembered
                .tab_mut(tab_id)
                .filter(|tab| tab.shows("", session_id))
            {
                tab.learn(&status);
            }
        }),
        Err(error) => {
            inner.shelf.change(|remembered| {
                if let Some(tab) = remembered
                    .tab_mut(tab_id)
                    .filter(|tab| tab.shows("", session_id))
                {
                    tab.problem.clone_from(&error.message);
                }
            });
            inner.tell(session_id, &error.code, &error.message);
        }
    }
    inner.dirty.notify_one();
}
