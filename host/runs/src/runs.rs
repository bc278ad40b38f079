//! The runs of a store.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tenon_store::{
    Change, Durability, ItemOutcome, ItemQuota, LivenessLock, LogIntegrity, LogPolicy, LogSummary,
    MAX_BATCH_ENTRIES, MAX_ITEM_BYTES, NewEntry, Store, StoreError, all_items, check_log,
};

use crate::journal::{self, Journal, JournalEntry};
use crate::run::{NewRun, ResumeCaller, Run, RunState, random_id};
use crate::{Result, RunError};

/// The kind of items that runs are.
const KIND: &str = "runs";

/// How many runs are kept, and how many bytes they may take.
const QUOTA: ItemQuota = ItemQuota { items: 1_000, bytes: 64 << 20 };

/// How many paused runs of one principal are kept, and how many bytes they may take with their journals: nobody keeps others from
/// pausing.
const QUOTA_OF_ONE: ItemQuota = ItemQuota { items: 100, bytes: 64 << 20 };

/// A journal of which a thousand may be kept, in bytes. When a longer one is kept, all are added up.
const SHORT_JOURNAL_BYTES: u64 = 256 << 10;

/// The most that the journals of all runs that are kept come to, in bytes, besides those of runs that go on or are paused.
const MAX_JOURNALS_BYTES: u64 = 256 << 20;

/// How long a run is kept.
const KEPT: Duration = Duration::from_secs(7 * 24 * 3600);

/// The most that the journal of a run comes to, in bytes.
const MAX_JOURNAL_BYTES: u64 = 16 << 20;

/// A run that the store does not know and that goes on no more.
#[derive(Debug, Clone, PartialEq)]
pub struct UnsavedRun {
    run: Run,
    journal: Vec<JournalEntry>,
}

impl UnsavedRun {
    /// About how many bytes it takes.
    pub fn length(&self) -> usize {
        let journal: usize = journal::write(&self.journal).iter().map(Vec::len).sum();
        self.run.write().len() + journal
    }

    /// A run of this id, which began at this time, in milliseconds since 1970, and came to this.
    pub fn new(
        id: String,
        of: NewRun,
        began: u64,
        state: RunState,
        journal: Vec<JournalEntry>,
    ) -> Self {
        Self { run: Run::new(id, of, began, state), journal }
    }
}

/// The runs that a store has.
pub struct Runs {
    store: Arc<dyn Store>,
    /// The lock that says that this process lives.
    lock: LivenessLock,
    quota_of_one: ItemQuota,
    max_journals_bytes: u64,
}

impl Runs {
    /// The runs that a store has.
    pub fn new(store: Arc<dyn Store>) -> Self {
        let (lock, quota_of_one) = (LivenessLock::new("runs/"), QUOTA_OF_ONE);
        Self { store, lock, quota_of_one, max_journals_bytes: MAX_JOURNALS_BYTES }
    }

    /// Makes an id that no run has.
    ///
    /// # Errors
    ///
    /// Where the system has no random numbers.
    pub fn new_id() -> Result<String> {
        random_id()
    }

    /// Notes a run under a new id, which began at this time and goes on.
    ///
    /// # Errors
    ///
    /// Where the store fails, or is full of runs that go on.
    pub fn begin(self: &Arc<Self>, id: String, of: NewRun, began: u64) -> Result<RunHold> {
        let lock = self.process_lock()?;
        let run = Run::new(id, of, began, RunState::Running { lock });
        let version = self.put(&run, None, began)?;
        let version = version.ok_or_else(|| RunError::Exists(run.id.clone()))?;
        let runs = self.clone();
        Ok(RunHold { runs, run, before: None, version, now: began, is_over: false })
    }

