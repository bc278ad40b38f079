//! Files that are swapped while a plugin is at work on them.

use serde_json::json;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::action::{Action, Expect};
use crate::fixture::link;
use crate::host_under_test::HostUnderTest;
use crate::row::Race;

/// How often the file is swapped at least, and how often each of what is swapped is met.
const SWAPS: usize = 200;
const MET: u32 = 20;

/// How often something is tried in one call, which has to come to an end on a tight host, too; and how
/// often in all, at most.
const ROUNDS: u32 = 30;
const TRIED: u32 = 20_000;

/// For how many looks at it each of what is swapped stands, swap by swap. So it changes in the midst of
/// an attempt, and also stands long enough for one on a slow or busy machine.
const LOOKS: [u32; 10] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];

/// How long the thread that swaps may stand still.
const PATIENCE: Duration = Duration::from_secs(20);

/// What was met in a race.
#[derive(Default)]
struct RaceResult {
    /// How often it was done with what is granted.
    done: u32,
    /// How often it was refused.
    refused: u32,
    /// How often something was seen that is not granted.
    escaped: u32,
    /// What has changed outside.
    changes: Vec<String>,
}

impl Race {
    /// What is named: the file that is swapped, or one in a folder that is.
    fn path(self) -> &'static str {
        match self.deed {
            "make-folder" => "pub/way/made",
            _ if self.is_in_folder() => "pub/way/s.txt",
            _ => "pub/race",
        }
    }

    /// A second path.
    fn other(self) -> &'static str {
        match self.deed {
            "rename" | "link" => "{fixture}/pub/way/new",
            _ => "",
        }
    }

    /// Whether a folder on the way is swapped. What works on a name follows no link that has it.
    fn is_in_folder(self) -> bool {
        matches!(self.deed, "unlink" | "rename" | "link" | "make-folder")
    }

    /// What is answered about what is granted.
    fn granted(self) -> &'static str {
        match self.deed {
            "read" => "ok granted",
            // The link itself may be looked at.
            "stat" => "ok 7|ok 15",
            _ => "ok",
        }
    }
}

/// Tries it with a plugin that may reach only one of what is swapped. Gives what was seen that should
/// not be.
pub(crate) async fn held(world: &mut HostUnderTest, race: Race) -> Vec<String> {
    let both_met = |met: &RaceResult| met.done >= MET && met.refused >= MET;
    let mut seen = Vec::new();
    match run(world, "files", race, both_met).await {
        Err(wrong) => seen.push(wrong),
        Ok(met) => {
            let RaceResult { done, refused, escaped, changes } = &met;
            if *escaped > 0 || !changes.is_empty() {
                seen.push(format!("{escaped} of {done} reached what is outside; {changes:?}"));
            }
            if !both_met(&met) {
                seen.push(format!("it was done {done} times and refused {refused} times"));
            }
        }
    }
    seen
}

/// Tries it with a plugin that may reach both.
pub(crate) async fn reached(
    world: &mut HostUnderTest,
    plugin: &'static str,
    race: Race,
) -> Vec<String> {
    match run(world, plugin, race, |met| met.escaped > 0 || !met.changes.is_empty()).await {
        Err(wrong) => vec![wrong],
        Ok(met) if met.escaped > 0 || !met.changes.is_empty() => Vec::new(),
        Ok(met) => vec![format!("what is outside was not reached, in {} rounds", met.done)],
    }
}

/// Swaps and tries until enough was met.
async fn run(
    world: &mut HostUnderTest,
    plugin: &'static str,
    race: Race,
    is_enough: impl Fn(&RaceResult) -> bool,
) -> Result<RaceResult, String> {
    if let Some(absence) = world.absence(plugin) {
        return Err(absence);
    }
    let before = world.survey();
    let mut met = RaceResult::default();
    let swapping = SwapGuard::begin(world.base(), race.is_in_folder())
        .map_err(|error| format!("nothing could be swapped: {error}"))?;
    let mut wrong = None;
    for _ in 0..TRIED / ROUNDS {
        if let Err(seen) = swapping.goes_on().await {
            wrong = Some(seen);
            break;
        }
        match attempts(world, plugin, race).await {
            Ok([escaped, done, refused]) => {
                met.escaped += escaped;
                met.done += done;
                met.refused += refused;
            }
            Err(seen) => {
                wrong = Some(seen);
                break;
            }
        }
        let changes = before.changes_to(&world.survey()).into_iter();
        met.changes = changes.filter(|change| change.starts_with("secret/")).collect();
        if is_enough(&met) && swapping.swaps() >= SWAPS {
            break;
        }
    }
    let swaps = swapping.end();
    let after = world.survey();
    world.lay_again(&before, &after).map_err(|error| format!("the files are lost: {error}"))?;
    match (wrong, swaps) {
        (Some(wrong), _) => Err(wrong),
        (None, Err(error)) => Err(format!("it could not be swapped any more: {error}")),
        (None, Ok(swaps)) if swaps < SWAPS => Err(format!("it was swapped {swaps} times only")),
        (None, Ok(_)) => Ok(met),
    }
}

