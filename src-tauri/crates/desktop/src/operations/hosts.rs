//! What a person does to the list of other machines.
//!
//! Guarantees: a token goes where keys go and is never in a reply; a machine that is taken away
//! takes its token and its tabs with it, and nothing over there is touched.

use std::sync::Arc;

use holdfast_api::hosts::{ConnectionState, HostChange, HostCheck, HostList, HostView, HostWay};
use holdfast_domain::canonical::hex;
use holdfast_remote::probe;

use crate::desktop::Inner;
use crate::error::DesktopError;
use crate::hosts::{key_name, link_of};
use crate::keys::StoredKeys;
use crate::remembered::HostRecord;

/// Longest name, in characters.
const NAME: usize = 60;
/// Most machines.
const MOST: usize = 200;

impl Inner {
    /// RS-36: all machines, with how their connections stand.
    pub(super) async fn host_list(&self) -> Result<HostList, DesktopError> {
        let records = self.shelf.read(|remembered| remembered.hosts.clone());
        let names: Vec<String> = records.iter().map(|host| key_name(&host.host_id)).collect();
        let held = keys(&self.keys, move |keys| {
            Ok(names
                .iter()
                .map(|name| keys.holds(name))
                .collect::<Vec<_>>())
        })
        .await?;
        let hosts = records.iter().zip(held).map(|(record, has_token)| {
            match self.hosts.get(&record.host_id) {
                Some(attached) => attached.view(record, has_token),
                None => unattached(record, has_token),
            }
        });
        Ok(HostList {
            hosts: hosts.collect(),
        })
    }

    pub(super) async fn save_host(
        self: &Arc<Self>,
        change: HostChange,
    ) -> Result<HostList, DesktopError> {
        let record = self.checked(&change)?;
        if !change.token.is_empty() {
            let (name, token) = (key_name(&record.host_id), change.token);
            keys(&self.keys, move |keys| keys.store(&name, &token)).await?;
        }
        self.shelf.change(|remembered| {
            let mut hosts = remembered.hosts.iter_mut();
            match hosts.find(|host| host.host_id == record.host_id) {
                Some(host) => host.clone_from(&record),
                None => remembered.hosts.push(record.clone()),
            }
            remembered.rebind(&record.host_id);
        });
        self.shelf.save().await?;
        self.attach(&record);
        self.host_list().await
    }

    pub(super) async fn remove_host(&self, host_id: &str) -> Result<HostList, DesktopError> {
        if !self
            .shelf
            .read(|remembered| remembered.host(host_id).is_some())
        {
            return Err(DesktopError::HostUnknown);
        }
        // First the token: what can't be forgotten keeps its place on the list.
        let name = key_name(host_id);
        keys(&self.keys, move |keys| keys.remove(&name)).await?;
        self.shelf.change(|remembered| {
            remembered.hosts.retain(|host| host.host_id != host_id);
            let tabs = remembered.tabs.iter();
            let own = tabs.filter(|tab| tab.host_id == host_id);
            let own: Vec<String> = own.map(|tab| tab.tab_id.clone()).collect();
            for tab_id in own {
                remembered.close(&tab_id);
            }
        });
        self.shelf.save().await?;
        self.hosts.detach(host_id);
        self.host_list().await
    }

    /// Asks the machine once, without keeping anything.
    pub(super) async fn test_host(&self, change: HostChange) -> Result<HostCheck, DesktopError> {
        let record = self.checked(&change)?;
        let link = link_of(&self.keys, &record, &change.token, self.hosts.silence());
        let asked = match link {
            Ok(link) => probe(&*link).await,
            Err(error) => Err(error),
        };
        Ok(match asked {
            Ok(()) => HostCheck {
                ok: true,
                code: String::new(),
                message: String::new(),
            },
            Err(error) => HostCheck {
                ok: false,
                code: error.code.to_owned(),
                message: error.message,
            },
        })
    }

    /// What a person wrote, when it can be a machine.
    fn checked(&self, change: &HostChange) -> Result<HostRecord, DesktopError> {
        let invalid = |code, what: String| DesktopError::HostInvalid { code, what };
        let name = change.name.trim();
        if name.is_empty() || name.chars().count() > NAME {
            let what = format!("the name must have 1 to {NAME} characters");
            return Err(invalid("host_name_invalid", what));
        }
        let (known, taken, count) = self.shelf.read(|remembered| {
            let hosts = &remembered.hosts;
            let mut others = hosts.iter().filter(|host| host.host_id != change.host_id);
            (
                remembered.host(&change.host_id).is_some(),
                others.any(|host| host.name == name),
                hosts.len(),
            )
        });
        if taken {
            let what = format!("another host is named {name:?} already");
            return Err(invalid("host_name_taken", what));
        }
        let host_id = if change.host_id.is_empty() {
            if count >= MOST {
                let what = format!("there are {MOST} hosts already");
                return Err(invalid("host_limit", what));
            }
            hex(&rand::random::<[u8; 16]>())
        } else if known {
            change.host_id.clone()
        } else {
            return Err(DesktopError::HostUnknown);
        };
        let record = HostRecord {
            host_id,
            name: name.to_owned(),
            way: trimmed(&change.way),
        };
        // The same check as when it is used.
        link_of(&self.keys, &record, "", self.hosts.silence())
            .map_err(|error| invalid(error.code, error.message))?;
        Ok(record)
    }
}

fn trimmed(way: &HostWay) -> HostWay {
    match way {
        HostWay::Direct { url } => HostWay::Direct {
            url: url.trim().to_owned(),
        },
        HostWay::Ssh {
            destination,
            program,
        } => HostWay::Ssh {
            destination: destination.trim().to_owned(),
            program: program.trim().to_owned(),
        },
    }
}

/// On its way on to the list, or off it.
fn unattached(record: &HostRecord, has_token: bool) -> HostView {
    HostView {
        host_id: record.host_id.clone(),
        name: record.name.clone(),
        way: record.way.clone(),
        has_token,
        state: ConnectionState::Connecting,
        code: String::new(),
        message: String::new(),
        retry_in_ms: None,
        stale: 0,
        conflicts: 0,
        failures: 0,
    }
}

/// Keys are on disk or behind the system's keychain.
async fn keys<T: Send + 'static>(
    keys: &Arc<StoredKeys>,
    work: impl FnOnce(&StoredKeys) -> Result<T, DesktopError> + Send + 'static,
) -> Result<T, DesktopError> {
    let keys = Arc::clone(keys);
    tokio::task::spawn_blocking(move || work(&keys))
        .await
        .map_err(|_| DesktopError::Defect)?
}
