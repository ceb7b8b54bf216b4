//! `config.toml`: what can't be used is said with file, line and hint.

use std::path::Path;

use holdfast_controller::config::{Config, HostLoss, Mode};

fn error(text: &str) -> String {
    let error = Config::parse(text, Path::new("/home/me/config.toml")).unwrap_err();
    assert_eq!(error.code(), "config_invalid");
    error.to_string()
}

#[test]
fn a_fault_is_told_with_file_line_and_hint() {
    for (text, line, hint) in [
        ("default_modle = \"a/b\"\n", 1, "default_modle"),
        ("\n[agent]\nmode = \"yolo\"\n", 3, "yolo"),
        ("[agent]\nshell_timeout_s = \"long\"\n", 2, "invalid type"),
        ("[agent]\n\nshell_timeout_s = 0\n", 3, "1 to 86400"),
        ("[agent]\nshell_timeout_s = 86401\n", 2, "1 to 86400"),
        ("[agent]\non_host_loss = \"maybe\"\n", 2, "maybe"),
        ("[agent]\nenv_keep = \"A\"\n", 2, "invalid type"),
        ("default_model = \"just-a-name\"\n", 1, "provider/model"),
        ("[providers.mine]\n", 1, "base_url"),
        ("\n[providers.mine]\nbase_url = \"ftp://x\"\n", 2, "http"),
        ("[providers.openai]\nkind = \"magic\"\n", 1, "magic"),
        ("[providers.openai]\napi_key = \"secret\"\n", 2, "api_key"),
        ("[providers.openai]\nidle_timeout_s = 0\n", 2, "1 to 3600"),
        ("this is no toml\n", 1, "nothing was changed"),
    ] {
        let told = error(text);
        assert!(
            told.starts_with(&format!("/home/me/config.toml, line {line}: ")),
            "{text:?}: {told}"
        );
        assert!(told.contains(hint), "{text:?}: {told}");
        assert!(told.contains("correct the line or remove it"), "{told}");
        assert!(
            !told.contains("secret"),
            "no value of a key is repeated: {told}"
        );
    }
}

#[test]
fn a_whole_file_is_read_and_an_absent_one_is_the_defaults() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.toml");
    let defaults = Config::read(&file).unwrap();
    assert_eq!(defaults, Config::default());
    assert_eq!(defaults.default_model(), "demo/demo");
    assert_eq!(
        (defaults.agent.mode, defaults.agent.shell_timeout_s),
        (Mode::Ask, 120)
    );
    std::fs::write(
        &file,
        "default_model = \"mine/big\"\n[providers.mine]\nbase_url = \"https://host/v1\"\n\
         api_key_env = \"MINE_KEY\"\nmodels = [\"big\"]\n[agent]\nmode = \"read-only\"\n\
         on_host_loss = \"stop\"\nenv_keep = [\"MY_TOKEN\"]\n",
    )
    .unwrap();
    let config = Config::read(&file).unwrap();
    assert_eq!(config.default_model(), "mine/big");
    assert_eq!(
        (config.agent.mode, config.agent.on_host_loss),
        (Mode::ReadOnly, HostLoss::Stop)
    );
    assert!(config.key_names().contains(&"MINE_KEY".to_owned()));
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir(&file).unwrap();
    let unreadable = Config::read(&file).unwrap_err();
    assert_eq!(unreadable.code(), "config_unreadable");
    assert!(unreadable.to_string().contains(&*file.to_string_lossy()));
}

#[test]
fn every_mode_has_its_word() {
    for mode in [Mode::Ask, Mode::Edits, Mode::Full, Mode::ReadOnly] {
        assert_eq!(Mode::parse(mode.as_str()), Some(mode));
        let text = format!("[agent]\nmode = \"{}\"\n", mode.as_str());
        let config = Config::parse(&text, Path::new("c")).unwrap();
        assert_eq!(config.agent.mode, mode);
    }
    assert_eq!(Mode::parse("FULL"), None);
}