/// Has it tried for so many rounds. Gives how often what is outside was seen, how often it was done, and
/// how often refused.
async fn attempts(
    world: &HostUnderTest,
    plugin: &'static str,
    race: Race,
) -> Result<[u32; 3], String> {
    let arguments = json!({
        "edition": race.edition,
        "deed": race.deed,
        "path": format!("{{fixture}}/{}", race.path()),
        "other": race.other(),
        "granted": race.granted(),
        "rounds": ROUNDS,
    });
    // It is not known before how often it is done.
    let counted = Expect::Tells(&[" refused"]);
    let came = world.done(&Action::new(plugin, "attempts", arguments, counted)).await?;
    let said = came.text();
    let numbers: Vec<u32> = said.split(' ').filter_map(|word| word.parse().ok()).collect();
    numbers.try_into().map_err(|_| format!("it counts nothing: {said}"))
}

/// Something that is swapped until this ends: a file and a link that leads out, or a folder and such
/// a link.
struct SwapGuard {
    over: Arc<AtomicBool>,
    swaps: Arc<AtomicUsize>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl SwapGuard {
    fn begin(base: &Path, folder: bool) -> io::Result<Self> {
        let within = base.join("pub");
        let swap: fn(&Path, u32) -> io::Result<()> = if folder { swap_folder } else { swap_file };
        match folder {
            false => fs::write(within.join("race"), "granted")?,
            true => {
                fs::create_dir(within.join("way"))?;
                link(&within.join("decoy"), "../secret")?;
            }
        }
        let (over, swaps) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let thread = thread::Builder::new().name("tenon-conformance-swap".into()).spawn({
            let (over, swaps) = (over.clone(), swaps.clone());
            move || {
                for looks in LOOKS.into_iter().cycle() {
                    if over.load(Ordering::Relaxed) {
                        break;
                    }
                    swap(&within, looks)?;
                    swaps.fetch_add(1, Ordering::Relaxed);
                }
                Ok(())
            }
        })?;
        Ok(Self { over, swaps, thread: Some(thread) })
    }

    fn swaps(&self) -> usize {
        self.swaps.load(Ordering::Relaxed)
    }

    /// Waits until it was swapped once more.
    async fn goes_on(&self) -> Result<(), String> {
        let (before, began) = (self.swaps(), Instant::now());
        while self.swaps() == before {
            let is_over = self.thread.as_ref().is_none_or(JoinHandle::is_finished);
            if is_over || began.elapsed() > PATIENCE {
                return Err(format!("it was not swapped any more, after {before} times"));
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        Ok(())
    }

    /// Ends it. Gives how often it was swapped, or why not any more.
    fn end(mut self) -> io::Result<usize> {
        self.over.store(true, Ordering::Relaxed);
        let ended = self.thread.take().map(JoinHandle::join);
        match ended {
            Some(Ok(Ok(()))) => Ok(self.swaps()),
            Some(Ok(Err(error))) => Err(error),
            Some(Err(_)) | None => Err(io::Error::other("its thread panicked")),
        }
    }
}

impl Drop for SwapGuard {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

fn swap_file(within: &Path, looks: u32) -> io::Result<()> {
    let (name, next) = (within.join("race"), within.join("next"));
    link(&next, "../secret/s.txt")?;
    fs::rename(&next, &name)?;
    stand(&name, looks)?;
    fs::write(&next, "granted")?;
    fs::rename(&next, &name)?;
    stand(&name, looks)
}

fn swap_folder(within: &Path, looks: u32) -> io::Result<()> {
    let at = |name: &str| -> PathBuf { within.join(name) };
    fs::rename(at("way"), at("real"))?;
    fs::rename(at("decoy"), at("way"))?;
    stand(&at("way"), looks)?;
    // The folder is as it was, whatever has become of it.
    let _ = fs::remove_dir(at("real/made"));
    let _ = fs::remove_file(at("real/new"));
    fs::write(at("real/s.txt"), "granted")?;
    fs::rename(at("way"), at("decoy"))?;
    fs::rename(at("real"), at("way"))?;
    stand(&at("way"), looks)
}

/// Looks at it so many times, and leaves it as it is.
fn stand(name: &Path, looks: u32) -> io::Result<()> {
    for _ in 0..looks {
        fs::symlink_metadata(name)?;
    }
    Ok(())
}
