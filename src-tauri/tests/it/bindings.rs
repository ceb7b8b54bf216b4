//! The committed TypeScript bindings are those of this program. `HOLDFAST_BINDINGS=write` writes
//! them anew.

use std::path::{Path, PathBuf};

use holdfast_domain::runtime::snapshot::{Activity, Outcome, TurnStatus};
use serde::de::DeserializeOwned;
use specta::datatype::{DataType, Primitive};
use specta::{Type, Types};
use specta_typescript::{Typescript, define};
use specta_util::Remapper;
use tauri_specta::{BuilderConfiguration, LanguageExt};

const HEADER: &str = "// Written by `npm run bindings` from the commands, events and types of the \
                      backend. A test fails when it is out of date.\n";

fn committed() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../ui/src/bindings/bindings.ts")
}

/// Any JSON, by its own name.
const JSON: &str = "null | boolean | number | string | Value[] | { [key: string]: Value }";

/// TypeScript, with the types that the exporter can't write: those with a variant named "", and any
/// JSON, whose numbers may be too large for TypeScript in general but are never in ours.
struct Bindings;

impl LanguageExt for Bindings {
    type Error = specta_typescript::Error;

    fn export(self, config: &BuilderConfiguration, path: &Path) -> Result<(), Self::Error> {
        let mut config = config.clone();
        // Our numbers come from integers; a real f64 could be NaN, which JSON writes as null.
        let number = specta_typescript::Number::<f64>::definition(&mut Types::default());
        config.types = Remapper::new()
            .rule(DataType::Primitive(Primitive::f64), number)
            .remap_types(config.types);
        config.types.iter_mut(|named| {
            let union = match &*named.name {
                "Activity" => literals::<Activity>(),
                "TurnStatus" => literals::<TurnStatus>(),
                "Outcome" => literals::<Outcome>(),
                "Value" => JSON.to_owned(),
                "Number" => "number".to_owned(),
                _ => return,
            };
            named.ty = Some(DataType::Reference(define(union)));
        });
        let header = HEADER.to_owned();
        LanguageExt::export(Typescript::default().header(header), &config, path)
    }
}

/// The names of all variants on the wire, as a union of literals. The reader of the type knows
/// them, and says them all when it is given another.
fn literals<T: DeserializeOwned + std::fmt::Debug>() -> String {
    let refusal = serde_json::from_str::<T>("\"?\"").unwrap_err().to_string();
    let (_, known) = refusal.split_once("expected one of").unwrap();
    let names: Vec<String> = known
        .split('`')
        .skip(1)
        .step_by(2)
        .map(|name| format!("\"{name}\""))
        .collect();
    assert!(names.contains(&"\"\"".to_owned()), "{refusal}");
    names.join(" | ")
}

fn exported() -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bindings.ts");
    holdfast_app::registry!(tauri::test::MockRuntime)
        .export(Bindings, &file)
        .unwrap();
    std::fs::read_to_string(file).unwrap()
}

#[test]
fn bindings_that_are_committed_are_those_of_this_program() {
    let exported = exported();
    if std::env::var_os("HOLDFAST_BINDINGS").is_some_and(|value| value == "write") {
        std::fs::create_dir_all(committed().parent().unwrap()).unwrap();
        std::fs::write(committed(), &exported).unwrap();
    }
    let committed = std::fs::read_to_string(committed())
        .unwrap_or_default()
        .replace("\r\n", "\n");
    assert!(
        committed == exported,
        "ui/src/bindings/bindings.ts is out of date: run `npm run bindings` and commit it"
    );
}
