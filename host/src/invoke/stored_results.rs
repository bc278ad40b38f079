//! Results that were too long to be passed on, kept whole for those who ask.
//!
//! Each is a file in a folder that is private to this user, in the form that MCP gives to results.
//! The oldest make room for new ones.

use serde_json::Value;
use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;
use tempfile::TempDir;
use tenon_config::config::{Invisible, ResultSettings};
use tenon_config::files;
use tenon_types::mcp_json;
use tenon_types::{Content, ResourceBody, ResourceContents, ToolResult};

/// How the URIs begin under which results are kept that were too long to be passed on.
pub const URI: &str = "tenon://results/";

/// Where results are kept.
pub(crate) struct ResultStore {
    /// Where to, if somebody said; otherwise a folder that goes with this.
    wanted: Option<PathBuf>,
    settings: ResultSettings,
    folder: OnceLock<Result<ResultFolder, String>>,
}

enum ResultFolder {
    Named(PathBuf),
    Temporary(TempDir),
}

impl ResultFolder {
    fn path(&self) -> &Path {
        match self {
            Self::Named(path) => path,
            Self::Temporary(folder) => folder.path(),
        }
    }
}

impl ResultStore {
    pub(crate) fn new(wanted: Option<PathBuf>, settings: ResultSettings) -> Self {
        Self { wanted, settings, folder: OnceLock::new() }
    }

    /// Whether results are passed on with characters that nobody sees.
    pub(crate) fn are_raw(&self) -> bool {
        self.settings.invisible == Invisible::Raw
    }

    /// The longest result that is kept, in bytes.
    fn longest(&self) -> u64 {
        u64::from(self.settings.max_result_mib) << 20
    }

    /// Keeps a result, and gives the URI that it is read by. It blocks.
    pub(crate) fn keep(&self, result: &ToolResult) -> io::Result<String> {
        let folder = self.folder()?;
        // It is written twice, and never held: the first time to see how long it is.
        let mut length = ByteCounter(0);
        serde_json::to_writer(&mut length, &mcp_json::McpJson(result))?;
        let ByteCounter(length) = length;
        if length > self.longest() {
            let most = self.settings.max_result_mib;
            return Err(io::Error::other(format!("it is larger than {most} MiB")));
        }
        make_room(folder, length, u64::from(self.settings.max_mib) << 20)?;
        let file = tempfile::Builder::new()
            .prefix("")
            .rand_bytes(24)
            .suffix(".json")
            .tempfile_in(folder)?;
        let mut writer = BufWriter::new(file.as_file());
        serde_json::to_writer(&mut writer, &mcp_json::McpJson(result))?;
        writer.flush()?;
        drop(writer);
        let (_, path) = file.keep().map_err(|error| error.error)?;
        let id = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        Ok(format!("{URI}{id}"))
    }

    /// The same on a thread that may be blocked. Gives no URI where it cannot be kept.
    pub(crate) async fn keep_apart(self: &Arc<Self>, result: ToolResult) -> Option<String> {
        let results = self.clone();
        let kept = tokio::task::spawn_blocking(move || results.keep(&result)).await;
        let kept = kept.map_err(io::Error::other).flatten();
        kept.inspect_err(|error| tracing::warn!("what was cut of an answer is lost: {error}")).ok()
    }

    /// Reads a result by its URI: each of its blocks, and its structured content. It blocks.
    pub(crate) fn read(&self, uri: &str) -> io::Result<Vec<ResourceContents>> {
        let id = uri.strip_prefix(URI).filter(|id| is_id(id));
        let id = id.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no such result"))?;
        let bytes = files::read(&self.folder()?.join(format!("{id}.json")), self.longest())?;
        let form: Value = serde_json::from_slice(&bytes)?;
        let result = mcp_json::read_tool_result(form).map_err(io::Error::other)?;
        Ok(contents(uri, result))
    }

