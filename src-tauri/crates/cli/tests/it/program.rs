//! A running `holdfast web`: its first line, a client, an end at any moment.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use holdfast_testkit::TestClient;
use serde_json::{Value, json};
use tempfile::TempDir;

/// What outlives the program.
pub(crate) struct Place {
    folder: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        let place = Self {
            folder: TempDir::new().unwrap(),
        };
        for folder in ["data", "project", "ui/assets"] {
            std::fs::create_dir_all(place.path(folder)).unwrap();
        }
        std::fs::write(place.path("ui/index.html"), "<!doctype html>").unwrap();
        std::fs::write(place.path("ui/assets/app-1.js"), "export {}").unwrap();
        place
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn command(&self, ui: &Path) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_holdfast"));
        command
            .args(["web", "--data"])
            .arg(self.path("data"))
            .env("HOLDFAST_UI", ui)
            // Keys are none of these tests' business: no keychain is asked.
            .env_remove("DBUS_SESSION_BUS_ADDRESS")
            .stdin(Stdio::null())
            .stderr(Stdio::piped());
        command
    }

    pub(crate) fn start(&self) -> Program {
        let mut command = self.command(&self.path("ui"));
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        output.read_line(&mut line).unwrap();
        let ready: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line:?}"));
        Program { child, ready }
    }
}

/// A running program; killed when it is dropped.
pub(crate) struct Program {
    child: Child,
    pub(crate) ready: Value,
}

impl Program {
    pub(crate) fn url(&self) -> &str {
        self.ready["url"].as_str().unwrap()
    }

    /// The code of the printed link.
    pub(crate) fn code(&self) -> String {
        let link = self.ready["link"].as_str().unwrap();
        let (page, code) = link.split_once("/#code=").unwrap();
        assert_eq!(page, self.url());
        code.to_owned()
    }

    pub(crate) fn anonymous(&self) -> TestClient {
        TestClient::new(self.url(), None)
    }

    pub(crate) fn token(&self) -> String {
        let file = self.ready["tokenFile"].as_str().unwrap();
        std::fs::read_to_string(file).unwrap().trim().to_owned()
    }

    /// A browser that used the link.
    pub(crate) async fn browser(&self) -> TestClient {
        let login = json!({ "code": self.code() });
        let answer = self.anonymous().post_ok("/app-login", &login).await;
        TestClient::new(self.url(), answer["token"].as_str())
    }

    /// As a power cut would.
    pub(crate) fn kill9(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
