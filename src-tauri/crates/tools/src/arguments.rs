//! The arguments of each tool, strictly: an unknown field, a wrong type or a value out of bounds
//! is refused with its place.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::edit::Edit;
use crate::error::ToolError;

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReadFile {
    pub(crate) path: String,
    pub(crate) offset: Option<u64>,
    pub(crate) limit: Option<u64>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListDir {
    pub(crate) path: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Glob {
    pub(crate) pattern: String,
    pub(crate) path: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Grep {
    pub(crate) pattern: String,
    pub(crate) path: Option<String>,
    pub(crate) glob: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WriteFile {
    pub(crate) path: String,
    pub(crate) content: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EditFile {
    pub(crate) path: String,
    pub(crate) edits: Vec<Edit>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(crate) enum Method {
    #[serde(rename = "GET", alias = "get")]
    Get,
    #[serde(rename = "HEAD", alias = "head")]
    Head,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Fetch {
    pub(crate) url: String,
    pub(crate) method: Option<Method>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Shell {
    pub(crate) command: String,
    pub(crate) timeout_s: Option<u64>,
    pub(crate) background: Option<bool>,
    pub(crate) read_only: Option<bool>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct JobOutput {
    pub(crate) id: String,
    pub(crate) offset: Option<u64>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct JobStop {
    pub(crate) id: String,
}

/// Reads the checked value as a tool's arguments.
pub(crate) fn read<T: DeserializeOwned>(tool: &'static str, value: &Value) -> Result<T, ToolError> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let place = error.path().to_string();
        let reason = if place == "." {
            error.inner().to_string()
        } else {
            format!("{place}: {}", error.inner())
        };
        ToolError::Schema { tool, reason }
    })
}

/// Refuses a number out of its bounds.
pub(crate) fn bounded(
    tool: &'static str,
    field: &str,
    value: Option<u64>,
    bounds: std::ops::RangeInclusive<u64>,
) -> Result<Option<u64>, ToolError> {
    match value {
        Some(value) if !bounds.contains(&value) => Err(ToolError::Schema {
            tool,
            reason: format!(
                "{field}: {value} is not between {} and {}",
                bounds.start(),
                bounds.end()
            ),
        }),
        value => Ok(value),
    }
}
