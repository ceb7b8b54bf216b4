//! The commands of the window: one for each app operation, and the folder dialog.
//!
//! Guarantees: a command does what its operation in the table of `holdfast_api::app` does and
//! nothing else; every failure, a request that can't be read included, is `{code, message}`.

pub mod recovery;
pub mod runtime;
pub mod sessions;
pub mod settings;

use std::sync::Arc;

use holdfast_api::{ApiError, App};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use specta::datatype::DataType;
use specta::{Type, Types};

/// What the commands call.
pub type SharedApp = Arc<dyn App>;

/// The argument of a command, read with the same strictness as over HTTP. It never fails by itself,
/// so that a request that can't be read is answered by the command, with a code.
#[derive(Debug)]
pub struct Request<T>(Result<T, ApiError>);

impl<T> Request<T> {
    /// The request.
    ///
    /// # Errors
    /// `body_invalid`: fields are missing, unknown or of another type.
    pub fn read(self) -> Result<T, ApiError> {
        self.0
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Request<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // An absent argument is a request without fields, which an operation may refuse.
        let value = Option::<Value>::deserialize(deserializer)?.unwrap_or_default();
        Ok(Self(serde_json::from_value(value).map_err(|error| {
            ApiError::bad_request(
                "body_invalid",
                format!(
                    "the request's fields can't be used ({error}); nothing was done; correct them"
                ),
            )
        })))
    }
}

impl<T: Type> Type for Request<T> {
    fn definition(types: &mut Types) -> DataType {
        T::definition(types)
    }
}

/// Declares commands that hand their request to the operation of the same name.
macro_rules! commands {
    ($($(#[$doc:meta])* $name:ident($request:ty) -> $reply:ty;)*) => {$(
        $(#[$doc])*
        ///
        /// # Errors
        /// As the operation says, with its code.
        #[tauri::command]
        #[specta::specta]
        pub async fn $name(
            app: tauri::State<'_, crate::commands::SharedApp>,
            request: crate::commands::Request<$request>,
        ) -> Result<$reply, holdfast_api::error::ErrorBody> {
            let request = request.read().map_err(|error| error.body())?;
            app.$name(request).await.map_err(|error| error.body())
        }
    )*};
}
pub(crate) use commands;