    /// Keeps runs that the store does not know and that go on no more, with their journals, in one step. They survive the end
    /// of the process; the last moment before a loss of power may be missing. Where one of them is too long, its value and what
    /// it printed are left out.
    ///
    /// # Errors
    ///
    /// Where the store fails, or is full of runs that go on. Then none of them is kept.
    pub fn keep(&self, ended: &[UnsavedRun], now: u64) -> Result<()> {
        match self.try_keep(ended, now) {
            Err(error) if error.is_of_size() => {
                let shortened = |UnsavedRun { run, journal }: &UnsavedRun| {
                    let is_long = run.write().len() > MAX_ITEM_BYTES;
                    let run = if is_long { run.shortened() } else { run.clone() };
                    UnsavedRun { run, journal: journal.clone() }
                };
                self.try_keep(&ended.iter().map(shortened).collect::<Vec<_>>(), now)
            }
            kept => kept,
        }
    }

    fn try_keep(&self, ended: &[UnsavedRun], now: u64) -> Result<()> {
        let mut is_long = false;
        let items: Vec<_> = ended
            .iter()
            .map(|UnsavedRun { run, journal }| {
                let values = journal::write(journal);
                let mut summary = LogSummary::EMPTY;
                for entry in entries_of(&values, now) {
                    summary.add(entry);
                }
                is_long |= summary.bytes > SHORT_JOURNAL_BYTES;
                let run = run.clone().with_journal(&summary);
                (log_of(&run.id), run.write(), values)
            })
            .collect();
        let logs: Vec<Vec<_>> =
            items.iter().map(|(_, _, values)| entries_of(values, now)).collect();
        let mut changes = Vec::new();
        for ((UnsavedRun { run, .. }, (log, value, _)), entries) in
            ended.iter().zip(&items).zip(&logs)
        {
            let (kind, id, expires) = (KIND, &*run.id, Some(kept_until(run.began)));
            let (version, quota) = (None, QUOTA);
            changes.push(Change::PutItem { kind, id, version, value, expires, quota });
            let max_bytes = MAX_JOURNAL_BYTES;
            let appended = entries.chunks(MAX_BATCH_ENTRIES);
            changes.extend(appended.map(|entries| Change::Append { log, entries, max_bytes }));
        }
        let keep = || self.store.change(&changes, Durability::Process);
        let kept = match keep() {
            Err(StoreError::TooManyItems { .. }) => {
                self.make_room(now)?;
                keep()?
            }
            kept => kept?,
        };
        match kept {
            true if is_long => self.forget_long_journals(now),
            true => Ok(()),
            false => {
                let exists = |UnsavedRun { run, .. }: &&UnsavedRun| {
                    matches!(self.store.item(KIND, &run.id), Ok(Some(_)))
                };
                let known = ended.iter().find(exists).or(ended.first());
                Err(RunError::Exists(known.map_or_else(String::new, |of| of.run.id.clone())))
            }
        }
    }

    /// Has a run go on that is paused, for whoever began it, and in the project that it belongs to. Gives what it has done so
    /// far.
    ///
    /// # Errors
    ///
    /// Where there is no such run of theirs, it is not paused, it belongs to another project, somebody else was faster, or its
    /// journal is not whole.
    pub fn resume(
        self: &Arc<Self>,
        id: &str,
        by: ResumeCaller<'_>,
        now: u64,
    ) -> Result<(RunHold, Journal)> {
        let not_found = || RunError::NotFound(id.to_string());
        let (run, version) = self.read(id, now)?.ok_or_else(not_found)?;
        // Who may not have it is told that there is none.
        if run.of.principal.as_deref() != by.principal || run.of.profile.as_deref() != by.profile {
            return Err(not_found());
        }
        let not_paused =
            |why: &str| RunError::NotPaused { id: id.to_string(), why: why.to_string() };
        match &run.state {
            RunState::Paused { .. } => {}
            RunState::Running { .. } => return Err(not_paused("it runs")),
            RunState::Unknown => {
                return Err(not_paused(&format!("{}; run it anew", RunState::UNKNOWN)));
            }
            RunState::Done { .. } | RunState::Failed { .. } => {
                return Err(not_paused("it has ended"));
            }
        }
        // Elsewhere a plugin of the same name may be another one, and other rules hold.
        if let Some(project) = run.of.project.clone().filter(|of| Some(of.as_str()) != by.project) {
            return Err(RunError::OtherProject { id: run.id, project });
        }
        if !self.is_as_written(&run)? {
            return Err(RunError::Damaged(id.to_string()));
        }
        let journal = self.journal(&run.id)?;
        let lock = self.process_lock()?;
        let before = run.clone();
        let attempts = run.attempts + 1;
        let run = Run { state: RunState::Running { lock }, attempts, journal: None, ..run };
        let version = self.put(&run, Some(version), now)?;
        let version = version.ok_or_else(|| not_paused("somebody else has resumed it"))?;
        let runs = self.clone();
        let hold = RunHold { runs, run, before: Some(before.into()), version, now, is_over: false };
        Ok((hold, journal.into_iter().collect()))
    }

