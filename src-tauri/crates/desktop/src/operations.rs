//! The table of app operations, as this app carries them out.
//!
//! Guarantees: a tab is looked up at the moment of the request, and what was read for it is handed
//! out only if the tab still shows the same session; what a person left is stored before the reply.

mod bound;
mod hosts;
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
use holdfast_api::hosts::{HostChange, HostCheck, HostList, HostRef};
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

use crate::desktop::Desktop;
use crate::error::DesktopError;
use crate::{demo, restore};

#[async_trait]
impl App for Desktop {
    async fn get_runtime_state_snapshot(
        &self,
        _: Nothing,
    ) -> Result<RuntimeStateProjection, ApiError> {
        Ok(self.inner.refreshed())
    }

    async fn sync_runtime_state(&self, _: Nothing) -> Result<RuntimeStateProjection, ApiError> {
        self.inner.verify_hosts().await;
        Ok(self.inner.refreshed())
    }

    async fn get_tool_recovery_for_tab(&self, tab: Tab) -> Result<ToolRecoverySnapshot, ApiError> {
        let bound = self.inner.bound(&tab.tab_id)?;
        let host = &bound.host;
        let snapshot = host.tool_recovery_snapshot(&bound.selector()).await?;
        self.inner.still(&bound, snapshot)
    }

    async fn resolve_tool_recovery_for_tab(
        &self,
        request: TabRecovery,
    ) -> Result<ToolRecoverySnapshot, ApiError> {
        let bound = self.inner.bound(&request.tab_id)?;
        bound
            .host
            .resolve_tool_recovery(&bound.selector(), request.request, &self.inner.surface)
            .await
    }

    async fn get_layout(&self, _: Nothing) -> Result<Layout, ApiError> {
        Ok(self.inner.shelf.read(|remembered| remembered.layout()))
    }

    async fn new_session(&self, request: NewSession) -> Result<TabView, ApiError> {
        let given = |text: String| Some(text).filter(|text| !text.is_empty());
        let mut create = CreateSession {
            workspace: Some(request.workspace_root),
            title: None,
            model: given(request.model),
            mode: given(request.mode),
        };
        // Another machine has defaults of its own.
        if request.host_id.is_empty() {
            let settings = self.inner.settings().await?;
            create.model.get_or_insert(settings.model);
            create.mode.get_or_insert(settings.mode);
        }
        let host = self.inner.host_of(&request.host_id)?;
        let created = host.create_session(create).await?;
        self.inner
            .show(&request.host_id, &created.session_id, "")
            .await
    }

    async fn open_session(&self, request: OpenSession) -> Result<TabView, ApiError> {
        self.inner
            .show(&request.host_id, &request.session_id, "")
            .await
    }

    async fn close_tab(&self, tab: Tab) -> Result<Layout, ApiError> {
        let bound = self.inner.bound(&tab.tab_id);
        let (layout, shown) = self.inner.shelf.change(|remembered| {
            let gone = remembered.tab(&tab.tab_id).cloned();
            let gone = gone.ok_or(DesktopError::TabUnknown)?;
            remembered.close(&tab.tab_id);
            let still = remembered.tab_of(&gone.host_id, &gone.session_id);
            Ok::<_, DesktopError>((remembered.layout(), still.is_some()))
        })?;
        if let Ok(bound) = bound
            && !shown
        {
            bound.unbind();
        }
        self.inner.dirty.notify_one();
        self.inner.shelf.save().await?;
        Ok(layout)
    }

