//! Providers: keys go in and never come out, what is wrong is said, changes hold at once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use holdfast_api::App;
use holdfast_api::app::{Nothing, TabSubmit};
use holdfast_api::desktop::ProviderChange;
use holdfast_desktop::KeyStore;
use holdfast_testkit::Step;

use crate::stage::Stage;

const KEY: &str = "sk-canary-7731";

/// A keychain in memory, which may refuse.
#[derive(Default)]
struct Keychain {
    keys: Mutex<BTreeMap<String, String>>,
    refuses: bool,
}

impl KeyStore for Keychain {
    fn read(&self, provider: &str) -> Result<Option<String>, String> {
        Ok(self.keys.lock().unwrap().get(provider).cloned())
    }

    fn store(&self, provider: &str, key: &str) -> Result<(), String> {
        if self.refuses {
            return Err("it is locked".to_owned());
        }
        let mut keys = self.keys.lock().unwrap();
        keys.insert(provider.to_owned(), key.to_owned());
        Ok(())
    }

    fn remove(&self, provider: &str) -> Result<(), String> {
        if self.refuses {
            return Err("it is locked".to_owned());
        }
        self.keys.lock().unwrap().remove(provider);
        Ok(())
    }
}

fn change(stage: &Stage, key: &str) -> ProviderChange {
    ProviderChange {
        name: "mine".to_owned(),
        base_url: stage.right.url(),
        models: vec!["large".to_owned(), "small".to_owned()],
        api_key: key.to_owned(),
    }
}

/// Sends a message to the new provider; the key that it got.
async fn key_sent(stage: &Stage, stand: &crate::stage::Stand) -> Option<String> {
    let count = stage.right.request_count();
    let tab = stand.tab(&stage.path("right"), "mine/large", "ask").await;
    let submit = TabSubmit {
        tab_id: tab.tab_id,
        input: "hello".to_owned(),
        submission_id: "k".to_owned(),
    };
    stand.app.submit(submit).await.unwrap();
    let requests = stage.right.wait_for_requests(count + 1).await;
    requests[count].headers.get("authorization").cloned()
}

fn texts_in(folder: &std::path::Path) -> String {
    let entries = std::fs::read_dir(folder).unwrap().map(Result::unwrap);
    let files = entries.filter(|entry| entry.path().is_file());
    files
        .map(|entry| std::fs::read_to_string(entry.path()).unwrap())
        .collect()
}

#[tokio::test]
async fn a_key_goes_to_the_keychain_and_holds_at_once() {
    let mut stage = Stage::new();
    let keychain = Arc::new(Keychain::default());
    stage.keychain = Some(keychain.clone());
    let stand = stage.start();
    let before = std::fs::read_to_string(stage.config()).unwrap();
    let list = stand.app.save_provider(change(&stage, KEY)).await.unwrap();
    let mine = list.providers.iter().find(|p| p.name == "mine").unwrap();
    assert!(mine.has_key);
    assert_eq!(mine.models, ["large", "small"]);
    let names: Vec<_> = list.providers.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(
        names,
        ["deepseek", "demo", "left", "mine", "openai", "right"]
    );
    assert_eq!(keychain.keys.lock().unwrap()["mine"], KEY);
    assert!(
        !texts_in(&stage.data()).contains(KEY),
        "the keychain alone has it"
    );
    let after = std::fs::read_to_string(stage.config()).unwrap();
    assert!(after.starts_with(&before), "a person's lines stay: {after}");
    assert_eq!(
        key_sent(&stage, &stand).await.as_deref(),
        Some(&*format!("Bearer {KEY}"))
    );
    // Without a key in the change, the stored one stays.
    let list = stand.app.save_provider(change(&stage, "")).await.unwrap();
    assert!(list.providers.iter().any(|p| p.name == "mine" && p.has_key));
    stand.quit().await;
    let stand = stage.start();
    assert!(
        key_sent(&stage, &stand).await.is_some(),
        "after a restart too"
    );
    stand.quit().await;
}

