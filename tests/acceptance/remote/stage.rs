//! A host with a session, a network that misbehaves before it, and a client behind that.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use holdfast_api::Selector;
use holdfast_api::event::Frame;
use holdfast_domain::runtime::observed::Observed;
use holdfast_domain::runtime::remote::Known;
use holdfast_domain::runtime::snapshot::RuntimeState;
use holdfast_remote::{
    Address, Client, Condition, Connection, ConnectionOptions, Direct, FrameSink, RemoteHost,
};
use holdfast_testkit::LyingHost;
use holdfast_testkit::wait::{SOON, until};

use crate::agent::scene::Scene;

/// Counts what comes, and keeps the frames.
#[derive(Default)]
pub(crate) struct Kept {
    pub(crate) frames: std::sync::Mutex<Vec<Frame>>,
    pub(crate) gaps: AtomicU64,
}

impl FrameSink for Kept {
    fn frame(&self, frame: &Frame) -> u64 {
        let mut frames = self.frames.lock().unwrap();
        frames.push(frame.clone());
        frames.len() as u64
    }

    fn gap(&self, _: &[String]) {
        self.gaps.fetch_add(1, Ordering::SeqCst);
    }

    fn changed(&self) {}

    fn latest(&self) -> u64 {
        self.frames.lock().unwrap().len() as u64
    }

    fn id(&self, number: u64) -> String {
        format!("ours.{number}")
    }
}

pub(crate) struct Far {
    pub(crate) scene: Scene,
    pub(crate) network: LyingHost,
    pub(crate) kept: Arc<Kept>,
    pub(crate) host: RemoteHost,
    pub(crate) path: String,
}

impl Far {
    /// Connected, with the session bound and confirmed.
    pub(crate) async fn new(mode: &'static str) -> Self {
        Self::with_silence(mode, Duration::from_secs(45)).await
    }

    pub(crate) async fn with_silence(mode: &'static str, silence: Duration) -> Self {
        let far = Self::before(mode, silence).await;
        far.synced().await;
        far
    }

    /// The same before anything is known.
    pub(crate) async fn before(mode: &'static str, silence: Duration) -> Self {
        let scene = Scene::new(mode).await;
        let network = LyingHost::start(Some(scene.host.url()));
        let kept = Arc::<Kept>::default();
        let host = connect(&network, scene.host.token(), silence, &kept);
        let path = format!("session-id:{}", scene.session);
        host.connection().bind(&path);
        Self {
            scene,
            network,
            kept,
            host,
            path,
        }
    }

    pub(crate) fn selector(&self) -> Selector {
        Selector::of(&self.scene.session)
    }

    pub(crate) fn known(&self) -> Option<Known> {
        let sessions = self.host.connection().sessions();
        let found = sessions.into_iter().find(|(path, _)| *path == self.path);
        found.map(|(_, known)| known)
    }

    /// The facts, and whether they are confirmed.
    pub(crate) fn facts(&self) -> (Option<RuntimeState>, bool) {
        match self.known() {
            Some(known) => {
                let state = match known.state {
                    Some(Observed::Snapshot(state)) => Some(state),
                    _ => None,
                };
                (state, known.synced)
            }
            None => (None, false),
        }
    }

    pub(crate) async fn until(
        &self,
        what: &str,
        wanted: impl Fn(Option<&RuntimeState>, bool) -> bool,
    ) -> Option<RuntimeState> {
        until(what, SOON, || {
            let (state, synced) = self.facts();
            wanted(state.as_ref(), synced).then_some(state)
        })
        .await
    }

    pub(crate) async fn synced(&self) -> RuntimeState {
        self.until("it to be confirmed", |state, synced| {
            synced && state.is_some()
        })
        .await
        .unwrap()
    }

    pub(crate) async fn stands(&self, what: &str, wanted: impl Fn(&Condition) -> bool) {
        until(what, SOON, || {
            wanted(&self.host.connection().view().condition).then_some(())
        })
        .await;
    }
}

/// A client of the host behind that network.
pub(crate) fn connect(
    network: &LyingHost,
    token: &str,
    silence: Duration,
    kept: &Arc<Kept>,
) -> RemoteHost {
    let address = Address::parse(&network.url()).unwrap();
    let client = Client::new(address, token.to_owned().into(), silence).unwrap();
    RemoteHost::new(Connection::start(ConnectionOptions {
        link: Arc::new(Direct(client)),
        sink: Arc::<Kept>::clone(kept) as Arc<dyn FrameSink>,
    }))
}