    /// Cancels a paused run: it goes on no more. What it has done stays done, and calls that wait for an approval still do. Gives
    /// the run as it was.
    ///
    /// # Errors
    ///
    /// Where there is no such run, it is not paused, or the store fails.
    pub fn cancel(&self, id: &str, now: u64) -> Result<Run> {
        let not_found = || RunError::NotFound(id.to_string());
        let (run, version) = self.read(id, now)?.ok_or_else(not_found)?;
        let not_paused = |why: &str| {
            let (id, why) = (id.to_string(), why.to_string());
            RunError::NotCancelled { id, why }
        };
        match &run.state {
            RunState::Paused { .. } => {}
            RunState::Running { .. } => {
                return Err(not_paused("it runs; its client or its process ends it"));
            }
            _ => return Err(not_paused("it has ended")),
        }
        let cancelled = ended(run.clone(), RunState::CANCELLED, "an operator cancelled it");
        let put = self.put(&cancelled, Some(version), now)?;
        put.map(|_| run).ok_or_else(|| not_paused("somebody else has resumed it"))
    }

    /// Ends all paused runs of a principal: nobody else who gets that name is to resume them.
    ///
    /// # Errors
    ///
    /// Where the store fails.
    pub fn end_principal(&self, principal: &str, now: u64) -> Result<()> {
        for (run, version) in self.list_with_versions(now)? {
            if run.is_paused() && run.of.principal.as_deref() == Some(principal) {
                let revoked = ended(run, "revoked", "whoever began it has lost access");
                // One that was resumed meanwhile goes on.
                self.put(&revoked, Some(version), now)?;
            }
        }
        Ok(())
    }

    /// Checks that a run may pause: not too many of its principal do.
    fn check_room_of_one(&self, run: &Run, now: u64) -> Result<()> {
        let summary = self.store.log(&log_of(&run.id))?.unwrap_or(LogSummary::EMPTY);
        let (mut items, mut bytes) = (1, run.write().len() as u64 + summary.bytes);
        for (other, _) in self.list_with_versions(now)? {
            if other.id != run.id && other.is_paused() && other.of.principal == run.of.principal {
                items += 1;
                bytes += other.write().len() as u64 + other.journal_bytes;
            }
        }
        let quota = self.quota_of_one;
        match items > quota.items || bytes > quota.bytes {
            true => Err(RunError::TooManyPaused(items - 1)),
            false => Ok(()),
        }
    }

    /// All runs that can be read, the oldest first. Those of processes that have died are unknown from here on.
    ///
    /// # Errors
    ///
    /// Where the store fails.
    pub fn list(&self, now: u64) -> Result<Vec<Run>> {
        Ok(self.list_with_versions(now)?.into_iter().map(|(run, _)| run).collect())
    }

