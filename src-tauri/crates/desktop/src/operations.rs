//! The table of app operations, as this app carries them out.
//!
//! Guarantees: a tab is looked up at the moment of the request, and what was read for it is handed
//! out only if the tab still shows the same session; what a person left is stored before the reply.

mod queue;

use std::sync::Arc;

use async_trait::async_trait;
use holdfast_api::app::{
    CancelReply, Nothing, Tab, TabApprove, TabAttempt, TabCancel, TabJob, TabPage, TabRecovery,
    TabRewind, TabSubmit,
};
use holdfast_api::desktop::{
    ActiveTab, Draft, Layout, ModelList, NewSession, OpenSession, ProjectFolder, ProjectList,
    ProviderChange, ProviderCheck, ProviderList, RuntimeStateProjection, SessionChange, Settings,
    TabView,
};
use holdfast_api::history::{CompactionStarted, Rewind, RewindReply};
use holdfast_api::host::Selector;
use holdfast_api::inbox::{
    Enqueued, InboxReceipt, InboxView, TabEditItem, TabEnqueue, TabItem, TabKey, TabMoveItem,
};
use holdfast_api::recovery::ToolRecoverySnapshot;
use holdfast_api::session::{
    Approve, BackgroundJob, Cancel, CancelJob, Cancelled, CreateSession, Job, PatchSession,
    PendingPrompt, SessionsPage, SessionsQuery, Submit, Submitted,
};
use holdfast_api::transcript::{
    DiffReply, OutputPage, PageQuery, TranscriptPage, TranscriptSnapshot,
};
use holdfast_api::{ApiError, App};
use holdfast_controller::models::DEMO_TASK;
use holdfast_domain::canonical::hex;

use crate::desktop::{Desktop, Inner};
use crate::error::DesktopError;
use crate::remembered::TabRecord;
use crate::{demo, restore};

/// A tab's session at the moment of a request.
struct Bound {
    tab_id: String,
    session_id: String,
    generation: u64,
}

impl Bound {
    fn selector(&self) -> Selector {
        Selector::of(&self.session_id)
    }
}

impl Inner {
    fn bound(&self, tab_id: &str) -> Result<Bound, DesktopError> {
        self.shelf.read(|remembered| {
            let tab = remembered.tab(tab_id).ok_or(DesktopError::TabUnknown)?;
            Ok(Bound {
                tab_id: tab.tab_id.clone(),
                session_id: tab.session_id.clone(),
                generation: tab.generation,
            })
        })
    }

    /// Hands out what was read for a tab, unless the tab shows another session by now.
    fn still<T>(&self, bound: &Bound, reply: T) -> Result<T, ApiError> {
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
    async fn show(&self, session_id: &str, draft: &str) -> Result<TabView, ApiError> {
        let status = self.host.status(&Selector::of(session_id)).await?;
        let view = self.shelf.change(|remembered| {
            remembered.show_project(&status.workspace);
            let known = remembered
                .tabs
                .iter_mut()
                .find(|tab| tab.session_id == session_id);
            if let Some(tab) = known {
                tab.learn(&status);
                let view = tab.view();
                remembered.active.clone_from(&view.tab_id);
                return view;
            }
            let mut tab = TabRecord {
                tab_id: hex(&rand::random::<[u8; 16]>()),
                session_id: session_id.to_owned(),
                draft: draft.to_owned(),
                ..TabRecord::default()
            };
            tab.learn(&status);
            remembered.add(tab)
        });
        // The session is there whether or not the layout can be stored: that is said apart.
        if let Err(error) = self.shelf.save().await {
            self.tell("", error.code(), &error.to_string());
        }
        self.rows_changed.notify_one();
        self.dirty.notify_one();
        Ok(view)
    }

    async fn list(&self) -> Result<ProjectList, ApiError> {
        self.catalogue.read_all(&*self.host).await?;
        self.dirty.notify_one();
        Ok(self
            .shelf
            .read(|remembered| self.catalogue.projects(remembered)))
    }
}

#[async_trait]
impl App for Desktop {
    async fn get_runtime_state_snapshot(
        &self,
        _: Nothing,
    ) -> Result<RuntimeStateProjection, ApiError> {
        Ok(self.inner.refreshed())
    }

    async fn sync_runtime_state(&self, _: Nothing) -> Result<RuntimeStateProjection, ApiError> {
        // All sessions are this machine's: there is no connection to verify.
        Ok(self.inner.refreshed())
    }

