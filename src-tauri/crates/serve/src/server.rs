//! The listening server and its end.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::{any, get};
use axum::serve::ListenerExt;
use axum::{Router, middleware};
use holdfast_api::{App, SessionHost};
use holdfast_controller::Host;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tower_http::catch_panic::CatchPanicLayer;

use crate::app::{EventSource, app_routes};
use crate::error::reply;
use crate::guard::{self, Guard};
use crate::handlers::{Hosted, routes};
use crate::login::{self, Logins};
use crate::token::Token;
use crate::ui::{self, UiFolder};

/// How a server is started.
#[derive(Debug, Clone)]
pub struct ServeOptions {
    /// Address; port 0 takes a free one.
    pub addr: SocketAddr,
    /// The token.
    pub token: Token,
    /// Further names by which this host may be addressed.
    pub hosts: Vec<String>,
    /// A tunnel or proxy protects an address that is not loopback.
    pub protected: bool,
}

/// What a browser gets beside the host.
#[derive(Clone)]
pub struct Web {
    /// The app.
    pub app: Arc<dyn App>,
    /// Its events.
    pub events: EventSource,
    /// The built user interface.
    pub ui: UiFolder,
    /// Ways in.
    pub logins: Logins,
}

/// Why a server can't start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Without TLS only loopback is safe.
    #[error(
        "{addr} is not a loopback address, and there is no TLS; nothing was started; use 127.0.0.1 \
         behind a tunnel, or say with --behind-tunnel that a tunnel or proxy protects it"
    )]
    NotLoopback {
        /// The address.
        addr: SocketAddr,
    },
    /// The address can't be used.
    #[error("{addr} can't be listened on ({source}); nothing was started; choose another port")]
    Listen {
        /// The address.
        addr: SocketAddr,
        /// What the system says.
        source: std::io::Error,
    },
}

impl ServeError {
    /// Stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotLoopback { .. } => "address_not_loopback",
            Self::Listen { .. } => "address_unusable",
        }
    }
}

/// A server that listens.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    addr: SocketAddr,
    options: ServeOptions,
}

impl Server {
    /// Listens; connections wait until [`Server::run`].
    ///
    /// # Errors
    /// `address_not_loopback`, `address_unusable`.
    pub async fn bind(options: ServeOptions) -> Result<Self, ServeError> {
        if !options.addr.ip().is_loopback() && !options.protected {
            return Err(ServeError::NotLoopback { addr: options.addr });
        }
        let failed = |source| ServeError::Listen {
            addr: options.addr,
            source,
        };
        let listener = TcpListener::bind(options.addr).await.map_err(failed)?;
        let addr = listener.local_addr().map_err(failed)?;
        Ok(Self {
            listener,
            addr,
            options,
        })
    }

    /// The address that it listens on.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Serves a host until `stopped`; open streams end then, requests under way are answered.
    ///
    /// # Errors
    /// What the system says of the listening socket.
    pub async fn run(self, host: Host, stopped: CancellationToken) -> std::io::Result<()> {
        self.serve(host, None, stopped).await
    }

    /// The same, with the app and its user interface for a browser.
    ///
    /// # Errors
    /// What the system says of the listening socket.
    pub async fn run_web(
        self,
        host: Host,
        web: Web,
        stopped: CancellationToken,
    ) -> std::io::Result<()> {
        self.serve(host, Some(web), stopped).await
    }

    async fn serve(
        self,
        host: Host,
        web: Option<Web>,
        stopped: CancellationToken,
    ) -> std::io::Result<()> {
        let hub = Arc::clone(host.hub());
        let hosted = Hosted {
            host: Arc::new(host) as Arc<dyn SessionHost>,
            hub,
            surface: "http",
            stopped: stopped.clone(),
        };
        let mut hosts = self.options.hosts;
        let own: IpAddr = self.addr.ip();
        if !own.is_unspecified() {
            hosts.push(own.to_string());
        }
        let guard = Guard {
            token: self.options.token,
            logins: web.as_ref().map(|web| web.logins.clone()),
            hosts: Arc::new(hosts),
            port: self.addr.port(),
        };
        let router = router(hosted, web, &guard)
            .layer(CatchPanicLayer::custom(|_| panicked()))
            .layer(middleware::from_fn_with_state(guard, guard::check_place))
            .layer(middleware::from_fn(crate::unread::read_on));
        // Else a delta waits until the client has acknowledged the one before.
        let listener = self.listener.tap_io(|stream| {
            if let Err(error) = stream.set_nodelay(true) {
                tracing::debug!(%error, "a connection sends its frames a little late");
            }
        });
        axum::serve(listener, router)
            .with_graceful_shutdown(async move { stopped.cancelled().await })
            .await
    }
}

/// With the app, what is no operation is a file that needs no token; without it, nothing is told
/// to somebody who has none.
fn router(hosted: Hosted, web: Option<Web>, guard: &Guard) -> Router {
    let stopped = hosted.stopped.clone();
    let token = middleware::from_fn_with_state(guard.clone(), guard::check_token);
    let operations = Router::new()
        .merge(routes())
        .route("/healthz", get(|| async { "ok" }))
        .with_state(hosted);
    match web {
        None => operations
            .fallback(unknown_route)
            .method_not_allowed_fallback(wrong_method)
            .layer(token),
        Some(web) => operations
            .merge(app_routes(web.app, web.events, stopped))
            .method_not_allowed_fallback(wrong_method)
            .route_layer(token)
            .merge(login::route(web.logins))
            .fallback_service(any(ui::file).with_state(web.ui)),
    }
}

pub(crate) async fn unknown_route() -> Response {
    reply(
        404,
        "route_unknown",
        "this server has no such route; nothing was done",
    )
}

pub(crate) async fn wrong_method() -> Response {
    reply(
        405,
        "method_wrong",
        "this route does not take that method; nothing was done",
    )
}

pub(crate) fn panicked() -> Response {
    reply(
        StatusCode::INTERNAL_SERVER_ERROR.as_u16(),
        "internal",
        "the request failed by a defect of the server; what was recorded is intact; look at the \
         present state before you repeat it",
    )
}