    fn list_with_versions(&self, now: u64) -> Result<Vec<(Run, u64)>> {
        let mut all = Vec::new();
        for item in all_items(&*self.store, KIND)? {
            if item.is_expired(now) {
                self.remove(&item.id, item.version)?;
                continue;
            }
            // What is damaged keeps nobody from the others.
            if let Ok(run) = Run::read(&item.id, &item.value) {
                all.push(self.settled(run, item.version, now)?);
            }
        }
        all.sort_by(|(one, _), (other, _)| (one.began, &one.id).cmp(&(other.began, &other.id)));
        Ok(all)
    }

    /// The ids of runs that cannot be read. They go when their time is over.
    ///
    /// # Errors
    ///
    /// Where the store fails.
    pub fn damaged(&self) -> Result<Vec<String>> {
        let mut all = all_items(&*self.store, KIND)?;
        all.retain(|item| Run::read(&item.id, &item.value).is_err());
        Ok(all.into_iter().map(|item| item.id).collect())
    }

    /// A run, if there is one of this id.
    ///
    /// # Errors
    ///
    /// Where the store fails.
    pub fn get(&self, id: &str, now: u64) -> Result<Option<Run>> {
        Ok(self.read(id, now)?.map(|(run, _)| run))
    }

    /// The journal of a run, in the order in which it was written.
    ///
    /// # Errors
    ///
    /// Where the store fails, or entries are missing.
    pub fn journal(&self, id: &str) -> Result<Vec<JournalEntry>> {
        let damaged = || RunError::Damaged(id.to_string());
        let log = log_of(id);
        let Some(summary) = self.store.log(&log)? else { return Ok(Vec::new()) };
        if summary.first != 1 {
            return Err(damaged());
        }
        let (mut entries, mut number) = (Vec::new(), 1);
        while number < summary.next {
            let read = self.store.entries_from(&log, number, MAX_BATCH_ENTRIES)?;
            number = read.last().ok_or_else(damaged)?.number + 1;
            for entry in read {
                entries.extend(journal::read(&entry.value).ok_or_else(damaged)?);
            }
        }
        Ok(entries)
    }

    /// Whether nobody has changed the journal of a run since it was written.
    ///
    /// # Errors
    ///
    /// Where the store fails.
    pub fn is_as_written(&self, run: &Run) -> Result<bool> {
        let LogIntegrity::Whole(summary) = check_log(&*self.store, &log_of(&run.id))? else {
            return Ok(false);
        };
        Ok(run.journal.as_ref().is_none_or(|last| *last == summary.last.to_string()))
    }

    /// A run by its id, in capital or in small letters.
    fn read(&self, id: &str, now: u64) -> Result<Option<(Run, u64)>> {
        let id = &*id.to_ascii_uppercase();
        let Some(item) = self.store.item(KIND, id)? else { return Ok(None) };
        if item.is_expired(now) {
            self.remove(id, item.version)?;
            return Ok(None);
        }
        let run = Run::read(id, &item.value)?;
        self.settled(run, item.version, now).map(Some)
    }

    /// A run as it is: unknown, where its process has died.
    fn settled(&self, run: Run, version: u64, now: u64) -> Result<(Run, u64)> {
        let RunState::Running { lock } = &run.state else { return Ok((run, version)) };
        if self.store.is_locked(lock)? {
            return Ok((run, version));
        }
        let unknown = Run { state: RunState::Unknown, ..run };
        match self.put(&unknown, Some(version), now)? {
            Some(version) => Ok((unknown, version)),
            // It has ended in this moment, or somebody else has seen it.
            None => {
                let item = self.store.item(KIND, &unknown.id)?;
                let item = item.ok_or_else(|| RunError::NotFound(unknown.id.clone()))?;
                Ok((Run::read(&unknown.id, &item.value)?, item.version))
            }
        }
    }

    /// Sets a run that has this version, or none. Gives the new version; `None` where it has another one.
    fn put(&self, run: &Run, version: Option<u64>, now: u64) -> Result<Option<u64>> {
        let (value, expires) = (run.write(), Some(kept_until(now)));
        let put = || self.store.put_item(KIND, &run.id, version, &value, expires, QUOTA);
        let outcome = match put() {
            Err(StoreError::TooManyItems { .. }) => {
                self.make_room(now)?;
                put()?
            }
            done => done?,
        };
        Ok(match outcome {
            ItemOutcome::Changed(version) => Some(version),
            ItemOutcome::Differs(_) => None,
        })
    }

