//! The holder's local socket: the host's operations for this user's other programs, so that the
//! command line reaches a session that the window or a server holds.
//!
//! Guarantees: the socket is in a folder that is closed to others, is itself 0600, and a peer of
//! another user is turned away before a byte of it is read. There is no token: who may open the
//! socket may read the session's files too. What a dead program left behind is removed.

use std::io;
use std::path::{Path, PathBuf};

use holdfast_controller::Host;
use tokio_util::sync::CancellationToken;

/// What the name of a holder's socket begins with; 16 hex digits follow.
#[cfg(unix)]
const PREFIX: &str = "h-";

/// A socket that listens; gone when this is dropped.
#[derive(Debug)]
pub struct LocalSocket {
    #[cfg(unix)]
    listener: tokio::net::UnixListener,
    place: Place,
}

/// The socket's file.
#[derive(Debug)]
struct Place(PathBuf);

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

impl LocalSocket {
    /// One in the folder that this user's programs share; `random` makes its name. Without one,
    /// others are told who holds a session and nothing more.
    pub fn for_user(random: [u8; 8]) -> Option<Self> {
        Self::bind(&holdfast_controller::socket_folder()?, random)
            .inspect_err(|error| tracing::info!(%error, "there is no local socket"))
            .ok()
    }

    /// Listens in `folder`, which must be this user's alone; `random` makes the name. Connections
    /// wait until [`LocalSocket::run`].
    ///
    /// # Errors
    /// What the system says; `Unsupported` where there are no Unix sockets: others are then told
    /// who holds the session, and nothing more.
    pub fn bind(folder: &Path, random: [u8; 8]) -> io::Result<Self> {
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            remove_dead(folder);
            let name = holdfast_domain::canonical::hex(&random);
            let path = folder.join(format!("{PREFIX}{name}"));
            let listener = tokio::net::UnixListener::bind(&path)?;
            let place = Place(path);
            std::fs::set_permissions(&place.0, std::fs::Permissions::from_mode(0o600))?;
            Ok(Self { listener, place })
        }
        #[cfg(not(unix))]
        {
            let _ = (folder, random);
            Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "this system has no Unix sockets",
            ))
        }
    }

    /// Where it is; other programs find it in `holder.json`.
    pub fn path(&self) -> &Path {
        &self.place.0
    }

    /// Serves the host's operations until `stopped`.
    ///
    /// # Errors
    /// What the system says of the socket.
    pub async fn run(self, host: Host, stopped: CancellationToken) -> io::Result<()> {
        #[cfg(unix)]
        return unix::run(self.listener, &self.place.0, host, stopped).await;
        #[cfg(not(unix))]
        {
            drop(host);
            stopped.cancelled().await;
            Ok(())
        }
    }
}

/// Nobody listens on it any more: its program is gone.
#[cfg(unix)]
fn remove_dead(folder: &Path) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        let is_ours = entry.file_name().to_string_lossy().starts_with(PREFIX);
        let is_dead = || {
            std::os::unix::net::UnixStream::connect(&path)
                .is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
        };
        if is_ours && is_dead() {
            let _ = std::fs::remove_file(&path);
        }
    }
}

#[cfg(unix)]
mod unix {
    use std::io;
    use std::os::unix::fs::MetadataExt;
    use std::path::Path;
    use std::sync::Arc;

    use axum::serve::Listener;
    use holdfast_api::SessionHost;
    use holdfast_controller::Host;
    use tokio::net::unix::SocketAddr;
    use tokio::net::{UnixListener, UnixStream};
    use tokio_util::sync::CancellationToken;
    use tower_http::catch_panic::CatchPanicLayer;

    use crate::handlers::{Hosted, routes};
    use crate::server::{panicked, unknown_route, wrong_method};

    pub(super) async fn run(
        listener: UnixListener,
        path: &Path,
        host: Host,
        stopped: CancellationToken,
    ) -> io::Result<()> {
        let hub = Arc::clone(host.hub());
        let router = routes()
            .fallback(unknown_route)
            .method_not_allowed_fallback(wrong_method)
            .with_state(Hosted {
                host: Arc::new(host) as Arc<dyn SessionHost>,
                hub,
                surface: "cli",
                stopped: stopped.clone(),
            })
            .layer(CatchPanicLayer::custom(|_| panicked()))
            .layer(axum::middleware::from_fn(crate::unread::read_on));
        let own = Own {
            listener,
            user: std::fs::metadata(path)?.uid(),
        };
        axum::serve(own, router)
            .with_graceful_shutdown(async move { stopped.cancelled().await })
            .await
    }

    /// Lets nobody in but the user to whom the socket belongs.
    struct Own {
        listener: UnixListener,
        user: u32,
    }

    impl Listener for Own {
        type Io = UnixStream;
        type Addr = SocketAddr;

        async fn accept(&mut self) -> (UnixStream, SocketAddr) {
            loop {
                let (stream, peer) = Listener::accept(&mut self.listener).await;
                match stream.peer_cred() {
                    Ok(credentials) if credentials.uid() == self.user => return (stream, peer),
                    Ok(_) | Err(_) => {
                        tracing::warn!("a program of another user was turned away");
                    }
                }
            }
        }

        fn local_addr(&self) -> io::Result<SocketAddr> {
            self.listener.local_addr()
        }
    }
}
