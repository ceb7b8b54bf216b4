//! Texts of the system as JSON: a string where it is Unicode, else `{"hex": "…"}` of its bytes.
//!
//! Guarantee: on Unix every text comes back byte for byte; elsewhere a text that is not Unicode is
//! an error, never a changed text.

use std::ffi::{OsStr, OsString};

use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Text {
    Unicode(String),
    Bytes { hex: String },
}

fn encode(text: &OsStr) -> Result<Text, &'static str> {
    match text.to_str() {
        Some(text) => Ok(Text::Unicode(text.to_owned())),
        #[cfg(unix)]
        None => {
            use std::os::unix::ffi::OsStrExt;
            Ok(Text::Bytes {
                hex: text
                    .as_bytes()
                    .iter()
                    .map(|byte| format!("{byte:02x}"))
                    .collect(),
            })
        }
        #[cfg(not(unix))]
        None => Err("a text that is not Unicode"),
    }
}

fn decode(text: Text) -> Result<OsString, &'static str> {
    match text {
        Text::Unicode(text) => Ok(text.into()),
        #[cfg(unix)]
        Text::Bytes { hex } => {
            use std::os::unix::ffi::OsStringExt;
            let digits: Option<Vec<u8>> = hex
                .chars()
                .map(|digit| digit.to_digit(16).and_then(|d| u8::try_from(d).ok()))
                .collect();
            match digits {
                Some(digits) if digits.len() % 2 == 0 => Ok(OsString::from_vec(
                    digits
                        .chunks(2)
                        .map(|pair| pair[0] << 4 | pair[1])
                        .collect(),
                )),
                _ => Err("not pairs of hexadecimal digits"),
            }
        }
        #[cfg(not(unix))]
        Text::Bytes { .. } => Err("a text that is not Unicode"),
    }
}

pub(super) fn serialize<S: Serializer>(text: &OsStr, to: S) -> Result<S::Ok, S::Error> {
    encode(text).map_err(S::Error::custom)?.serialize(to)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<OsString, D::Error> {
    decode(Text::deserialize(from)?).map_err(D::Error::custom)
}

pub(super) mod list {
    //! Several texts.
    use super::{Deserialize, Deserializer, OsString, Serialize, Serializer, Text, decode, encode};
    use serde::de::Error as _;
    use serde::ser::Error as _;

    pub(in crate::request) fn serialize<S: Serializer>(
        texts: &[OsString],
        to: S,
    ) -> Result<S::Ok, S::Error> {
        let texts: Result<Vec<Text>, _> = texts.iter().map(|text| encode(text)).collect();
        texts.map_err(S::Error::custom)?.serialize(to)
    }

    pub(in crate::request) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Vec<OsString>, D::Error> {
        let texts = Vec::<Text>::deserialize(from)?;
        let texts: Result<Vec<OsString>, _> = texts.into_iter().map(decode).collect();
        texts.map_err(D::Error::custom)
    }
}

pub(super) mod pairs {
    //! Names with values.
    use super::{Deserialize, Deserializer, OsString, Serialize, Serializer, Text, decode, encode};
    use serde::de::Error as _;
    use serde::ser::Error as _;

    pub(in crate::request) fn serialize<S: Serializer>(
        pairs: &[(OsString, OsString)],
        to: S,
    ) -> Result<S::Ok, S::Error> {
        let pairs: Result<Vec<(Text, Text)>, &str> = pairs
            .iter()
            .map(|(name, value)| Ok((encode(name)?, encode(value)?)))
            .collect();
        pairs.map_err(S::Error::custom)?.serialize(to)
    }

    pub(in crate::request) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Vec<(OsString, OsString)>, D::Error> {
        let pairs = Vec::<(Text, Text)>::deserialize(from)?;
        let pairs: Result<Vec<_>, &str> = pairs
            .into_iter()
            .map(|(name, value)| Ok((decode(name)?, decode(value)?)))
            .collect();
        pairs.map_err(D::Error::custom)
    }
}

pub(super) mod path {
    //! A path.
    use super::{Deserializer, Serializer};
    use std::path::{Path, PathBuf};

    pub(in crate::request) fn serialize<S: Serializer>(
        path: &Path,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        super::serialize(path.as_os_str(), to)
    }

    pub(in crate::request) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<PathBuf, D::Error> {
        super::deserialize(from).map(PathBuf::from)
    }
}

pub(super) mod optional_path {
    //! A path, or none.
    use super::{Deserialize, Deserializer, Serialize, Serializer, Text, decode, encode};
    use serde::de::Error as _;
    use serde::ser::Error as _;
    use std::path::PathBuf;

    pub(in crate::request) fn serialize<S: Serializer>(
        path: &Option<PathBuf>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        path.as_ref()
            .map(|path| encode(path.as_os_str()))
            .transpose()
            .map_err(S::Error::custom)?
            .serialize(to)
    }

    pub(in crate::request) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<PathBuf>, D::Error> {
        Option::<Text>::deserialize(from)?
            .map(|text| decode(text).map(PathBuf::from))
            .transpose()
            .map_err(D::Error::custom)
    }
}