    async fn get_tool_recovery_for_tab(&self, tab: Tab) -> Result<ToolRecoverySnapshot, ApiError> {
        let bound = self.inner.bound(&tab.tab_id)?;
        let host = &self.inner.host;
        let snapshot = host.tool_recovery_snapshot(&bound.selector()).await?;
        self.inner.still(&bound, snapshot)
    }

    async fn resolve_tool_recovery_for_tab(
        &self,
        request: TabRecovery,
    ) -> Result<ToolRecoverySnapshot, ApiError> {
        let bound = self.inner.bound(&request.tab_id)?;
        self.inner
            .host
            .resolve_tool_recovery(&bound.selector(), request.request, &self.inner.surface)
            .await
    }

    async fn get_layout(&self, _: Nothing) -> Result<Layout, ApiError> {
        Ok(self.inner.shelf.read(|remembered| remembered.layout()))
    }

    async fn new_session(&self, request: NewSession) -> Result<TabView, ApiError> {
        let settings = self.inner.settings().await?;
        let or = |given: String, default: String| if given.is_empty() { default } else { given };
        let created = self
            .inner
            .host
            .create_session(CreateSession {
                workspace: Some(request.workspace_root),
                title: None,
                model: Some(or(request.model, settings.model)),
                mode: Some(or(request.mode, settings.mode)),
            })
            .await?;
        self.inner.show(&created.session_id, "").await
    }

    async fn open_session(&self, request: OpenSession) -> Result<TabView, ApiError> {
        self.inner.show(&request.session_id, "").await
    }

    async fn close_tab(&self, tab: Tab) -> Result<Layout, ApiError> {
        let layout = self.inner.shelf.change(|remembered| {
            remembered
                .close(&tab.tab_id)
                .then(|| remembered.layout())
                .ok_or(DesktopError::TabUnknown)
        })?;
        self.inner.dirty.notify_one();
        self.inner.shelf.save().await?;
        Ok(layout)
    }

    async fn select_tab(&self, tab: ActiveTab) -> Result<Nothing, ApiError> {
        let retry = self.inner.shelf.change(|remembered| {
            let found = remembered
                .tab(&tab.tab_id)
                .ok_or(DesktopError::TabUnknown)?;
            let retry = (!found.problem.is_empty()).then(|| found.session_id.clone());
            remembered.active.clone_from(&tab.tab_id);
            Ok::<_, DesktopError>(retry)
        })?;
        if let Some(session_id) = retry {
            let inner = Arc::clone(&self.inner);
            tokio::spawn(async move { restore::open(&inner, &tab.tab_id, &session_id).await });
        }
        self.inner.shelf.save().await?;
        Ok(Nothing {})
    }

    async fn save_draft(&self, draft: Draft) -> Result<Nothing, ApiError> {
        self.inner.shelf.change(|remembered| {
            let tab = remembered
                .tab_mut(&draft.tab_id)
                .ok_or(DesktopError::TabUnknown)?;
            tab.draft = draft.text;
            Ok::<_, DesktopError>(())
        })?;
        self.inner.shelf.save().await?;
        Ok(Nothing {})
    }

    async fn list_projects(&self, _: Nothing) -> Result<ProjectList, ApiError> {
        self.inner.list().await
    }

    async fn open_project(&self, folder: ProjectFolder) -> Result<ProjectList, ApiError> {
        let path = project_folder(folder.path).await?;
        self.inner
            .shelf
            .change(|remembered| remembered.show_project(&path));
        self.inner.shelf.save().await?;
        self.inner.list().await
    }

    async fn remove_project(&self, folder: ProjectFolder) -> Result<ProjectList, ApiError> {
        self.inner
            .shelf
            .change(|remembered| remembered.hide_project(&folder.path));
        self.inner.shelf.save().await?;
        self.inner.list().await
    }

    async fn start_demo(&self, _: Nothing) -> Result<TabView, ApiError> {
        let folder = self.inner.demo_folder.clone();
        let project = tokio::task::spawn_blocking(move || demo::make(&folder))
            .await
            .map_err(|_| DesktopError::Defect)??;
        let created = self
            .inner
            .host
            .create_session(CreateSession {
                workspace: Some(project.to_string_lossy().into_owned()),
                title: None,
                model: Some("demo/demo".to_owned()),
                mode: Some("ask".to_owned()),
            })
            .await?;
        self.inner.show(&created.session_id, DEMO_TASK).await
    }

    async fn list_sessions(&self, query: SessionsQuery) -> Result<SessionsPage, ApiError> {
        self.inner.host.list_sessions(&query).await
    }

