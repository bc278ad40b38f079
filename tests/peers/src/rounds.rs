//! How several sides are measured that do the same work: in rounds, in turns, so that a slow moment of the machine is one
//! for all of them.

use async_trait::async_trait;
use std::time::{Duration, Instant};

/// One of those that do the same work.
#[async_trait(?Send)]
pub(crate) trait Side {
    /// Does the work so many times, and returns how long one took.
    async fn round(&mut self, turns: u32) -> Duration;
}

/// Work of this process, the whole of which counts.
pub(crate) struct Work<F>(pub(crate) F);

#[async_trait(?Send)]
impl<F: AsyncFnMut()> Side for Work<F> {
    async fn round(&mut self, turns: u32) -> Duration {
        let began = Instant::now();
        for _ in 0..turns {
            (self.0)().await;
        }
        began.elapsed() / turns
    }
}

/// Work that says itself how long it took, because what ends it does not count.
pub(crate) struct SelfTimedWork<F>(pub(crate) F);

#[async_trait(?Send)]
impl<F: AsyncFnMut() -> Duration> Side for SelfTimedWork<F> {
    async fn round(&mut self, turns: u32) -> Duration {
        let mut sum = Duration::ZERO;
        for _ in 0..turns {
            sum += (self.0)().await;
        }
        sum / turns
    }
}

/// Sides that are compared. The first is Tenon's, of which all others are multiples.
#[derive(Default)]
pub(crate) struct ComparedSides<'a> {
    names: Vec<String>,
    sides: Vec<Box<dyn Side + 'a>>,
}

impl<'a> ComparedSides<'a> {
    pub(crate) fn add(&mut self, name: impl Into<String>, side: impl Side + 'a) {
        self.names.push(name.into());
        self.sides.push(Box::new(side));
    }

    /// The median time that each side takes, with its name. A round takes about so long for each side, or as long as the
    /// work takes once. The side that begins is another one in each round.
    pub(crate) async fn measure(
        mut self,
        rounds: usize,
        each: Duration,
    ) -> Vec<(String, Duration)> {
        let mut turns = Vec::new();
        for side in &mut self.sides {
            // The first turn may have to set something up.
            side.round(1).await;
            let few = fitting(each / 4, side.round(1).await);
            turns.push(fitting(each, side.round(few).await));
        }
        let mut times = vec![Vec::with_capacity(rounds); self.sides.len()];
        for round in 0..rounds {
            for i in 0..self.sides.len() {
                let i = (i + round) % self.sides.len();
                times[i].push(self.sides[i].round(turns[i]).await);
            }
        }
        self.names.into_iter().zip(times.into_iter().map(median)).collect()
    }
}

/// How many turns of such a length take about so long together.
fn fitting(time: Duration, turn: Duration) -> u32 {
    (time.as_nanos() / turn.as_nanos().max(1)).clamp(1, 100_000) as u32
}

/// The middle one.
pub(crate) fn median<T: Ord + Copy>(mut of: Vec<T>) -> T {
    of.sort_unstable();
    of[of.len() / 2]
}
