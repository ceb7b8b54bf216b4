//! Tabs and their sessions at the moment of a request, wherever the sessions are.

use std::sync::Arc;

use holdfast_api::desktop::{ProjectList, TabView};
use holdfast_api::host::Selector;
use holdfast_api::{ApiError, SessionHost};
use holdfast_domain::canonical::hex;

use crate::desktop::Inner;
use crate::error::DesktopError;
use crate::hosts::Attached;
use crate::remembered::TabRecord;

/// A tab's session at the moment of a request.
pub(super) struct Bound {
    pub(super) tab_id: String,
    session_id: String,
    pub(super) generation: u64,
    /// Whoever answers for the session.
    pub(super) host: Arc<dyn SessionHost>,
    /// The machine, when it is another one.
    attached: Option<Arc<Attached>>,
}

impl Bound {
    pub(super) fn selector(&self) -> Selector {
        Selector::of(&self.session_id)
    }

    /// No tab shows it any more.
    pub(super) fn unbind(&self) {
        if let Some(attached) = &self.attached {
            attached.unbind(&self.session_id);
        }
    }
}

impl Inner {
    /// Whoever answers for the sessions of a machine; this one's id is empty.
    pub(super) fn host_of(&self, host_id: &str) -> Result<Arc<dyn SessionHost>, DesktopError> {
        if host_id.is_empty() {
            return Ok(Arc::clone(&self.host));
        }
        let attached = self.hosts.get(host_id).ok_or(DesktopError::HostUnknown)?;
        Ok(Arc::new(attached.host.clone()))
    }

    pub(super) fn bound(&self, tab_id: &str) -> Result<Bound, DesktopError> {
        let (host_id, session_id, generation) = self.shelf.read(|remembered| {
            let tab = remembered.tab(tab_id).ok_or(DesktopError::TabUnknown)?;
            let session_id = tab.session_id.clone();
            Ok::<_, DesktopError>((tab.host_id.clone(), session_id, tab.generation))
        })?;
        Ok(Bound {
            tab_id: tab_id.to_owned(),
            session_id,
            generation,
            host: self.host_of(&host_id)?,
            attached: self.hosts.get(&host_id),
        })
    }

    /// Hands out what was read for a tab, unless the tab shows another session by now.
    pub(super) fn still<T>(&self, bound: &Bound, reply: T) -> Result<T, ApiError> {
        let same = self.shelf.read(|remembered| {
            remembered
                .tab(&bound.tab_id)
                .is_some_and(|tab| tab.generation == bound.generation)
        });
        if same {
            Ok(reply)
        } else {
            Err(DesktopError::TabChanged.into())
        }
    }

    /// A tab for a session that answers; the tab that it has, or a new one.
    pub(super) async fn show(
        &self,
        host_id: &str,
        session_id: &str,
        draft: &str,
    ) -> Result<TabView, ApiError> {
        let host = self.host_of(host_id)?;
        if let Some(attached) = self.hosts.get(host_id) {
            attached.choose(session_id).await?;
        }
        let status = host.status(&Selector::of(session_id)).await?;
        let view = self.shelf.change(|remembered| {
            if host_id.is_empty() {
                remembered.show_project(&status.workspace);
            }
            let mut tabs = remembered.tabs.iter_mut();
            if let Some(tab) = tabs.find(|tab| tab.shows(host_id, session_id)) {
                tab.learn(&status);
                let view = tab.view();
                remembered.active.clone_from(&view.tab_id);
                return view;
            }
            let mut tab = TabRecord {
                tab_id: hex(&rand::random::<[u8; 16]>()),
                session_id: session_id.to_owned(),
                host_id: host_id.to_owned(),
                draft: draft.to_owned(),
                ..TabRecord::default()
            };
            tab.learn(&status);
            remembered.add(tab)
        });
        if let Some(attached) = self.hosts.get(host_id) {
            attached.bind(session_id);
            // So that the tab can be used at once, as one of this machine.
            attached.verify().await;
        }
        // The session is there whether or not the layout can be stored: that is said apart.
        if let Err(error) = self.shelf.save().await {
            self.tell("", error.code(), &error.to_string());
        }
        self.list_changed(host_id);
        self.dirty.notify_one();
        Ok(view)
    }

    /// The list of a machine's sessions is read again soon.
    pub(super) fn list_changed(&self, host_id: &str) {
        match self.hosts.get(host_id) {
            Some(attached) => attached.list_changed(),
            None => self.rows_changed.notify_one(),
        }
    }

    /// Reads the list of a machine's sessions again.
    pub(super) async fn list_again(&self, host_id: &str) -> Result<(), ApiError> {
        match self.hosts.get(host_id) {
            Some(attached) => attached.catalogue.read_all(&attached.host).await?,
            None => self.catalogue.read_all(&*self.host).await?,
        }
        self.dirty.notify_one();
        Ok(())
    }

    /// This machine's projects, read anew, and what is known of others'.
    pub(super) async fn list(&self) -> Result<ProjectList, ApiError> {
        self.list_again("").await?;
        let (mut projects, order) = self.shelf.read(|remembered| {
            let hosts = remembered.hosts.iter();
            let order: Vec<String> = hosts.map(|host| host.host_id.clone()).collect();
            (self.catalogue.projects(remembered), order)
        });
        for host_id in order {
            if let Some(attached) = self.hosts.get(&host_id) {
                projects.extend(attached.catalogue.remote_projects(&host_id));
            }
        }
        Ok(ProjectList { projects })
    }
}
