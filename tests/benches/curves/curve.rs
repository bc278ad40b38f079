//! A cost at growing sizes, and by which exponent it grows: what grows by the exponent 1 doubles where the size doubles, and
//! what grows by 0 stays. The exponent between two sizes is the ratio of the logarithms of how much cost and size grow.

use std::time::Duration;

use crate::table::Table;

/// How far an exponent may be above what is expected: measuring is not exact.
const TOLERANCE: f64 = 0.25;

/// How a cost should grow, and why.
pub(crate) struct Expected {
    pub(crate) exponent: f64,
    pub(crate) reason: &'static str,
}

/// What a cost is counted in.
#[derive(Clone, Copy)]
pub(crate) enum Unit {
    /// Seconds.
    Time,
    /// Bytes.
    Memory,
}

impl Unit {
    /// A figure with three digits, in the unit that fits.
    fn show(self, figure: f64) -> String {
        let steps: &[(f64, &str)] = match self {
            Self::Time => &[(1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")],
            Self::Memory => &[(1024.0 * 1024.0, "MiB"), (1024.0, "KiB"), (1.0, "B")],
        };
        let fitting = steps.iter().find(|(step, _)| figure >= *step).or(steps.last());
        let (step, name) = fitting.expect("there are units");
        let figure = figure / step;
        let digits = if figure >= 100.0 { 0 } else { usize::from(figure < 10.0) + 1 };
        format!("{figure:.digits$} {name}")
    }
}

/// A cost at growing sizes.
pub(crate) struct Curve {
    what: String,
    /// What the size counts.
    of: &'static str,
    unit: Unit,
    expected: Expected,
    /// Sizes and figures, by size.
    points: Vec<(usize, f64)>,
}

impl Curve {
    /// A curve of times without points.
    pub(crate) fn new(
        what: impl Into<String>,
        of: &'static str,
        exponent: f64,
        reason: &'static str,
    ) -> Self {
        let expected = Expected { exponent, reason };
        Self { what: what.into(), of, unit: Unit::Time, expected, points: Vec::new() }
    }

    /// The same with figures that are amounts of memory.
    pub(crate) fn of_memory(self) -> Self {
        Self { unit: Unit::Memory, ..self }
    }

    /// Adds the time at a size, which is greater than those before.
    pub(crate) fn time(&mut self, size: usize, time: Duration) {
        self.points.push((size, time.as_secs_f64()));
    }

    /// Adds the memory at a size, which is greater than those before.
    pub(crate) fn memory(&mut self, size: usize, bytes: f64) {
        self.points.push((size, bytes));
    }

    /// The exponent from the size before to that of each point. From the size 0 there is none.
    fn exponents(&self) -> Vec<Option<f64>> {
        let pairs = self.points.windows(2);
        let exponent = |pair: &[(usize, f64)]| {
            let ((small, low), (large, high)) = (pair[0], pair[1]);
            let is_measured = small > 0 && low > 0.0 && high > 0.0;
            is_measured.then(|| (high / low).ln() / (large as f64 / small as f64).ln())
        };
        std::iter::once(None).chain(pairs.map(exponent)).collect()
    }

    /// The exponent that fits the points of the larger half best, by least squares.
    fn fitted(&self) -> f64 {
        let larger = &self.points[self.points.len() / 2..];
        let points: Vec<(f64, f64)> = larger
            .iter()
            .filter(|(_, figure)| *figure > 0.0)
            .map(|(size, figure)| ((*size as f64).ln(), figure.ln()))
            .collect();
        let mean =
            |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / points.len() as f64;
        let (x, y) = (mean(|point| point.0), mean(|point| point.1));
        let along = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum::<f64>();
        let across = points.iter().map(|point| (point.0 - x).powi(2)).sum::<f64>();
        along / across
    }

    /// Whether it grows faster than expected at the larger sizes. What it does before, such as to outgrow a cache, passes.
    fn is_too_steep(&self) -> bool {
        self.fitted() > self.expected.exponent + TOLERANCE
    }

    /// The first size up to which it grows faster than expected, and from which on it goes on so: a single step may be noise.
    fn bend(&self) -> Option<usize> {
        let most = self.expected.exponent + TOLERANCE;
        let exponents = self.exponents();
        let is_above = |exponent: &Option<f64>| exponent.is_some_and(|exponent| exponent > most);
        let at = exponents.windows(2).position(|pair| pair.iter().all(is_above))?;
        Some(self.points[at].0)
    }

    /// Whether it grows as it should, in words.
    fn verdict(&self) -> String {
        match self.bend() {
            _ if !self.is_too_steep() => "as expected".into(),
            Some(size) => format!("bends at {size} {}", self.of),
            None => "steeper than expected".into(),
        }
    }

    fn print(&self) {
        let Self { what, of, unit, expected, points } = self;
        let title = format!(
            "{what}: exponent {:.2}, expected {} ({}); {}",
            self.fitted(),
            expected.exponent,
            expected.reason,
            self.verdict()
        );
        let figure = match unit {
            Unit::Time => "time",
            Unit::Memory => "memory",
        };
        let mut table = Table::new(&title, [*of, figure, "exponent"]);
        for ((size, figure), exponent) in points.iter().zip(self.exponents()) {
            let exponent = exponent.map(|exponent| format!("{exponent:.2}")).unwrap_or_default();
            table.row([size.to_string(), unit.show(*figure), exponent]);
        }
        table.print();
    }
}

/// All curves that were measured.
#[derive(Default)]
pub(crate) struct CurveReport {
    curves: Vec<Curve>,
}

impl CurveReport {
    /// Prints a curve, and keeps it for the summary.
    pub(crate) fn add(&mut self, curve: Curve) {
        curve.print();
        self.curves.push(curve);
    }

    /// Prints a line for each curve.
    pub(crate) fn print_summary(&self) {
        let columns = ["cost", "by", "at most", "figure", "exponent", "expected", "verdict"];
        let mut table = Table::new("all curves", columns);
        for curve in &self.curves {
            let (size, figure) = curve.points.last().expect("each curve has points");
            table.row([
                curve.what.clone(),
                curve.of.into(),
                size.to_string(),
                curve.unit.show(*figure),
                format!("{:.2}", curve.fitted()),
                curve.expected.exponent.to_string(),
                curve.verdict(),
            ]);
        }
        table.print();
    }
}