    async fn select_tab(&self, tab: ActiveTab) -> Result<Nothing, ApiError> {
        let retry = self.inner.shelf.change(|remembered| {
            let found = remembered
                .tab(&tab.tab_id)
                .ok_or(DesktopError::TabUnknown)?;
            let remote = !found.host_id.is_empty();
            let retry = (remote || !found.problem.is_empty())
                .then(|| (found.host_id.clone(), found.session_id.clone()));
            remembered.active.clone_from(&tab.tab_id);
            Ok::<_, DesktopError>(retry)
        })?;
        if let Some((host_id, session_id)) = retry {
            let inner = Arc::clone(&self.inner);
            tokio::spawn(async move {
                match inner.hosts.get(&host_id) {
                    Some(host) => {
                        if let Err(error) = host.choose(&session_id).await {
                            inner.tell(&session_id, &error.code, &error.message);
                        }
                        host.learn(&inner, &session_id).await;
                    }
                    None => restore::open(&inner, &tab.tab_id, &session_id).await,
                }
            });
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
        self.inner.show("", &created.session_id, DEMO_TASK).await
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
        let host = self.inner.host_of(&change.host_id)?;
        host.patch_session(&change.session_id, patch).await?;
        let status = host.status(&Selector::of(&change.session_id)).await?;
        self.inner.shelf.change(|remembered| {
            for tab in &mut remembered.tabs {
                if tab.shows(&change.host_id, &change.session_id) {
                    tab.learn(&status);
                }
            }
        });
        self.inner.list_changed(&change.host_id);
        self.inner.shelf.save().await?;
        Ok(Nothing {})
    }

    async fn delete_session(&self, session: OpenSession) -> Result<Nothing, ApiError> {
        let host = self.inner.host_of(&session.host_id)?;
        host.delete_session(&session.session_id).await?;
        self.inner.shelf.change(|remembered| {
            while let Some(tab) = remembered.tab_of(&session.host_id, &session.session_id) {
                let tab_id = tab.tab_id.clone();
                remembered.close(&tab_id);
            }
        });
        if let Some(host) = self.inner.hosts.get(&session.host_id) {
            host.unbind(&session.session_id);
        }
        self.inner.shelf.save().await?;
        self.inner.list_again(&session.host_id).await?;
        Ok(Nothing {})
    }

    async fn submit(&self, request: TabSubmit) -> Result<Submitted, ApiError> {
        let bound = self.inner.bound(&request.tab_id)?;
        let submit = Submit {
            input: request.input.clone(),
            submission_id: Some(request.submission_id).filter(|key| !key.is_empty()),
        };
        let submitted = bound.host.submit(&bound.selector(), submit).await?;
        self.inner.clear_draft(&bound, &request.input).await;
        Ok(submitted)
    }

    async fn inbox(&self, tab: Tab) -> Result<InboxView, ApiError> {
        let bound = self.inner.bound(&tab.tab_id)?;
        let inbox = bound.host.inbox(&bound.selector()).await?;
        self.inner.still(&bound, inbox)
    }

    async fn inbox_receipt(&self, request: TabKey) -> Result<InboxReceipt, ApiError> {
        let bound = self.inner.bound(&request.tab_id)?;
        let host = &bound.host;
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
        bound.host.pause_inbox(&bound.selector()).await?;
        Ok(Nothing {})
    }

    async fn resume_inbox(&self, tab: Tab) -> Result<Nothing, ApiError> {
        let bound = self.inner.bound(&tab.tab_id)?;
        bound.host.resume_inbox(&bound.selector()).await?;
        Ok(Nothing {})
    }

    async fn cancel(&self, request: TabCancel) -> Result<CancelReply, ApiError> {
        let bound = self.inner.bound(&request.tab_id)?;
        let cancel = Cancel {
            turn_id: Some(request.turn_id).filter(|turn| !turn.is_empty()),
        };
        let cancelled = bound.host.cancel(&bound.selector(), cancel).await?;
        Ok(CancelReply {
            already_ended: match cancelled {
                Cancelled::Requested => false,
                Cancelled::AlreadyEnded => true,
            },
        })
    }

    async fn compact(&self, tab: Tab) -> Result<CompactionStarted, ApiError> {
        let bound = self.inner.bound(&tab.tab_id)?;
        bound.host.compact(&bound.selector()).await
    }

    async fn rewind(&self, request: TabRewind) -> Result<RewindReply, ApiError> {
        let bound = self.inner.bound(&request.tab_id)?;
        let rewind = Rewind { seq: request.seq };
        bound.host.rewind(&bound.selector(), rewind).await
    }

    async fn fork_session(&self, session: OpenSession) -> Result<TabView, ApiError> {
        let original = Selector::of(&session.session_id);
        let host = self.inner.host_of(&session.host_id)?;
        let copy = host.fork(&original).await?;
        self.inner
            .show(&session.host_id, &copy.session_id, "")
            .await
    }

    async fn pending_prompts(&self, tab: Tab) -> Result<Vec<PendingPrompt>, ApiError> {
        let bound = self.inner.bound(&tab.tab_id)?;
        let prompts = bound.host.pending_prompts(&bound.selector()).await?;
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
        bound.host.approve(&bound.selector(), approve).await?;
        Ok(Nothing {})
    }

    async fn transcript_snapshot(&self, tab: Tab) -> Result<TranscriptSnapshot, ApiError> {
        let bound = self.inner.bound(&tab.tab_id)?;
        let host = &bound.host;
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
        let host = &bound.host;
        let page = host.transcript_page(&bound.selector(), &query).await?;
        self.inner.still(&bound, page)
    }

    async fn diff(&self, attempt: TabAttempt) -> Result<DiffReply, ApiError> {
        let bound = self.inner.bound(&attempt.tab_id)?;
        let host = &bound.host;
        let diff = host.diff(&bound.selector(), &attempt.attempt_id).await?;
        self.inner.still(&bound, diff)
    }

    async fn output(&self, attempt: TabAttempt) -> Result<OutputPage, ApiError> {
        let bound = self.inner.bound(&attempt.tab_id)?;
        let output = bound
            .host
            .output(&bound.selector(), &attempt.attempt_id, attempt.offset)
            .await?;
        self.inner.still(&bound, output)
    }

    async fn jobs(&self, tab: Tab) -> Result<Vec<Job>, ApiError> {
        let bound = self.inner.bound(&tab.tab_id)?;
        let jobs = bound.host.jobs(&bound.selector()).await?;
        self.inner.still(&bound, jobs)
    }

    async fn cancel_job(&self, job: TabJob) -> Result<Nothing, ApiError> {
        let bound = self.inner.bound(&job.tab_id)?;
        let request = CancelJob { id: job.id };
        bound.host.cancel_job(&bound.selector(), request).await?;
        Ok(Nothing {})
    }

    async fn background_job(&self, attempt: TabAttempt) -> Result<Job, ApiError> {
        let bound = self.inner.bound(&attempt.tab_id)?;
        let request = BackgroundJob {
            attempt_id: attempt.attempt_id,
        };
        bound.host.background_job(&bound.selector(), request).await
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

    async fn list_hosts(&self, _: Nothing) -> Result<HostList, ApiError> {
        Ok(self.inner.host_list().await?)
    }

    async fn save_host(&self, change: HostChange) -> Result<HostList, ApiError> {
        Ok(self.inner.save_host(change).await?)
    }

    async fn remove_host(&self, host: HostRef) -> Result<HostList, ApiError> {
        Ok(self.inner.remove_host(&host.host_id).await?)
    }

    async fn test_host(&self, change: HostChange) -> Result<HostCheck, ApiError> {
        Ok(self.inner.test_host(change).await?)
    }

    async fn retry_host(&self, host: HostRef) -> Result<Nothing, ApiError> {
        let attached = self.inner.hosts.get(&host.host_id);
        let attached = attached.ok_or(DesktopError::HostUnknown)?;
        attached.host.connection().retry_now();
        Ok(Nothing {})
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