    /// Forgets the older half of the runs that have ended.
    fn make_room(&self, now: u64) -> Result<()> {
        let mut over = self.ended_runs(now)?;
        over.truncate(over.len().div_ceil(2));
        self.forget(&over)
    }

    /// Forgets the oldest runs that have ended, until the journals of the others are as long as they may be together.
    fn forget_long_journals(&self, now: u64) -> Result<()> {
        let mut over = self.ended_runs(now)?;
        let mut left = self.max_journals_bytes;
        // The latest is the last.
        let fits = |(run, _): &&(Run, u64)| {
            let rest = left.checked_sub(run.journal_bytes);
            rest.inspect(|rest| left = *rest).is_some()
        };
        let kept = over.iter().rev().take_while(fits).count();
        over.truncate(over.len() - kept);
        self.forget(&over)
    }

    fn ended_runs(&self, now: u64) -> Result<Vec<(Run, u64)>> {
        let is_over = |run: &Run| {
            matches!(run.state, RunState::Done { .. } | RunState::Failed { .. } | RunState::Unknown)
        };
        let mut all = self.list_with_versions(now)?;
        all.retain(|(run, _)| is_over(run));
        Ok(all)
    }

    fn forget(&self, over: &[(Run, u64)]) -> Result<()> {
        let logs: Vec<String> = over.iter().map(|(run, _)| log_of(&run.id)).collect();
        let forgotten = over.iter().zip(&logs).flat_map(|((run, version), log)| {
            let (id, version) = (&*run.id, *version);
            [Change::RemoveItem { kind: KIND, id, version }, Change::RemoveLog { log }]
        });
        // Where somebody else makes room at the same time, there is some afterwards.
        self.store.change(&forgotten.collect::<Vec<_>>(), Durability::Process)?;
        Ok(())
    }

    fn remove(&self, id: &str, version: u64) -> Result<()> {
        if self.store.remove_item(KIND, id, version)? {
            self.store.remove_log(&log_of(id))?;
        }
        Ok(())
    }

    /// Notes what a run that goes on has done since, so that it can be seen, and is known where its process dies.
    ///
    /// # Errors
    ///
    /// Where the store fails.
    pub fn note(&self, id: &str, entries: &[JournalEntry], now: u64) -> Result<()> {
        self.write(id, entries, Durability::Process, now)
    }

    fn write(
        &self,
        id: &str,
        entries: &[JournalEntry],
        durability: Durability,
        now: u64,
    ) -> Result<()> {
        let values = journal::write(entries);
        let policy = LogPolicy { max_bytes: MAX_JOURNAL_BYTES, durability };
        for batch in values.chunks(MAX_BATCH_ENTRIES) {
            self.store.append(&log_of(id), &entries_of(batch, now), policy)?;
        }
        Ok(())
    }

    fn process_lock(&self) -> Result<String> {
        self.lock.name(&*self.store)?.ok_or(RunError::NoRandomness)
    }

    /// With room for so many bytes of journals of runs that have ended.
    #[cfg(test)]
    pub(crate) fn with_room_for_journals(store: Arc<dyn Store>, bytes: u64) -> Self {
        Self { max_journals_bytes: bytes, ..Self::new(store) }
    }

    /// With room for so many paused runs of one principal.
    #[cfg(test)]
    pub(crate) fn with_room_of_one(store: Arc<dyn Store>, items: u64) -> Self {
        Self { quota_of_one: ItemQuota { items, ..QUOTA_OF_ONE }, ..Self::new(store) }
    }

    /// As if the process had died.
    #[cfg(test)]
    pub(crate) fn lose_lock(&self) {
        self.lock.release();
    }
}