    fn folder(&self) -> io::Result<&Path> {
        let folder = self.folder.get_or_init(|| {
            match &self.wanted {
                Some(path) => files::claim(path).map(|()| ResultFolder::Named(path.clone())),
                None => {
                    tempfile::Builder::new().prefix("tenon-").tempdir().map(ResultFolder::Temporary)
                }
            }
            .map_err(|error| error.to_string())
        });
        folder.as_ref().map(ResultFolder::path).map_err(|error| io::Error::other(error.clone()))
    }
}

/// Counts what is written to it.
struct ByteCounter(u64);

impl Write for ByteCounter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn is_id(id: &str) -> bool {
    !id.is_empty() && id.len() < 64 && id.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Removes the oldest files until so many bytes have room, of so many in all.
fn make_room(folder: &Path, bytes: u64, most: u64) -> io::Result<()> {
    let mut kept: Vec<(SystemTime, u64, PathBuf)> = fs::read_dir(folder)?
        .flatten()
        .filter(|entry| entry.path().extension().is_some_and(|extension| extension == "json"))
        .filter_map(|entry| {
            let metadata = entry.metadata().ok()?;
            Some((metadata.modified().ok()?, metadata.len(), entry.path()))
        })
        .collect();
    let mut total = bytes + kept.iter().map(|(_, length, _)| length).sum::<u64>();
    kept.sort_unstable();
    for (_, length, path) in kept {
        if total <= most {
            break;
        }
        match fs::remove_file(path) {
            // Somebody else made room.
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => total -= length,
        }
    }
    Ok(())
}

/// The member of a part's `_meta` that says that it is the structured content of a result, which most
/// tools say in its blocks as well.
pub const STRUCTURED: &str = "tenon/structured";

fn contents(uri: &str, result: ToolResult) -> Vec<ResourceContents> {
    let part = |mime_type: &str, body| ResourceContents {
        uri: uri.to_string(),
        mime_type: Some(mime_type.to_string()),
        body,
        extra: None,
    };
    let blocks = result.content.into_iter().map(|block| match block.body {
        Content::Text(text) => part("text/plain", ResourceBody::Text(text)),
        Content::Image(media) | Content::Audio(media) => {
            part(&media.mime_type, ResourceBody::Blob(media.data))
        }
        Content::Resource(contents) => contents,
        other @ (Content::ResourceLink(_) | Content::Other(_)) => {
            let block = tenon_types::ContentBlock { body: other, extra: block.extra };
            part(
                "application/json",
                ResourceBody::Text(mcp_json::content_block(&block).to_string()),
            )
        }
    });
    let structured = result.structured.map(|json| {
        let mut structured = part("application/json", ResourceBody::Text(json));
        mcp_json::insert_meta_of(&mut structured.extra, STRUCTURED, &true);
        structured
    });
    blocks.chain(structured).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_read_again_and_nothing_else_is() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("other.json"), "{}").unwrap();
        let results =
            ResultStore::new(Some(folder.path().join("results")), ResultSettings::default());
        let uri = results.keep(&ToolResult::text("whole")).unwrap();
        let read = results.read(&uri).unwrap();
        assert!(matches!(&read[0].body, ResourceBody::Text(text) if text == "whole"));
        for bad in ["", "../other", "%2e%2e/other", "nothing", "a/b"] {
            assert!(results.read(&format!("{URI}{bad}")).is_err(), "{bad}");
        }
        assert!(results.read("file:///etc/passwd").is_err());
    }

    #[test]
    fn the_oldest_make_room() {
        let folder = tempfile::tempdir().unwrap();
        let old = folder.path().join("old.json");
        let file = fs::File::create(&old).unwrap();
        file.set_len((256 << 20) - 10).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        let results = ResultStore::new(Some(folder.path().into()), ResultSettings::default());
        let uri = results.keep(&ToolResult::text("new")).unwrap();
        assert!(!old.exists());
        assert!(results.read(&uri).is_ok());
    }
}