#[tokio::test]
async fn without_a_keychain_a_key_is_in_a_private_file() {
    let mut stage = Stage::new();
    stage.keychain = Some(Arc::new(Keychain {
        refuses: true,
        ..Keychain::default()
    }));
    let stand = stage.start();
    stand.app.save_provider(change(&stage, KEY)).await.unwrap();
    let file = stage.data().join("keys.json");
    assert!(std::fs::read_to_string(&file).unwrap().contains(KEY));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    assert!(key_sent(&stage, &stand).await.is_some());
    let config = std::fs::read_to_string(stage.config()).unwrap();
    assert!(!config.contains(KEY));
    stand.quit().await;
}

#[tokio::test]
async fn a_trial_says_what_is_wrong_and_stores_nothing() {
    let stage = Stage::new();
    stage.right.push(Step::text("ready"));
    stage
        .right
        .push(Step::status(401, r#"{"error":{"message":"bad key"}}"#));
    let stand = stage.start();
    let before = std::fs::read_to_string(stage.config()).unwrap();
    let good = stand.app.test_provider(change(&stage, KEY)).await.unwrap();
    assert!(good.ok, "{good:?}");
    let request = stage.right.requests().remove(0);
    assert_eq!(request.json["model"], "large");
    assert_eq!(request.headers["authorization"], format!("Bearer {KEY}"));
    let refused = stand.app.test_provider(change(&stage, KEY)).await.unwrap();
    assert!(
        !refused.ok && refused.message.contains("bad key"),
        "{refused:?}"
    );
    assert!(!refused.code.is_empty() && !refused.message.contains(KEY));
    assert_eq!(stage.right.request_count(), 2, "a trial is not repeated");
    let nowhere = ProviderChange {
        base_url: "http://127.0.0.1:1/v1".to_owned(),
        ..change(&stage, KEY)
    };
    let unreachable = stand.app.test_provider(nowhere).await.unwrap();
    assert!(!unreachable.ok);
    assert_eq!(std::fs::read_to_string(stage.config()).unwrap(), before);
    assert!(!stage.data().join("keys.json").exists());
    stand.quit().await;
}

#[tokio::test]
async fn providers_that_cannot_be_are_refused() {
    let stage = Stage::new();
    let stand = stage.start();
    let faults: [fn(&mut ProviderChange); 6] = [
        |change| change.name = "a b".to_owned(),
        |change| change.name.clear(),
        |change| change.name = "demo".to_owned(),
        |change| change.base_url = "ftp://host".to_owned(),
        |change| change.models.push(String::new()),
        |change| change.api_key = "two\nlines".to_owned(),
    ];
    for fault in faults {
        let mut bad = change(&stage, "");
        fault(&mut bad);
        let error = stand.app.save_provider(bad).await.unwrap_err();
        assert_eq!(
            (error.status, error.code.as_str()),
            (400, "provider_invalid")
        );
    }
    stand.quit().await;
}

#[tokio::test]
async fn models_on_offer_say_why_they_cannot_be_used() {
    let stage = Stage::new();
    let text = std::fs::read_to_string(stage.config()).unwrap();
    let keyed = "\n[providers.keyed]\nbase_url = \"http://127.0.0.1:1/v1\"\nmodels = [\"m\"]\n\
                 api_key_env = \"NO_SUCH_KEY_OF_A_TEST\"\n";
    std::fs::write(stage.config(), text + keyed).unwrap();
    let stand = stage.start();
    let list = stand.app.list_models(Nothing {}).await.unwrap();
    assert_eq!(list.default_model, "left/one");
    let model = |id: &str| list.models.iter().find(|model| model.id == id).unwrap();
    assert_eq!(
        (model("left/one").problem.as_str(), model("left/one").demo),
        ("", false)
    );
    assert!(model("demo/demo").demo);
    assert!(model("keyed/m").problem.contains("NO_SUCH_KEY_OF_A_TEST"));
    stand.quit().await;
}