    async fn change_session(&self, change: SessionChange) -> Result<Nothing, ApiError> {
        let patch = PatchSession {
            title: change.title,
            mode: change.mode,
            model: change.model,
            archived: change.archived,
        };
        let host = &self.inner.host;
        host.patch_session(&change.session_id, patch).await?;
        let status = host.status(&Selector::of(&change.session_id)).await?;
        self.inner.shelf.change(|remembered| {
            for tab in &mut remembered.tabs {
                if tab.session_id == change.session_id {
                    tab.learn(&status);
                }
            }
        });
        self.inner.rows_changed.notify_one();
        self.inner.shelf.save().await?;
        Ok(Nothing {})
    }

    async fn delete_session(&self, session: OpenSession) -> Result<Nothing, ApiError> {
        self.inner.host.delete_session(&session.session_id).await?;
        self.inner.shelf.change(|remembered| {
            while let Some(tab) = remembered.tab_of(&session.session_id) {
                let tab_id = tab.tab_id.clone();
                remembered.close(&tab_id);
            }
        });
        self.inner.shelf.save().await?;
        self.inner.list().await?;
        Ok(Nothing {})
    }

    async fn submit(&self, request: TabSubmit) -> Result<Submitted, ApiError> {
        let bound = self.inner.bound(&request.tab_id)?;
        let submit = Submit {
            input: request.input.clone(),
            submission_id: Some(request.submission_id).filter(|key| !key.is_empty()),
        };
        let submitted = self.inner.host.submit(&bound.selector(), submit).await?;
        self.inner.clear_draft(&bound, &request.input).await;
        Ok(submitted)
    }

    async fn inbox(&self, tab: Tab) -> Result<InboxView, ApiError> {
        let bound = self.inner.bound(&tab.tab_id)?;
        let inbox = self.inner.host.inbox(&bound.selector()).await?;
        self.inner.still(&bound, inbox)
    }

    async fn inbox_receipt(&self, request: TabKey) -> Result<InboxReceipt, ApiError> {
        let bound = self.inner.bound(&request.tab_id)?;
        let host = &self.inner.host;
        host.inbox_receipt(&bound.selector(), &request.key).await
    }

    async fn enqueue(&self, request: TabEnqueue) -> Result<Enqueued, ApiError> {
        self.inner.enqueue(request).await
    }

    async fn edit_item(&self, request: TabEditItem) -> Result<Nothing, ApiError> {
        self.inner.edit_item(request).await
    }

    async fn delete_item(&self, request: TabItem) -> Result<Nothing, ApiError> {
        self.inner.delete_item(request).await
    }

    async fn move_item(&self, request: TabMoveItem) -> Result<Nothing, ApiError> {
        self.inner.move_item(request).await
    }

    async fn pause_inbox(&self, tab: Tab) -> Result<Nothing, ApiError> {
        let bound = self.inner.bound(&tab.tab_id)?;
        self.inner.host.pause_inbox(&bound.selector()).await?;
        Ok(Nothing {})
    }

    async fn resume_inbox(&self, tab: Tab) -> Result<Nothing, ApiError> {
        let bound = self.inner.bound(&tab.tab_id)?;
        self.inner.host.resume_inbox(&bound.selector()).await?;
        Ok(Nothing {})
    }

    async fn cancel(&self, request: TabCancel) -> Result<CancelReply, ApiError> {
        let bound = self.inner.bound(&request.tab_id)?;
        let cancel = Cancel {
            turn_id: Some(request.turn_id),
        };
        let cancelled = self.inner.host.cancel(&bound.selector(), cancel).await?;
        Ok(CancelReply {
            already_ended: match cancelled {
                Cancelled::Requested => false,
                Cancelled::AlreadyEnded => true,
            },
        })
    }

    async fn compact(&self, tab: Tab) -> Result<CompactionStarted, ApiError> {
        let bound = self.inner.bound(&tab.tab_id)?;
        self.inner.host.compact(&bound.selector()).await
    }

    async fn rewind(&self, request: TabRewind) -> Result<RewindReply, ApiError> {
        let bound = self.inner.bound(&request.tab_id)?;
        let rewind = Rewind { seq: request.seq };
        self.inner.host.rewind(&bound.selector(), rewind).await
    }

    async fn fork_session(&self, session: OpenSession) -> Result<TabView, ApiError> {
        let original = Selector::of(&session.session_id);
        let copy = self.inner.host.fork(&original).await?;
        self.inner.show(&copy.session_id, "").await
    }

    async fn pending_prompts(&self, tab: Tab) -> Result<Vec<PendingPrompt>, ApiError> {
        let bound = self.inner.bound(&tab.tab_id)?;
        let prompts = self.inner.host.pending_prompts(&bound.selector()).await?;
        self.inner.still(&bound, prompts)
    }

