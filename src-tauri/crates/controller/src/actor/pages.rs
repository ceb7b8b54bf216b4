//! Pages of the transcript, diffs and whole outputs.

use std::io::{Read, Seek, SeekFrom};

use holdfast_api::ApiError;
use holdfast_api::transcript::{
    DiffReply, OutputPage, PageQuery, TranscriptItem, TranscriptPage, TranscriptSnapshot,
};

use super::{Actor, views};

/// Largest number of items in one page.
const MAX_ITEMS: usize = 500;
/// Largest part of an output in one reply, in bytes.
const OUTPUT_PAGE: u64 = 256 * 1024;
/// Places that one element of the fold has in the cursor: a message has at most 256 calls.
const PLACES: u64 = 1024;

impl Actor {
    /// Newest first. The cursor is a place in the transcript, which only grows but for a rewind.
    pub(super) fn page(&self, query: &PageQuery) -> Result<TranscriptPage, ApiError> {
        let limit = query.limit.unwrap_or(100);
        if !(1..=MAX_ITEMS).contains(&limit) {
            return Err(ApiError::bad_request(
                "limit_invalid",
                format!("limit must be 1 to {MAX_ITEMS}; nothing was read"),
            ));
        }
        let (items, before) = self.newest(query.before, limit);
        Ok(TranscriptPage { items, before })
    }

    pub(super) fn transcript_snapshot(&self) -> TranscriptSnapshot {
        let (items, before) = self.newest(None, MAX_ITEMS);
        let live = self.running.as_ref().and_then(|turn| {
            let quiet = turn.live.text.is_empty() && turn.live.reasoning.is_empty();
            (!quiet).then(|| turn.live.clone())
        });
        TranscriptSnapshot {
            items,
            live,
            progress: self.live_outputs(),
            before,
            up_to: self.host.hub.latest_id(),
        }
    }

    fn newest(&self, before: Option<u64>, limit: usize) -> (Vec<TranscriptItem>, Option<u64>) {
        let session = &self.store.session;
        let in_flight = self.in_flight();
        let mut index = session.items.len();
        let mut newest = Vec::new();
        let mut oldest = None;
        while index > 0 {
            index -= 1;
            let place = index as u64 * PLACES;
            if before.is_some_and(|before| place >= before) {
                continue;
            }
            let group = views::items(session, &in_flight, index..index + 1, |call| {
                self.tool_view(call)
            });
            for (sub, item) in group.into_iter().enumerate().rev() {
                let place = place + sub as u64;
                if before.is_some_and(|before| place >= before) {
                    continue;
                }
                if newest.len() == limit {
                    return (newest, oldest);
                }
                newest.push(item);
                oldest = Some(place);
            }
        }
        (newest, None)
    }

    pub(super) fn diff(&self, attempt_id: &str) -> Result<DiffReply, ApiError> {
        let attempt = self.known(attempt_id)?;
        Ok(DiffReply {
            attempt_id: attempt_id.to_owned(),
            diff: attempt
                .result
                .as_ref()
                .and_then(|result| result.diff.clone())
                .unwrap_or_default(),
        })
    }

    /// While a command runs its output is read from its effect folder; afterwards from the record,
    /// or from the spill file when it is large.
    pub(super) fn output(&self, attempt_id: &str, offset: u64) -> Result<OutputPage, ApiError> {
        self.output_part(attempt_id, offset, OUTPUT_PAGE)
    }

    /// As [`Self::output`], at most `limit` bytes.
    pub(super) fn output_part(
        &self,
        attempt_id: &str,
        offset: u64,
        limit: u64,
    ) -> Result<OutputPage, ApiError> {
        let attempt = self.known(attempt_id)?;
        let page = |length: u64, bytes: &[u8], is_whole: bool| {
            let end = offset.saturating_add(bytes.len() as u64);
            let kept = if is_whole && end >= length {
                bytes
            } else {
                whole_characters(bytes)
            };
            OutputPage {
                attempt_id: attempt_id.to_owned(),
                offset,
                length,
                text: String::from_utf8_lossy(kept).into_owned(),
                next: offset.saturating_add(kept.len() as u64),
                more: end < length,
            }
        };
        // A job goes on printing behind its call's result.
        let result = attempt.result.as_ref().or(attempt.late.as_ref());
        let lives = self.jobs.contains_key(attempt_id);
        let Some(result) = result.filter(|_| !lives) else {
            let file = self.effects_root().join(attempt_id).join("output");
            let (length, bytes) = read_part(&file, offset, limit).unwrap_or_default();
            return Ok(page(length, &bytes, false));
        };
        match &result.output {
            Some(spill) => {
                let bytes = self
                    .store
                    .spill
                    .read(&spill.name, offset, limit)
                    .map_err(|error| crate::store::api_error(&error))?;
                Ok(page(spill.length, &bytes, true))
            }
            None => {
                let text = result.raw.as_ref().unwrap_or(&result.text).as_bytes();
                let start = usize::try_from(offset).unwrap_or(usize::MAX);
                let rest = text.get(start..).unwrap_or_default();
                let shown =
                    usize::try_from(limit).map_or(rest.len(), |limit| limit.min(rest.len()));
                let bytes = rest.get(..shown).unwrap_or_default();
                Ok(page(text.len() as u64, bytes, true))
            }
        }
    }

    pub(super) fn known(
        &self,
        attempt_id: &str,
    ) -> Result<&holdfast_domain::recovery::attempt::Attempt, ApiError> {
        self.store.session.attempt(attempt_id).ok_or_else(|| {
            ApiError::not_found(
                "attempt_unknown",
                "this session has no such attempt; nothing was read; refresh",
            )
        })
    }
}

/// Without a character at the end of which not all bytes are there. Bytes that are no UTF-8 stay.
fn whole_characters(bytes: &[u8]) -> &[u8] {
    for (back, byte) in bytes.iter().rev().take(3).enumerate() {
        let needed = match byte {
            0x80..=0xbf => continue,
            0xc2..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf4 => 4,
            _ => 1,
        };
        return match bytes.len().checked_sub(back + 1) {
            Some(start) if needed > back + 1 => &bytes[..start],
            Some(_) | None => bytes,
        };
    }
    bytes
}

fn read_part(file: &std::path::Path, offset: u64, limit: u64) -> std::io::Result<(u64, Vec<u8>)> {
    let mut file = std::fs::File::open(file)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(offset))?;
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes)?;
    Ok((length, bytes))
}