/// A run that goes on no more, for this reason.
fn ended(run: Run, code: &str, message: &str) -> Run {
    let (code, message) = (code.to_string(), message.to_string());
    Run { state: RunState::Failed { code, message, printed: String::new() }, ..run }
}

/// Until when a run is kept that was changed at this time.
fn kept_until(now: u64) -> u64 {
    now.saturating_add(u64::try_from(KEPT.as_millis()).unwrap_or(u64::MAX))
}

/// Entries of a log with these values.
fn entries_of(values: &[Vec<u8>], now: u64) -> Vec<NewEntry<'_>> {
    values.iter().map(|value| NewEntry { at: now, value }).collect()
}

fn log_of(id: &str) -> String {
    format!("run/{id}")
}

/// A run that goes on in this process. One that is dropped is unknown. Dropping it blocks.
pub struct RunHold {
    runs: Arc<Runs>,
    run: Run,
    /// As it was before it was resumed.
    before: Option<Box<Run>>,
    version: u64,
    now: u64,
    is_over: bool,
}

impl std::fmt::Debug for RunHold {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("RunHold").field(&self.run.id).finish()
    }
}

impl RunHold {
    /// The run.
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// How it was paused before it was resumed.
    pub fn paused_at(&self) -> Option<&RunState> {
        self.before.as_ref().map(|before| &before.state)
    }

    /// Notes what a run that pauses goes on with besides its journal: how long it took in all its attempts, in microseconds, and
    /// the digests of the tools whose calls wait for an approval, by the places of the calls.
    pub fn note_pause(&mut self, wall_micros: u64, waiting: BTreeMap<String, String>) {
        (self.run.wall_micros, self.run.waiting) = (wall_micros, waiting);
    }

    /// The run pauses or has ended: what it has done since it began or went on is written, and then how far it came.
    ///
    /// # Errors
    ///
    /// Where the store fails, somebody took this process for dead, or it would pause and too many of its principal do.
    pub fn end(mut self, state: RunState, entries: &[JournalEntry], now: u64) -> Result<Run> {
        let mut run = Run { state, ..self.run.clone() };
        let mut refused = None;
        if run.is_paused()
            && let Err(error) = self.runs.check_room_of_one(&run, now)
        {
            let RunError::TooManyPaused(_) = error else { return Err(error) };
            run = ended(run, "limit", &error.to_string());
            refused = Some(error);
        }
        self.runs.write(&self.run.id, entries, Durability::Disk, now)?;
        let summary = self.runs.store.log(&log_of(&self.run.id))?.unwrap_or(LogSummary::EMPTY);
        let run = run.with_journal(&summary);
        let put = match self.runs.put(&run, Some(self.version), now) {
            Err(error) if error.is_of_size() => {
                self.runs.put(&run.shortened(), Some(self.version), now)?
            }
            put => put?,
        };
        self.is_over = true;
        if summary.bytes > SHORT_JOURNAL_BYTES {
            self.runs.forget_long_journals(now)?;
        }
        let why = "its process was taken for dead".to_string();
        let run = put.map(|_| run).ok_or(RunError::NotPaused { id: self.run.id.clone(), why })?;
        refused.map_or(Ok(run), Err)
    }
}

impl RunHold {
    /// Has a run that was resumed be paused as it was: it could not go on here, and has done nothing. Says whether it is.
    ///
    /// # Errors
    ///
    /// Where the store fails.
    pub fn undo(mut self, now: u64) -> Result<bool> {
        let Some(before) = self.before.take() else { return Ok(false) };
        let put = self.runs.put(&before, Some(self.version), now)?;
        self.is_over = put.is_some();
        Ok(self.is_over)
    }
}

impl Drop for RunHold {
    fn drop(&mut self) {
        if !self.is_over {
            let unknown = Run { state: RunState::Unknown, ..self.run.clone() };
            // Without a store it stays as it is, and is unknown when this process ends.
            let _ = self.runs.put(&unknown, Some(self.version), self.now);
        }
    }
}
