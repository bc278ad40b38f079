//! What a launcher is told: a program, and what it may reach.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{self, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// The longest description of a program, in bytes.
pub const MAX_ENCODED_BYTES: u32 = 16 << 20;

/// A program, as it is to be started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfinedProgram {
    /// The program, by its whole path.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Its whole environment. The launcher itself is started without any: what the program is given must not run outside
    /// of the sandbox.
    pub environment: Vec<(OsString, OsString)>,
    /// The folder that it runs in; the one of the launcher if there is none.
    pub folder: Option<PathBuf>,
    /// What it may reach.
    pub confinement: Confinement,
}

/// What a program may reach.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confinement {
    /// Folders and files, each with all that is below it. What does not exist is left out.
    pub reachable: Vec<ReachableFolder>,
    /// Folders and files that are not there for the program, whatever lies above them is granted.
    pub hidden: Vec<PathBuf>,
    /// Files and folders that are not changed, though what they lie in may be.
    pub unchangeable: Vec<PathBuf>,
    /// A folder for temporary files of the program's own. It finds it as `/tmp`, unless it is granted something below that,
    /// and by `TMPDIR`.
    pub temporary: Option<PathBuf>,
    /// The Unix socket of the host's proxy; without one there is no network.
    pub proxy: Option<PathBuf>,
    /// How much it may use.
    pub limits: ProcessLimits,
    /// What is recorded of it, if anything is. It runs several times slower then.
    pub recording: Option<RecordingOptions>,
}

/// What is recorded of a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordingOptions {
    /// The file to whose end it is written, an [`ConfinementViolation`] in a line.
    pub file: PathBuf,
    /// The files that were not granted are there all the same: what is recorded is done. Otherwise it is refused.
    pub opens_files: bool,
}

/// Something that a program does or tries that its confinement does not allow.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ConfinementViolation {
    /// Reads a file or a folder, or runs a program.
    Read(PathBuf),
    /// Makes, changes or removes a file or a folder.
    Write(PathBuf),
    /// Connects to an address, and not by the proxy. There is no way.
    Connect(SocketAddr),
}

impl ConfinementViolation {
    /// The same with paths that are text: what is none in them is replaced.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "there is no launcher"))]
    pub(crate) fn readable(&self) -> Self {
        let text = |path: &Path| PathBuf::from(path.to_string_lossy().into_owned());
        match self {
            Self::Read(path) => Self::Read(text(path)),
            Self::Write(path) => Self::Write(text(path)),
            Self::Connect(address) => Self::Connect(*address),
        }
    }

    /// Reads the lines of a recording, each attempt once. What is no attempt is left out: the program may still be at it.
    ///
    /// # Errors
    ///
    /// Where the file cannot be read. One that is not there has nothing in it.
    pub fn read_all(recording: &Path) -> io::Result<BTreeSet<Self>> {
        match std::fs::read_to_string(recording) {
            Ok(text) => {
                Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(BTreeSet::new()),
            Err(error) => Err(error),
        }
    }
}

/// A folder or a file that a program may reach.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReachableFolder {
    /// Where it is.
    pub path: PathBuf,
    /// Whether it may be read, and what it has be run.
    pub read: bool,
    /// Whether it may be changed.
    pub write: bool,
    /// Whether links on the way to it are followed. What was granted has none, so that nobody can make it lead elsewhere.
    pub follows_links: bool,
}

/// How much each process of a program may use. Nothing is as much as the host may.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessLimits {
    /// Memory of its own, in bytes.
    pub memory: Option<u64>,
    /// Processes and threads of the user in the sandbox. The kernel does not count those of root.
    pub processes: Option<u64>,
    /// Open files.
    pub open_files: Option<u64>,
}

impl ConfinedProgram {
    /// Writes it for a launcher: its length as four bytes, the least significant first, and JSON.
    ///
    /// # Errors
    ///
    /// Where it is longer than [`MAX_ENCODED_BYTES`].
    pub fn encode(&self) -> io::Result<Vec<u8>> {
        let json = serde_json::to_vec(self)?;
        let length = u32::try_from(json.len()).ok().filter(|length| *length <= MAX_ENCODED_BYTES);
        let length =
            length.ok_or_else(|| io::Error::other("the description of the program is too long"))?;
        let mut encoded = length.to_le_bytes().to_vec();
        encoded.extend(json);
        Ok(encoded)
    }

    /// Reads what [`Self::encode`] wrote, and no byte more.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "there is no launcher"))]
    pub(crate) fn decode(mut input: impl Read) -> io::Result<Self> {
        let mut length = [0; 4];
        input.read_exact(&mut length)?;
        let length = u32::from_le_bytes(length);
        if length > MAX_ENCODED_BYTES {
            return Err(io::Error::other("the description of the program is too long"));
        }
        let mut json = vec![0; length as usize];
        input.read_exact(&mut json)?;
        Ok(serde_json::from_slice(&json)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_nothing_more() {
        let program = ConfinedProgram {
            program: "/bin/cat".into(),
            arguments: vec!["-u".into()],
            environment: [("A".into(), "b".into())].into(),
            folder: None,
            confinement: Confinement {
                reachable: vec![ReachableFolder {
                    path: "/x".into(),
                    read: true,
                    write: false,
                    follows_links: false,
                }],
                proxy: Some("/run/p".into()),
                ..Confinement::default()
            },
        };
        let mut encoded = program.encode().unwrap();
        encoded.extend(b"{\"jsonrpc\"");
        let mut input = &encoded[..];
        assert_eq!(ConfinedProgram::decode(&mut input).unwrap(), program);
        assert_eq!(input, b"{\"jsonrpc\"");
        for wrong in [&b""[..], &[1, 0, 0], &[1, 0, 0, 0], &[2, 0, 0, 0, b'{', b'}'], &[255; 8]] {
            assert!(ConfinedProgram::decode(wrong).is_err(), "{wrong:?}");
        }
    }
}