    async fn approve(&self, answer: TabApprove) -> Result<Nothing, ApiError> {
        let bound = self.inner.bound(&answer.tab_id)?;
        let approve = Approve {
            id: answer.id,
            generation: answer.generation,
            allow: answer.allow,
            scope: Some(answer.scope).filter(|scope| !scope.is_empty()),
            reason: Some(answer.reason).filter(|reason| !reason.is_empty()),
        };
        self.inner.host.approve(&bound.selector(), approve).await?;
        Ok(Nothing {})
    }

    async fn transcript_snapshot(&self, tab: Tab) -> Result<TranscriptSnapshot, ApiError> {
        let bound = self.inner.bound(&tab.tab_id)?;
        let host = &self.inner.host;
        let snapshot = host.transcript_snapshot(&bound.selector()).await?;
        self.inner.still(&bound, snapshot)
    }

    async fn transcript_page(&self, page: TabPage) -> Result<TranscriptPage, ApiError> {
        let bound = self.inner.bound(&page.tab_id)?;
        let query = PageQuery {
            session: None,
            before: page.before,
            limit: usize::try_from(page.limit).ok(),
        };
        let host = &self.inner.host;
        let page = host.transcript_page(&bound.selector(), &query).await?;
        self.inner.still(&bound, page)
    }

    async fn diff(&self, attempt: TabAttempt) -> Result<DiffReply, ApiError> {
        let bound = self.inner.bound(&attempt.tab_id)?;
        let host = &self.inner.host;
        let diff = host.diff(&bound.selector(), &attempt.attempt_id).await?;
        self.inner.still(&bound, diff)
    }

    async fn output(&self, attempt: TabAttempt) -> Result<OutputPage, ApiError> {
        let bound = self.inner.bound(&attempt.tab_id)?;
        let output = self
            .inner
            .host
            .output(&bound.selector(), &attempt.attempt_id, attempt.offset)
            .await?;
        self.inner.still(&bound, output)
    }

    async fn jobs(&self, tab: Tab) -> Result<Vec<Job>, ApiError> {
        let bound = self.inner.bound(&tab.tab_id)?;
        let jobs = self.inner.host.jobs(&bound.selector()).await?;
        self.inner.still(&bound, jobs)
    }

    async fn cancel_job(&self, job: TabJob) -> Result<Nothing, ApiError> {
        let bound = self.inner.bound(&job.tab_id)?;
        let request = CancelJob { id: job.id };
        self.inner
            .host
            .cancel_job(&bound.selector(), request)
            .await?;
        Ok(Nothing {})
    }

    async fn background_job(&self, attempt: TabAttempt) -> Result<Job, ApiError> {
        let bound = self.inner.bound(&attempt.tab_id)?;
        let request = BackgroundJob {
            attempt_id: attempt.attempt_id,
        };
        self.inner
            .host
            .background_job(&bound.selector(), request)
            .await
    }

    async fn list_models(&self, _: Nothing) -> Result<ModelList, ApiError> {
        Ok(self.inner.models_on_offer().await?)
    }

    async fn get_settings(&self, _: Nothing) -> Result<Settings, ApiError> {
        Ok(self.inner.settings().await?)
    }

    async fn save_settings(&self, settings: Settings) -> Result<Settings, ApiError> {
        Ok(self.inner.store_settings(settings).await?)
    }

    async fn list_providers(&self, _: Nothing) -> Result<ProviderList, ApiError> {
        Ok(self.inner.providers().await?)
    }

    async fn save_provider(&self, change: ProviderChange) -> Result<ProviderList, ApiError> {
        Ok(self.inner.change_provider(change).await?)
    }

    async fn test_provider(&self, change: ProviderChange) -> Result<ProviderCheck, ApiError> {
        self.inner.try_provider(change).await
    }
}

/// The real path of a folder that exists, as sessions name it too.
async fn project_folder(path: String) -> Result<String, DesktopError> {
    let refused = |path: &str, why| DesktopError::ProjectInvalid {
        path: path.to_owned(),
        why,
    };
    tokio::task::spawn_blocking(move || {
        let given = std::path::Path::new(&path);
        if !given.is_absolute() {
            return Err(refused(&path, "is not an absolute path"));
        }
        let real = given
            .canonicalize()
            .map_err(|_| refused(&path, "does not exist or can't be read"))?;
        if !real.is_dir() {
            return Err(refused(&path, "is not a folder"));
        }
        real.into_os_string()
            .into_string()
            .map_err(|_| refused(&path, "has a name that is not Unicode"))
    })
    .await
    .map_err(|_| DesktopError::Defect)?
}
