//! Settings: looks in the app's own file, defaults in config.toml, whose other lines stay.

use holdfast_api::App;
use holdfast_api::app::Nothing;
use holdfast_api::desktop::{NewSession, Settings};

use crate::stage::Stage;

#[tokio::test]
async fn settings_are_kept_where_they_belong() {
    let stage = Stage::new();
    let stand = stage.start();
    let before = stand.app.get_settings(Nothing {}).await.unwrap();
    assert_eq!(
        (
            before.theme.as_str(),
            before.language.as_str(),
            before.font_size
        ),
        ("system", "system", 13)
    );
    assert_eq!(
        (before.mode.as_str(), before.model.as_str()),
        ("ask", "left/one")
    );
    let text = std::fs::read_to_string(stage.config()).unwrap();
    let wanted = Settings {
        theme: "dark".to_owned(),
        language: "zh-CN".to_owned(),
        font_size: 15,
        mode: "edits".to_owned(),
        model: "right/one".to_owned(),
        // Not changed by saving, whatever is sent.
        data_folder: "elsewhere".to_owned(),
        retry_enabled: true,
        version: "0".to_owned(),
    };
    let saved = stand.app.save_settings(wanted.clone()).await.unwrap();
    let expected = Settings {
        data_folder: before.data_folder.clone(),
        retry_enabled: before.retry_enabled,
        version: before.version.clone(),
        ..wanted
    };
    assert_eq!(saved, expected);
    let after = std::fs::read_to_string(stage.config()).unwrap();
    let changed = text.replace("\"left/one\" # keep", "\"right/one\" # keep");
    assert_eq!(after, format!("{changed}\n[agent]\nmode = \"edits\"\n"));
    // New sessions are made with them at once.
    let tab = stand
        .app
        .new_session(NewSession {
            workspace_root: stage.path("left").to_string_lossy().into_owned(),
            ..NewSession::default()
        })
        .await
        .unwrap();
    assert_eq!(
        (tab.model.as_str(), tab.mode.as_str()),
        ("right/one", "edits")
    );
    stand.quit().await;
    let stand = stage.start();
    let restored = stand.app.get_settings(Nothing {}).await.unwrap();
    assert_eq!(restored, expected);
    stand.quit().await;
}

#[tokio::test]
async fn settings_that_cannot_be_are_refused_and_change_nothing() {
    let stage = Stage::new();
    let stand = stage.start();
    let good = stand.app.get_settings(Nothing {}).await.unwrap();
    let text = std::fs::read(stage.config()).unwrap();
    let faults: [fn(&mut Settings); 6] = [
        |settings| settings.theme = "pink".to_owned(),
        |settings| settings.language = "xx".to_owned(),
        |settings| settings.font_size = 10,
        |settings| settings.font_size = 19,
        |settings| settings.mode = "root".to_owned(),
        |settings| settings.model = "no-slash".to_owned(),
    ];
    for fault in faults {
        let mut bad = good.clone();
        fault(&mut bad);
        let error = stand.app.save_settings(bad).await.unwrap_err();
        assert_eq!(
            (error.status, error.code.as_str()),
            (400, "setting_invalid")
        );
    }
    assert_eq!(std::fs::read(stage.config()).unwrap(), text);
    assert_eq!(stand.app.get_settings(Nothing {}).await.unwrap(), good);
    stand.quit().await;
}

#[tokio::test]
async fn a_config_with_a_fault_is_said_and_left_alone() {
    let stage = Stage::new();
    let stand = stage.start();
    let good = stand.app.get_settings(Nothing {}).await.unwrap();
    let faulty = "defualt_model = \"left/one\"\n";
    std::fs::write(stage.config(), faulty).unwrap();
    let wanted = Settings {
        mode: "full".to_owned(),
        ..good
    };
    let error = stand.app.save_settings(wanted).await.unwrap_err();
    assert_eq!((error.status, error.code.as_str()), (409, "config_invalid"));
    assert!(error.message.contains("line 1"), "{}", error.message);
    assert_eq!(std::fs::read_to_string(stage.config()).unwrap(), faulty);
    stand.quit().await;
}
