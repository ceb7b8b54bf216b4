//! What the app remembers over restarts: tabs in order, their drafts, projects, looks.
//!
//! Guarantee: data alone; where it is kept and when it is written is the shelf's affair.

use holdfast_api::desktop::{Layout, TabView};
use holdfast_api::hosts::HostWay;
use holdfast_api::session::{Status, session_path};
use serde::{Deserialize, Serialize};

/// The version of the file that this program writes and reads.
pub(crate) const VERSION: u32 = 1;

/// Everything.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Remembered {
    pub(crate) version: u32,
    #[serde(default)]
    pub(crate) tabs: Vec<TabRecord>,
    #[serde(default)]
    pub(crate) active: String,
    /// Folders that a person added, in that order.
    #[serde(default)]
    pub(crate) projects: Vec<String>,
    /// Folders that a person took off the list, although they have sessions.
    #[serde(default)]
    pub(crate) hidden: Vec<String>,
    #[serde(default)]
    pub(crate) looks: Looks,
    /// Other machines, in the order in which a person added them.
    #[serde(default)]
    pub(crate) hosts: Vec<HostRecord>,
    /// Bindings made in this run: the latest generation.
    #[serde(skip)]
    pub(crate) generation: u64,
}

/// One tab.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct TabRecord {
    pub(crate) tab_id: String,
    pub(crate) session_id: String,
    /// Machine that the session is on; empty for this one.
    pub(crate) host_id: String,
    pub(crate) title: String,
    pub(crate) workspace_root: String,
    pub(crate) model: String,
    pub(crate) mode: String,
    pub(crate) draft: String,
    #[serde(skip)]
    pub(crate) generation: u64,
    #[serde(skip)]
    pub(crate) problem: String,
}

/// Another machine; its token is where keys are kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HostRecord {
    pub(crate) host_id: String,
    pub(crate) name: String,
    pub(crate) way: HostWay,
}

/// How the window looks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Looks {
    pub(crate) theme: String,
    pub(crate) language: String,
    pub(crate) font_size: u32,
}

impl Default for Looks {
    fn default() -> Self {
        Self {
            theme: "system".to_owned(),
            language: "system".to_owned(),
            font_size: 13,
        }
    }
}

impl Default for Remembered {
    fn default() -> Self {
        Self {
            version: VERSION,
            tabs: Vec::new(),
            active: String::new(),
            projects: Vec::new(),
            hidden: Vec::new(),
            looks: Looks::default(),
            hosts: Vec::new(),
            generation: 0,
        }
    }
}

impl TabRecord {
    /// As the window gets it.
    pub(crate) fn view(&self) -> TabView {
        TabView {
            tab_id: self.tab_id.clone(),
            session_id: self.session_id.clone(),
            session_path: session_path(&self.session_id),
            session_generation: self.generation,
            title: self.title.clone(),
            workspace_root: self.workspace_root.clone(),
            model: self.model.clone(),
            mode: self.mode.clone(),
            draft: self.draft.clone(),
            remote: !self.host_id.is_empty(),
            host_id: self.host_id.clone(),
            problem: self.problem.clone(),
        }
    }

    /// It shows that session of that machine.
    pub(crate) fn shows(&self, host_id: &str, session_id: &str) -> bool {
        self.host_id == host_id && self.session_id == session_id
    }

    /// Takes over what the session says of itself.
    pub(crate) fn learn(&mut self, status: &Status) {
        self.title.clone_from(&status.title);
        self.workspace_root.clone_from(&status.workspace);
        self.model.clone_from(&status.model);
        self.mode.clone_from(&status.mode);
        self.problem.clear();
    }
}

impl Remembered {
    /// Gives every restored tab a generation of this run, and drops what can't be a tab.
    pub(crate) fn bound(mut self) -> Self {
        self.tabs
            .retain(|tab| !tab.tab_id.is_empty() && !tab.session_id.is_empty());
        for tab in &mut self.tabs {
            self.generation += 1;
            tab.generation = self.generation;
        }
        if self.tab(&self.active).is_none() {
            self.active = self
                .tabs
                .first()
                .map(|tab| tab.tab_id.clone())
                .unwrap_or_default();
        }
        self
    }

    pub(crate) fn tab(&self, tab_id: &str) -> Option<&TabRecord> {
        self.tabs.iter().find(|tab| tab.tab_id == tab_id)
    }

    pub(crate) fn tab_mut(&mut self, tab_id: &str) -> Option<&mut TabRecord> {
        self.tabs.iter_mut().find(|tab| tab.tab_id == tab_id)
    }

    /// The tab that shows a session.
    pub(crate) fn tab_of(&self, host_id: &str, session_id: &str) -> Option<&TabRecord> {
        let mut tabs = self.tabs.iter();
        tabs.find(|tab| tab.shows(host_id, session_id))
    }

    /// A machine.
    pub(crate) fn host(&self, host_id: &str) -> Option<&HostRecord> {
        self.hosts.iter().find(|host| host.host_id == host_id)
    }

    /// Tabs of a machine get a new generation: what was read for them is read anew.
    pub(crate) fn rebind(&mut self, host_id: &str) {
        for tab in &mut self.tabs {
            if tab.host_id == host_id {
                self.generation += 1;
                tab.generation = self.generation;
            }
        }
    }

    /// Binds a new tab behind the others and makes it the active one.
    pub(crate) fn add(&mut self, mut tab: TabRecord) -> TabView {
        self.generation += 1;
        tab.generation = self.generation;
        self.active.clone_from(&tab.tab_id);
        let view = tab.view();
        self.tabs.push(tab);
        view
    }

    /// Takes a tab away; its right neighbour becomes active, else its left one.
    pub(crate) fn close(&mut self, tab_id: &str) -> bool {
        let Some(index) = self.tabs.iter().position(|tab| tab.tab_id == tab_id) else {
            return false;
        };
        self.tabs.remove(index);
        if self.active == tab_id {
            let next = self.tabs.get(index).or_else(|| self.tabs.last());
            self.active = next.map(|tab| tab.tab_id.clone()).unwrap_or_default();
        }
        true
    }

    pub(crate) fn layout(&self) -> Layout {
        Layout {
            tabs: self.tabs.iter().map(TabRecord::view).collect(),
            active: self.active.clone(),
        }
    }

    /// Puts a folder on the list of projects.
    pub(crate) fn show_project(&mut self, path: &str) {
        self.hidden.retain(|hidden| hidden != path);
        if !self.projects.iter().any(|project| project == path) {
            self.projects.push(path.to_owned());
        }
    }

    /// Takes a folder off the list of projects.
    pub(crate) fn hide_project(&mut self, path: &str) {
        self.projects.retain(|project| project != path);
        if !self.hidden.iter().any(|hidden| hidden == path) {
            self.hidden.push(path.to_owned());
        }
    }
}
