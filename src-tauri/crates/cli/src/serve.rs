//! `holdfast serve`, and the part of `holdfast web` that is the same.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Context;
use holdfast_serve::{ServeOptions, Server, Token, Web};
use tokio_util::sync::CancellationToken;

use crate::detach::Post;
use crate::{arguments, data, logging};

pub(crate) async fn serve(
    folder: Option<PathBuf>,
    options: arguments::Serve,
) -> anyhow::Result<u8> {
    serve_with(folder, options, |_| Ok(None)).await
}

/// `web` makes what a browser gets besides.
pub(crate) async fn serve_with(
    folder: Option<PathBuf>,
    options: arguments::Serve,
    web: impl FnOnce(&data::Parts) -> anyhow::Result<Option<Web>>,
) -> anyhow::Result<u8> {
    let folder = data::folder(folder)?;
    let post = Post::take(&folder, &options)?;
    let _logs = logging::start(&folder);
    let mut parts = data::parts(folder.clone(), options.workspace)?;
    let host = parts.host.clone();
    let token_file = std::path::absolute(match options.token_file {
        Some(file) => file,
        None => folder.join("token"),
    })?;
    let token = Token::load_or_create(&token_file, rand::random)
        .with_context(|| format!("the token file {} can't be used", token_file.display()))?;
    let server = Server::bind(ServeOptions {
        addr: options.addr,
        token,
        hosts: options.host_names,
        protected: options.behind_tunnel,
    })
    .await?;
    // Signals are caught before the ready line, so that nobody can be too early.
    let stopped = CancellationToken::new();
    let signals = Signals::new()?;
    let web = web(&parts)?;
    let url = format!("http://{}", server.addr());
    let mut line = serde_json::json!({
        "url": url,
        "tokenFile": token_file,
        "pid": std::process::id(),
    });
    if let Some(web) = &web {
        // A fragment is not sent to any server and stands in no log.
        let code = web.logins.code(rand::random());
        line["link"] = format!("{url}/#code={code}").into();
    }
    let recovering = tokio::spawn({
        let host = host.clone();
        async move { host.recover_all().await }
    });
    let serving = tokio::spawn({
        let (host, stopped) = (host.clone(), stopped.clone());
        async move {
            match web {
                Some(web) => server.run_web(host, web, stopped).await,
                None => server.run(host, stopped).await,
            }
        }
    });
    let local = parts.local.take().map(|socket| {
        let (host, stopped) = (host.clone(), stopped.clone());
        tokio::spawn(async move { socket.run(host, stopped).await })
    });
    if let Some(post) = &post {
        post.tell(&line)?;
    }
    writeln!(std::io::stdout(), "{line}")?;
    std::io::stdout().flush()?;
    signals.wait().await;
    tracing::info!("told to end");
    recovering.abort();
    // Sessions end first, so that clients still hear of it.
    host.close().await;
    stopped.cancel();
    serving.await.context("the server failed by a defect")??;
    if let Some(local) = local {
        local
            .await
            .context("the local socket failed by a defect")??;
    }
    Ok(0)
}

/// SIGTERM and SIGINT; Ctrl+C elsewhere.
struct Signals {
    #[cfg(unix)]
    term: tokio::signal::unix::Signal,
    #[cfg(unix)]
    int: tokio::signal::unix::Signal,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        #[cfg(unix)]
        {
            use tokio::signal::unix::{SignalKind, signal};
            Ok(Self {
                term: signal(SignalKind::terminate())?,
                int: signal(SignalKind::interrupt())?,
            })
        }
        #[cfg(not(unix))]
        Ok(Self {})
    }

    async fn wait(self) {
        #[cfg(unix)]
        {
            let Self { mut term, mut int } = self;
            tokio::select! {
                _ = term.recv() => {}
                _ = int.recv() => {}
            }
        }
        #[cfg(not(unix))]
        {
            // Without the handler there is no way to be told; the process is then ended from
            // outside, which sessions survive.
            if tokio::signal::ctrl_c().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }
}
